import { oauth as makeOAuth, type OAuth } from '#features/oauth/oauth.ts'
import type { SendEmail } from '#features/oauth/people.ts'
import type { Net } from '#kernel/net.ts'
import { emailService } from '#upstreams/email/email.ts'
import { authorizationServer } from '#upstreams/openid/authorization-server.ts'
import { openIdProvider } from '#upstreams/openid/openid.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'

/** Messages go to the configured service; without one, which only the local environment allows, they are printed. */
function emailOf({ config, random, log, printLine }: Core, net: Net): SendEmail {
  const { EMAIL_URL: url, EMAIL_TOKEN: token } = config
  const newKey = () => Buffer.from(random.bytes(16)).toString('hex')
  if (url !== undefined) return emailService({ url, token, net, log, newKey })
  return async ({ to, subject }) => {
    printLine(`email  ${to}: ${subject}`)
  }
}

/** Absent where people cannot sign in. */
export function openOAuth({
  core,
  net,
  custody,
}: {
  core: Core
  net: Net
  custody: Custody
}): OAuth | undefined {
  const { config, db, taskEngine, clock, random, log, baseUrl } = core
  if (config.AUTH_MODE === 'off') return undefined
  return makeOAuth({
    db,
    transact: taskEngine.transact,
    keyEncryptionKeys: custody.keyEncryptionKeys,
    clock,
    random,
    log,
    baseUrl,
    sendEmail: emailOf(core, net),
    ...(config.AUTH_MODE === 'facade' && {
      identityProvider: openIdProvider({
        issuer: config.IDENTITY_ISSUER!,
        clientId: config.IDENTITY_CLIENT_ID!,
        clientSecret: config.IDENTITY_CLIENT_SECRET,
        net,
        clock,
        log,
      }),
    }),
    ...(config.AUTH_MODE === 'proxy' && {
      authorizationServer: authorizationServer({ issuer: config.IDENTITY_ISSUER!, net, clock }),
    }),
    callbackUrl: () => `${baseUrl()}/oauth/callback`,
    onRevoked: () => taskEngine.notifier.broadcast([personTokensTopic]),
  })
}

/** Every instance verifies the tokens of people again. */
export const personTokensTopic = 'person-tokens'
