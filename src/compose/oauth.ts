import { createOAuth, type OAuth } from '#features/oauth/oauth.ts'
import type { DeriveKey } from '#features/oauth/passwords.ts'
import { oauthDeletions } from '#features/oauth/retention.ts'
import { createAuthorizationServer } from '#upstreams/openid/authorization-server.ts'
import { createIdentityProvider } from '#upstreams/openid/openid.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'
import type { openWebhooksOfApps } from './webhooks.ts'

export type OAuthOverrides = {
  /** Derives the keys that passwords are compared by. */
  deriveKey?: DeriveKey
}
type OAuthParts = Pick<Parts, 'core' | 'net' | 'custody' | 'mails'> & {
  webhooksOfApps: ReturnType<typeof openWebhooksOfApps>
}

/** Opens the sign-in of people and what apps are granted; undefined where people cannot sign in. */
export function openOAuth(
  { core, net, custody, mails, webhooksOfApps }: OAuthParts,
  { deriveKey }: OAuthOverrides,
): OAuth | undefined {
  const { config, db, taskEngine, clock, random, log, baseUrl } = core
  const { AUTH_MODE: mode, IDENTITY_CLIENT_ID: clientId } = config
  if (mode === 'off') return undefined
  return createOAuth({
    db,
    transact: taskEngine.transact,
    keyEncryptionKeys: custody.keyEncryptionKeys,
    clock,
    random,
    log,
    baseUrl,
    sendEmail: mails.sendEmail,
    mailQueue: mails.mailQueue,
    ...(mode !== 'embedded' &&
      clientId !== undefined && {
        identityProvider: createIdentityProvider({
          issuer: config.IDENTITY_ISSUER!,
          clientId,
          clientSecret: config.IDENTITY_CLIENT_SECRET,
          net,
          clock,
          log,
        }),
      }),
    ...(mode === 'proxy' && {
      authorizationServer: createAuthorizationServer({ issuer: config.IDENTITY_ISSUER!, net, clock }),
    }),
    callbackUrl: () => `${baseUrl()}/oauth/callback`,
    freshSignInSeconds: config.FRESH_SIGN_IN_SECONDS,
    ...webhooksOfApps,
    deriveKey,
    onRevoked: () => taskEngine.notifier.broadcast([personTokensTopic]),
  })
}

/** Records of sign-ins are deleted by age even where people can no longer sign in, because earlier records remain. */
export const oauthSection = (oauth: OAuth | undefined): Section => ({
  deletions: oauthDeletions,
  ...(oauth && {
    jobs: [{ name: 'end of expired connections', runBatch: oauth.grants.endExpired }],
    keyJobs: { rewrapOfServerKeys: oauth.keys.rewrap },
  }),
})

/** A notification of this topic makes every instance verify the tokens of people again. */
export const personTokensTopic = 'person-tokens'
