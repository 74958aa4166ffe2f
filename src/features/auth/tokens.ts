import { hash as digest } from 'node:crypto'
import { createBatchLoader } from '#kernel/async/batch-loader.ts'
import { createLru } from '#kernel/async/create-lru.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { keyClientId } from '#kernel/contract/access-key.ts'
import type { Caller, Scope } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { Queryable } from '#store/query.ts'
import { isAgentId, isToken } from './signed-texts.ts'
import * as store from './store.ts'

type TokensDeps = {
  db: Queryable
  clock: Clock
  random: Random
  /** Makes every instance, including this one, call `onRevoked` with the hash of each revoked token. */
  publishRevoked: (userId: string, hashes: readonly string[]) => Promise<void>
  /** Verifies an access token of the authorization server; absent if the gateway has no such server. */
  personCaller?: (token: string, hash: string) => Promise<Caller>
}

const entriesMax = 10_000
/** At most this many queries run at once, however many bad tokens arrive. */
const lookUpsMax = 4
/** At most this many tokens share a query: a flood of bad tokens must not delay a good one. */
const tokensPerLookUpMax = 500
const knownMs = 30_000
const unknownMs = 5_000

/** `since` counts the ends of connections that were known before the load. */
type CachedCaller = { caller: Caller; suspended: boolean; expiresAtMs: number; since: number }

export type IssuedToken = { token: string; row: store.NewToken }

export type Tokens = {
  make(userId: string, scopes: readonly Scope[], ttlMs: number): IssuedToken
  authenticate(authorization: string | undefined): Promise<Caller>
  revoke(token: string): Promise<void>
  revokeAllOf(userId: string): Promise<void>
  invalidateAllOf(userId: string): Promise<void>
  /** Publishes the hashes of revoked tokens; it is called after the commit of the transaction that removed them. */
  publishRevoked: TokensDeps['publishRevoked']
  onRevoked(hash: string): void
  /** Makes the keys of people be read again, after connections were ended. */
  onConnectionsEnded(): void
  /** Makes every token be read again; call it when a revocation may have been missed. */
  clearCache(): void
}

const remedy = 'obtain one with `auth_token` (POST /v1/auth/token)'
const invalidToken = (why = 'The token is unknown, expired or revoked') =>
  new Fault('invalid_token', `${why}: ${remedy}`)

const notToken = (text: string) =>
  invalidToken(
    isAgentId(text)
      ? 'This is the agent id, which is no token'
      : text.startsWith('agt_')
        ? 'The token is incomplete or garbled'
        : 'The credential is not a token of this gateway, which begins with agt_',
  )
const hashOf = (token: string): string => digest('sha256', token, 'hex')
const bytesOf = (hash: string) => Buffer.from(hash, 'hex')

const bearer = /^Bearer +([\x21-\x7e]+) *$/i

function assertActive({ caller, suspended }: CachedCaller): Caller {
  if (suspended) throw new Fault('suspended', 'The account is suspended; ask the operator of this gateway')
  return caller
}

/** A key of a person acts as a connected app, and is no sign-in. */
const personOfKey = ({ key_id, grant_id, email, scopes }: store.TokenOwner): Pick<Caller, 'person'> =>
  key_id === null || grant_id === null
    ? {}
    : {
        person: {
          email: email ?? '',
          grantId: grant_id,
          clientId: keyClientId(key_id),
          oauthScopes: scopes,
          hasSignedUp: true,
          signIn: { at: null, ageMaxSeconds: 0 },
        },
      }

export function createTokens({ db, clock, random, publishRevoked, personCaller }: TokensDeps): Tokens {
  const known = createTtlCache<CachedCaller>({
    ttlMs: knownMs,
    entriesMax,
    nowMs: () => clock.now().getTime(),
  })
  // Unknown tokens have a cache of their own, so that guessed tokens evict no valid caller.
  const unknown = createLru<string, number>(entriesMax)
  let ends = 0
  const rowOf = createBatchLoader({
    load: (hashes: readonly string[]) => store.tokensOf(db, hashes, clock.now()),
    loadsMax: lookUpsMax,
    keysMax: tokensPerLookUpMax,
  })

  const loadCaller = async (hash: string): Promise<CachedCaller> => {
    const now = clock.now()
    const since = ends
    const row = await rowOf(hash)
    if (!row) {
      unknown.set(hash, now.getTime() + unknownMs)
      throw invalidToken()
    }
    const caller: Caller = {
      userId: row.user_id,
      agentId: row.agent_id,
      scheme: row.auth_scheme,
      scopes: new Set(row.scopes as Scope[]),
      token: { hash, expiresAt: row.expires_at },
      ...personOfKey(row),
    }
    return {
      caller,
      suspended: row.suspended_at !== null,
      expiresAtMs: row.expires_at.getTime(),
      since,
    }
  }

  const authenticateOpaque = async (token: string): Promise<Caller> => {
    if (!isToken(token)) throw notToken(token)
    const hash = hashOf(token)
    const now = clock.now().getTime()
    const cached = known.peek(hash)
    const isCurrent = cached && !(cached.caller.person && cached.since < ends)
    if (isCurrent && cached.expiresAtMs > now) return assertActive(cached)
    if ((unknown.get(hash) ?? 0) > now) throw invalidToken()
    return assertActive(await known.get(hash, () => loadCaller(hash), { force: cached !== undefined }))
  }

  return {
    make(userId, scopes, ttlMs) {
      const token = `agt_${Buffer.from(random.bytes(32)).toString('base64url')}`
      const now = clock.now()
      const expiresAt = later(now, ttlMs)
      return { token, row: { hash: bytesOf(hashOf(token)), userId, scopes, now, expiresAt } }
    },
    async authenticate(authorization) {
      const token = bearer.exec(authorization ?? '')?.[1]
      if (token === undefined)
        throw new Fault(
          'unauthorized',
          authorization === undefined
            ? `A bearer token is required in the Authorization header: ${remedy}`
            : 'The Authorization header has the wrong form: send the word Bearer, a space and the token',
        )
      if (token.startsWith('agt_')) return authenticateOpaque(token)
      if (personCaller && token.startsWith('eyJ')) return personCaller(token, hashOf(token))
      throw notToken(token)
    },
    async revoke(token) {
      if (!isToken(token)) return
      const removed = await store.removeToken(db, bytesOf(hashOf(token)))
      if (removed) await publishRevoked(removed.userId, [removed.hash])
    },
    async revokeAllOf(userId) {
      await publishRevoked(userId, await store.removeTokensOf(db, userId))
    },
    async invalidateAllOf(userId) {
      await publishRevoked(userId, await store.tokenHashesOf(db, userId))
    },
    publishRevoked,
    onConnectionsEnded() {
      ends++
    },
    onRevoked(hash) {
      known.invalidate(hash)
      unknown.delete(hash)
    },
    clearCache() {
      known.clear()
    },
  }
}
