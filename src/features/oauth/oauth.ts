import type { Transact } from '#durable/transactions.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { SendEmail } from '#kernel/wire/email.ts'
import type { KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import type { Queryable } from '#store/query.ts'
import type { AuthorizationServer } from '#upstreams/openid/authorization-server.ts'
import type { OpenIdProvider } from '#upstreams/openid/openid.ts'
import { type AccessClaims, createTokenVerifier } from './access-tokens.ts'
import { createRecords, type Records } from './authorization-server-records.ts'
import {
  type Connections,
  createConnections,
  creditsPerDayDefault,
  creditsPerDayMax,
  type PostedOrigins,
} from './connected-apps.ts'
import { createPeople, type People } from './email-sign-in.ts'
import { createExternalTokens } from './external-tokens.ts'
import { createFederation, type Federation, interactionOfState } from './federation.ts'
import { createGrants, type EndApps, type Grants } from './grant-revocation.ts'
import { createIdentities } from './identities.ts'
import { createKnownBrowsers, type KnownBrowsers } from './known-browsers.ts'
import { createMessageLimits } from './message-limits.ts'
import { createPasskeys, type Passkeys } from './passkeys.ts'
import { createPasswords, type DeriveKey } from './passwords.ts'
import { createOAuthKeys, type OAuthKeys } from './server-keys.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createSignInLimits } from './sign-in-limits.ts'

type OAuthDeps = {
  db: Queryable
  transact: Transact
  keyEncryptionKeys: KeyEncryptionKeys
  clock: Clock
  random: Random
  log: Log
  baseUrl: () => string
  sendEmail: SendEmail
  mailQueue: MailQueue
  onRevoked: () => void
  endApps: EndApps
  postedOrigins: PostedOrigins
  /** The external authorization server that issues the tokens; if absent, the gateway issues them. */
  authorizationServer?: AuthorizationServer | undefined
  /** Where people sign in; if absent, they sign in at this gateway. */
  identityProvider?: OpenIdProvider | undefined
  callbackUrl: () => string
  freshSignInSeconds: number
  /** The function that derives a hash from a password; the default is scrypt. */
  deriveKey?: DeriveKey | undefined
}

/** The records, keys and people behind the authorization server; the server itself is in src/edges/oauth. */
export type OAuth = {
  records: Records
  grants: Pick<Grants, 'endExpired' | 'contest' | 'isContested' | 'endContested'>
  keys: OAuthKeys
  sessions: Sessions
  connections: Connections
  creditsPerDay: { default: number; max: number }
  people: People
  /** The passkeys of people; absent if people sign in elsewhere, or another server issues the tokens. */
  passkeys: Passkeys | undefined
  knownBrowsers: KnownBrowsers
  /** The sign-in at an external identity provider; absent if none is configured. */
  federation: Federation | undefined
  /** The external authorization server that issues the tokens; absent if this gateway issues them. */
  external: AuthorizationServer | undefined
  interactionOfState(state: unknown): string | undefined
  freshSignInSeconds: number
  verify(token: string): Promise<AccessClaims>
}

export function createOAuth(deps: OAuthDeps): OAuth {
  const grants = createGrants(deps)
  const records = createRecords({ ...deps, grants })
  const keys = createOAuthKeys(deps)
  const knownBrowsers = createKnownBrowsers({ ...deps, keys })
  const limits = createSignInLimits(deps)
  const people = createPeople({
    ...deps,
    limits,
    messageLimits: createMessageLimits(limits),
    passwords: createPasswords(deps.deriveKey),
    knownBrowsers,
    revokeAccount: records.revokeAccount,
  })
  const isOwn = !deps.identityProvider && !deps.authorizationServer
  const passkeys = isOwn ? createPasskeys({ ...deps, records, limits }) : undefined
  const { identityProvider: provider, callbackUrl, authorizationServer: server, freshSignInSeconds } = deps
  const identities = createIdentities(deps)
  const federation =
    provider &&
    createFederation({ provider, identities, records, random: deps.random, redirectUri: callbackUrl })
  const own = { verify: createTokenVerifier({ ...deps, keys }), records, grants }
  const verifyOwn = federation && own.verify
  const tokens = server
    ? createExternalTokens({ ...deps, server, verifyOwn, identities, records, grants })
    : own
  return {
    ...tokens,
    sessions: createSessions({ ...deps, records }),
    connections: createConnections({ ...deps, ...tokens }),
    creditsPerDay: { default: creditsPerDayDefault, max: creditsPerDayMax },
    keys,
    people,
    passkeys,
    knownBrowsers,
    federation,
    external: server,
    interactionOfState,
    freshSignInSeconds,
  }
}
