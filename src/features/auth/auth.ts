import type { Transact } from '#durable/transactions.ts'
import type { Keystore } from '#features/wallets/keystore.ts'
import type { Caller, Scope } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import { fulfil, type Operation } from '#kernel/operation.ts'
import type { Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import { attempts as attemptsOf } from './attempts.ts'
import { contract } from './contract.ts'
import { tokenStep } from './keypair.ts'
import { registerStep, verifyStep, type Welcome } from './register.ts'
import { revokeStep } from './revoke.ts'
import { signupGrants } from './signup-grants.ts'
import * as store from './store.ts'
import { tokens as tokensOf } from './tokens.ts'

type Needs = {
  on: Queryable
  transact: Transact
  clock: Clock
  random: Random
  /** Without a slash at its end; it stands in every challenge. */
  baseUrl: () => string
  keystore: Pick<Keystore, 'prepare' | 'provision'>
  grantSignup: (tx: Tx, userId: string, now: Date) => Promise<number>
  /** Whatever else a new user gets, in the transaction that makes the user. */
  welcome?: Welcome
  tokenTtlMs?: number
  /** Tells every instance, this one included, to call `onRevoked` with each hash. */
  publishRevoked: (userId: string, hashes: readonly string[]) => Promise<void>
}

export type Auth = {
  operations: Operation[]
  /** Reads an Authorization header; throws unauthorized, invalid_token or suspended. */
  authenticate(authorization: string | undefined): Promise<Caller>
  /** A token for a user of ours, with the scopes that are named and no others. */
  issue(userId: string, scopes: readonly Scope[], ttlMs?: number): Promise<string>
  revoke(token: string): Promise<void>
  /** Ends the keys and tokens of a user. */
  revokeUser(userId: string): Promise<void>
  /** Tokens answer `suspended` at once, and none is issued until `resume`. */
  suspend(userId: string): Promise<void>
  resume(userId: string): Promise<void>
  /** To be called on every instance for each published hash. */
  onRevoked(hash: string): void
  /** To be called where a published hash may have been missed. */
  forgetTokens(): void
  /** Drops what has expired; once a minute on any instance. */
  sweep(): Promise<void>
}

export function auth(needs: Needs): Auth {
  const { on, clock, tokenTtlMs: ttlMs = 900_000, welcome = async () => {} } = needs
  const tokens = tokensOf(needs)
  const attempts = attemptsOf({ clock })
  const register = registerStep(needs)
  const verify = verifyStep({ ...needs, attempts, signups: signupGrants({ clock }), welcome })
  const token = tokenStep({ on, clock, tokens, attempts, ttlMs })

  return {
    operations: fulfil(contract, {
      register: (input) => register(input),
      verify: (input, _caller, { address }) => verify(input, address),
      token: (input, _caller, { address }) => token(input, address),
      revoke: revokeStep({ on, tokens }),
    }),
    authenticate: tokens.authenticate,
    async issue(userId, scopes, lifeMs = ttlMs) {
      const made = tokens.make(userId, scopes, lifeMs)
      await store.addToken(on, made.row)
      return made.token
    },
    revoke: tokens.revoke,
    async revokeUser(userId) {
      await store.revokeKeysOf(on, userId, clock.now())
      await tokens.revokeAllOf(userId)
    },
    async suspend(userId) {
      await store.setSuspended(on, userId, clock.now())
      await tokens.forgetAllOf(userId)
    },
    async resume(userId) {
      await store.setSuspended(on, userId, null)
      await tokens.forgetAllOf(userId)
    },
    onRevoked: tokens.onRevoked,
    forgetTokens: tokens.forgetAll,
    sweep: () => store.sweep(on, clock.now()),
  }
}
