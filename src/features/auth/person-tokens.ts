import type { AccessClaims } from '#features/oauth/access-tokens.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller, Scope } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Queryable } from '#store/query.ts'
import { keypairScopes } from './key-signature-check.ts'
import * as store from './store.ts'

/** Every connected app has these scopes; docs/decisions/0120-an-app-asks-and-spends-within-an-amount.md says why. */
const readingScopes: readonly Scope[] = ['read']
const scopesOf = (granted: readonly string[]): ReadonlySet<Scope> =>
  new Set(keypairScopes.filter((scope) => readingScopes.includes(scope) || granted.includes(scope)))

const cachedMs = 60_000
const entriesMax = 10_000
/**
 * At most this many users with a recent revocation or suspension are remembered. Beyond it, the whole cache is emptied.
 */
const endedMax = 10_000

/** A verified token of a person. `since` counts the revocations and suspensions that were known before its load. */
type Known = { caller: Caller; isSuspended: boolean; since: number }
export type PersonTokens = {
  caller(token: string, hash: string): Promise<Caller>
  /** Makes every token of the user be verified again, after some were revoked or the user was suspended. */
  end(userId: string): void
  clear(): void
}

type PersonTokensDeps = {
  db: Queryable
  clock: Clock
  verify: OAuth['verify']
  /** The maximum age of a sign-in for acts that are reserved for people. */
  signInAgeMaxSeconds: number
}

export function createPersonTokens({
  db,
  clock,
  verify,
  signInAgeMaxSeconds,
}: PersonTokensDeps): PersonTokens {
  const known = createTtlCache<Known>({
    ttlMs: cachedMs,
    entriesMax,
    nowMs: () => clock.now().getTime(),
  })
  let ends = 0
  let allEndedAt = 0
  const endedAt = new Map<string, number>()
  const isEnded = ({ caller, since }: Known) => Math.max(allEndedAt, endedAt.get(caller.userId) ?? 0) > since
  const clear = () => {
    allEndedAt = ++ends
    endedAt.clear()
    known.clear()
  }

  const load = async (token: string, hash: string): Promise<Known> => {
    const since = ends
    const claims: AccessClaims = await verify(token)
    const row = await store.personOf(db, claims.personId, claims.grantId, clock.now())
    if (!row) throw new Fault('invalid_token', 'The consent of this access token was revoked: sign in again')
    return {
      caller: {
        userId: claims.personId,
        agentId: row.agent_id ?? '',
        scheme: 'oauth',
        scopes: scopesOf(claims.scopes),
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
      since,
    }
  }

  const find = async (token: string, hash: string): Promise<Known> => {
    const cached = known.peek(hash)
    if (cached && !isEnded(cached) && cached.caller.token!.expiresAt > clock.now()) return cached
    if (cached) known.invalidate(hash)
    return known.get(hash, () => load(token, hash))
  }

  return {
    async caller(token, hash) {
      const found = await find(token, hash)
      // A revocation or suspension may have come during the load, so the token is then loaded again.
      const { caller, isSuspended } = isEnded(found) ? await load(token, hash) : found
      // A person without a user may sign up before the next call, so this caller is not cached.
      if (!caller.person?.hasSignedUp) known.invalidate(hash)
      if (isSuspended)
        throw new Fault('suspended', 'The account is suspended; ask the operator of this gateway')
      return caller
    },
    end(userId) {
      if (endedAt.size >= endedMax) clear()
      endedAt.set(userId, ++ends)
    },
    clear,
  }
}
