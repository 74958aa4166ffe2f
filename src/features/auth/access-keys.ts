import type { Transact } from '#durable/transactions.ts'
import type { Records } from '#features/oauth/authorization-server-records.ts'
import type { Connections } from '#features/oauth/connected-apps.ts'
import type { Clock } from '#kernel/clock.ts'
import { keysMax } from '#kernel/contract/access-key.ts'
import { type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import { signedValues } from '#kernel/contract/signed-values.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { type AuthInput, contract, keyScopes } from './contract.ts'
import { type KeyCheck, replayed } from './key-signature-check.ts'
import { actMessage } from './signed-texts.ts'
import type { SignUp } from './signup.ts'
import * as store from './store.ts'
import type { Tokens } from './tokens.ts'

/**
 * Keys are tokens that live for days, for clients that know only fixed headers. No token makes one: an agent signs for
 * it, and a person makes it on a page right after a sign-in. A key is no sign-in, so it confirms nothing.
 */

const dayMs = 86_400_000

type AccessKeysDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  tokens: Pick<Tokens, 'make' | 'publishRevoked'>
  keyCheck: KeyCheck
  signUp: SignUp
  /** Absent if no people sign in at this gateway. */
  oauth?: { connections: Pick<Connections, 'connectKey'>; records: Pick<Records, 'revokeGrant'> } | undefined
}

export type KeyTerms = { name: string; scopes: readonly string[]; days: number; creditsPerDay?: number }
type KeyScope = (typeof keyScopes)[number]
export type NewKey = { key_id: string; key: string; name: string; scopes: KeyScope[]; expires_at: string }
export type CreatePersonKey = (
  person: { id: string; email: string },
  terms: KeyTerms,
  address: string,
) => Promise<NewKey>

const scopesOf = (wanted: readonly string[]): KeyScope[] =>
  keyScopes.filter((scope) => scope === 'read' || wanted.includes(scope))

const agentSigns = `\`portico-auth_create_key:v1:<agent_id>:<timestamp>:<${contract.entries.createKey.signs.join('>:<')}>\`, with commas between the scopes`

export function createAccessKeys(deps: AccessKeysDeps) {
  const { db, transact, clock, random, tokens, keyCheck, signUp, oauth } = deps

  const prepare = (userId: string, { name, scopes, days }: KeyTerms) => {
    const allowed = scopesOf(scopes)
    const { token, row } = tokens.make(userId, allowed, days * dayMs)
    const keyId = uuidv7(row.now, random)
    const answer: NewKey = {
      key_id: keyId,
      key: token,
      name,
      scopes: allowed,
      expires_at: row.expiresAt.toISOString(),
    }
    return { answer, row: { ...row, keyId, name } }
  }
  const assertRoom = async (tx: Tx, userId: string): Promise<void> => {
    const count = await store.lockAndCountKeys(tx, userId, clock.now())
    if (count === undefined)
      throw new Fault('suspended', 'The account is suspended; ask the operator of this gateway')
    if (count >= keysMax)
      throw new Fault('limit_reached', `A user has at most ${keysMax} keys: revoke one first`, {
        extras: { limit: keysMax },
      })
  }

  const createPersonKey: CreatePersonKey = async (person, terms, address) => {
    if (!oauth) throw new Error('a key for a person of a gateway without people')
    await signUp(person, address)
    const { answer, row } = prepare(person.id, terms)
    const connected = { ...terms, personId: person.id, keyId: row.keyId, scopes: row.scopes }
    await oauth.connections.connectKey(connected, async (tx, grantId) => {
      await assertRoom(tx, person.id)
      await store.addToken(tx, { ...row, grantId })
    })
    return answer
  }

  const functions = {
    async createKey(
      input: AuthInput<'createKey'>,
      _caller: Caller | null,
      { address }: RequestFacts,
    ): Promise<NewKey> {
      const { agent_id: agentId, timestamp, signature, name, scopes, expires_in_days: days } = input
      const says = signedValues(contract.entries.createKey.signs, input)
      const messages = [actMessage({ operation: 'auth_create_key', agentId, timestamp, says })]
      const { userId, spent } = await keyCheck.verify({ agentId, timestamp, signature }, messages, {
        address,
        signs: agentSigns,
      })
      const { answer, row } = prepare(userId, { name, scopes, days })
      await transact(async (tx) => {
        await assertRoom(tx, userId)
        if (!(await store.spendSignature(tx, spent))) throw replayed(timestamp, clock.now())
        await store.addToken(tx, row)
      })
      return answer
    },
    async keys(_input: AuthInput<'keys'>, { userId }: Caller) {
      const rows = await store.keysOfUser(db, userId, clock.now())
      return {
        keys: rows.map(({ key_id, key_name, scopes, created_at, expires_at }) => ({
          key_id,
          name: key_name,
          scopes: scopes as KeyScope[],
          created_at: created_at.toISOString(),
          expires_at: expires_at.toISOString(),
        })),
        max: keysMax,
      }
    },
    async revokeKey({ key_id }: AuthInput<'revokeKey'>, { userId }: Caller, facts: RequestFacts) {
      const act = toActScope(facts)
      const removed = await store.removeKey(act.tx, { userId, keyId: key_id })
      if (!removed) throw notFound('key', 'auth_keys')
      // What the holder of a person's key has set up ends with its connection.
      if (removed.grantId !== null) await oauth?.records.revokeGrant(removed.grantId, act)
      act.afterCommit(() => void tokens.publishRevoked(userId, [removed.hash]))
      return { key_id, revoked: true as const }
    },
  }
  return { createPersonKey, functions }
}
