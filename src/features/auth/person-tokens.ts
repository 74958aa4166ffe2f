import type { AccessClaims } from '#features/oauth/access-tokens.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { Caller, Scope } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { createTtlCache } from '#kernel/ttl-cache.ts'
import type { Queryable } from '#store/query.ts'
import { keypairScopes } from './keypair.ts'
import * as store from './store.ts'

/** What every app that a person connects may do; docs/decisions/0082-what-an-app-may-do.md gives the reason. */
const readingScopes: readonly Scope[] = ['read', 'chat']
const scopesOf = (granted: readonly string[]): ReadonlySet<Scope> =>
  new Set(keypairScopes.filter((scope) => readingScopes.includes(scope) || granted.includes(scope)))
const noScopes = new Set<never>()

const cachedMs = 60_000
const entriesMax = 10_000

type Known = { caller: Caller; isSuspended: boolean }
export type PersonTokens = {
  caller(token: string, hash: string): Promise<Caller>
  /** Every token is verified again, after any revocation. */
  clear(): void
}

type PersonTokensDeps = {
  db: Queryable
  clock: Clock
  verify: OAuth['verify']
  /** How old the sign-in may be with which a person does what only people can do. */
  signInAgeMaxSeconds: number
}

/** Callers by access tokens of the authorization server. */
export function personTokens({ db, clock, verify, signInAgeMaxSeconds }: PersonTokensDeps): PersonTokens {
  const known = createTtlCache<Known>({
    ttlMs: cachedMs,
    entriesMax,
    nowMs: () => clock.now().getTime(),
  })

  const load = async (token: string, hash: string): Promise<Known> => {
    const claims: AccessClaims = await verify(token)
    const row = await store.personOf(db, claims.personId, claims.grantId, clock.now())
    if (!row) throw new Fault('invalid_token', 'The consent of this access token was revoked: sign in again')
    return {
      caller: {
        userId: claims.personId,
        agentId: row.agent_id ?? '',
        scheme: 'oauth',
        scopes: row.agent_id === null ? noScopes : scopesOf(claims.scopes),
        token: { hash, expiresAt: claims.expiresAt },
        person: {
          email: row.email,
          grantId: claims.grantId,
          clientId: claims.clientId,
          oauthScopes: claims.scopes,
          hasSignedUp: row.agent_id !== null,
          signIn: { at: claims.signedInAt, ageMaxSeconds: signInAgeMaxSeconds },
        },
      },
      isSuspended: row.suspended_at !== null,
    }
  }

  return {
    async caller(token, hash) {
      const cached = known.peek(hash)
      const isCurrent = cached && cached.caller.token!.expiresAt > clock.now()
      const { caller, isSuspended } = isCurrent
        ? cached
        : await known.get(hash, () => load(token, hash), { force: cached !== undefined })
      // The next call may follow the sign-up.
      if (!caller.person?.hasSignedUp) known.invalidate(hash)
      if (isSuspended)
        throw new Fault('suspended', 'The account is suspended; ask the operator of this gateway')
      return caller
    },
    clear: () => known.clear(),
  }
}
