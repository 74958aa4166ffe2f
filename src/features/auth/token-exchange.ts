import type { Clock } from '#kernel/clock.ts'
import type { Queryable } from '#store/query.ts'
import type { AuthInput } from './contract.ts'
import { type KeyCheck, keypairScopes, replayed } from './key-signature-check.ts'
import { tokenMessages } from './signed-texts.ts'
import * as store from './store.ts'
import type { Tokens } from './tokens.ts'

/** Exchanges a signature of an agent's key for a token. */

type TokenHandlerDeps = { db: Queryable; clock: Clock; tokens: Tokens; keyCheck: KeyCheck; ttlMs: number }

export const createTokenHandler =
  ({ db, clock, tokens, keyCheck, ttlMs }: TokenHandlerDeps) =>
  async ({ agent_id: agentId, timestamp, signature }: AuthInput<'token'>, address: string) => {
    const messages = tokenMessages(agentId, timestamp)
    const { userId, spent } = await keyCheck.verify({ agentId, timestamp, signature }, messages, {
      address,
      signs: 'agent_id followed at once by the timestamp',
    })
    const { token, row } = tokens.make(userId, keypairScopes, ttlMs)
    if (!(await store.exchangeSignature(db, spent, row))) throw replayed(timestamp, clock.now())
    return { token, expires_in: Math.floor(ttlMs / 1000) }
  }
