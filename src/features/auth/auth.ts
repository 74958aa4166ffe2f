import type { Transact } from '#durable/transactions.ts'
import type { Keystore } from '#engines/custody/keystore.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import type { EndApps } from '#features/oauth/grant-revocation.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller, Scope } from '#kernel/contract/caller.ts'
import { implement, type Operation } from '#kernel/contract/operation.ts'
import type { Random } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { type CreatePersonKey, createAccessKeys } from './access-keys.ts'
import { contract } from './contract.ts'
import { createAttempts } from './failure-budgets.ts'
import { createKeyCheck } from './key-signature-check.ts'
import { createPersonTokens } from './person-tokens.ts'
import { createRegisterHandler, createVerifyHandler, type OnSignup } from './register.ts'
import { createRevokeHandler } from './revoke.ts'
import { type AssertSigned, assertSigned } from './signed-act.ts'
import { createSignUp, createSignupHandler, type SignUp } from './signup.ts'
import * as store from './store.ts'
import { createTokenHandler } from './token-exchange.ts'
import { createTokens } from './tokens.ts'

type AuthDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  /** The base URL of the gateway, without a trailing slash; it is a part of every challenge that a key signs. */
  baseUrl: () => string
  keystore: Pick<Keystore, 'prepare' | 'provision'>
  signups: Pick<SignupGrants, 'forAgent' | 'forPerson'>
  onSignup?: OnSignup
  /** Called after the commit of a sign-up: its queued task runs at once, and clients learn that their list has changed. */
  announceSignUp: (userId: string) => void
  creditsOf: (tx: Tx, userId: string) => Promise<number>
  walletsOf: (tx: Tx, userId: string) => Promise<Wallet[]>
  /** The authorization server; absent if the gateway has none, and then no person can sign up. */
  oauth?: Pick<OAuth, 'verify' | 'records' | 'connections'> | undefined
  tokenTtlMs?: number
  signInAgeMaxSeconds: number
  endApps: EndApps
  /** Makes every instance, including this one, call `onRevoked` with the hash of each revoked token. */
  publishRevoked: (userId: string, hashes: readonly string[]) => Promise<void>
}

export type Auth = {
  operations: Operation[]
  facts: ReturnType<typeof factsOf>
  /** Reads an Authorization header; throws unauthorized, invalid_token or suspended. */
  authenticate(authorization: string | undefined): Promise<Caller>
  /** Throws unless the key of the calling agent has just signed this act. */
  assertSigned: AssertSigned
  /**
   * Delays a revocation of the caller's access until the transaction ends; returns false if it was revoked already.
   */
  holdAccess(tx: Tx, caller: Caller): Promise<boolean>
  /** Signs up a person who connects an app; changes nothing for one who has an account. */
  signUp: SignUp
  /** Makes a key of a person, who has just signed in on a page. */
  createPersonKey: CreatePersonKey
  issue(userId: string, scopes: readonly Scope[], ttlMs?: number): Promise<string>
  revoke(token: string): Promise<void>
  revokeUser(userId: string): Promise<void>
  /** Makes every token of the user answer `suspended` at once; no new token is issued until `resume`. */
  suspend(userId: string): Promise<void>
  resume(userId: string): Promise<void>
  onRevoked(hash: string): void
  /** Drops cached tokens of a person, or of all people without an id; each instance calls it after a revocation. */
  endPersonTokens(userId?: string): void
  /** Makes this instance read every token again; called when the message of a revocation may have been missed. */
  clearTokenCache(): void
  sweep(): Promise<void>
}

/** What the pages do for a person. */
export type PersonAccounts = Pick<Auth, 'signUp' | 'createPersonKey'>

const factsOf = ({ hasPeople, ttlMs }: { hasPeople: boolean; ttlMs: number }) => ({
  schemes: hasPeople ? ['keypair', 'oauth2.1'] : ['keypair'],
  scopes: ['read', 'chat', 'trade', 'earn', 'manage', 'propose'],
  token_ttl_seconds: ttlMs / 1_000,
})

export function createAuth(deps: AuthDeps): Auth {
  const { db, clock, tokenTtlMs: ttlMs = 900_000, onSignup = async () => {} } = deps
  const { oauth, endApps, signInAgeMaxSeconds } = deps
  const people = oauth && createPersonTokens({ db, clock, verify: oauth.verify, signInAgeMaxSeconds })
  const tokens = createTokens({ ...deps, ...(people && { personCaller: people.caller }) })
  const attempts = createAttempts({ clock })
  const register = createRegisterHandler(deps)
  const verify = createVerifyHandler({ ...deps, attempts, onSignup })
  const keyCheck = createKeyCheck({ db, clock, attempts })
  const token = createTokenHandler({ db, clock, tokens, keyCheck, ttlMs })
  const signUp = createSignUp({ ...deps, onSignup })
  const keys = createAccessKeys({ ...deps, tokens, keyCheck, signUp, oauth })

  return {
    operations: implement(contract, {
      register: (input) => register(input),
      verify: (input, _caller, { address }) => verify(input, address),
      token: (input, _caller, { address }) => token(input, address),
      signup: createSignupHandler({ ...deps, onSignup }),
      ...keys.functions,
      revoke: createRevokeHandler({ tokens, endApps, ...(oauth && { records: oauth.records }) }),
    }).filter(({ key }) => oauth !== undefined || key !== 'signup'),
    facts: factsOf({ hasPeople: oauth !== undefined, ttlMs }),
    authenticate: tokens.authenticate,
    assertSigned: assertSigned({ clock, keyCheck }),
    holdAccess: store.holdAccess,
    signUp,
    createPersonKey: keys.createPersonKey,
    async issue(userId, scopes, lifeMs = ttlMs) {
      const made = tokens.make(userId, scopes, lifeMs)
      await store.addToken(db, made.row)
      return made.token
    },
    revoke: tokens.revoke,
    async revokeUser(userId) {
      await store.revokeKeysOf(db, userId, clock.now())
      await oauth?.records.revokeAccount(userId)
      await tokens.revokeAllOf(userId)
    },
    async suspend(userId) {
      await store.setSuspended(db, userId, clock.now())
      await tokens.invalidateAllOf(userId)
    },
    async resume(userId) {
      await store.setSuspended(db, userId, null)
      await tokens.invalidateAllOf(userId)
    },
    onRevoked: tokens.onRevoked,
    endPersonTokens(userId) {
      if (userId !== undefined) return people?.end(userId)
      people?.clear()
      tokens.onConnectionsEnded()
    },
    clearTokenCache() {
      tokens.clearCache()
      people?.clear()
    },
    sweep: () => store.sweep(db, clock.now()),
  }
}
