import type { Clock } from '#kernel/clock.ts'
import type { Caller, RequestFacts } from '#kernel/contract/caller.ts'
import type { Queryable } from '#store/query.ts'
import { type KeyCheck, replayed } from './key-signature-check.ts'
import { actMessage } from './signed-texts.ts'
import * as store from './store.ts'

/** These acts need a signature of the agent's key besides the token, so the thief of a token can do none of them. */

type Signed = { timestamp: number; signature: string }
/** `says` is the content of the act, if the name of its operation does not say it. The key signs this text too. */
type SignedAct = { caller: Pick<Caller, 'agentId'>; signed: Signed; says?: string }
/**
 * Throws unless the caller's key has just signed this act. A signature is used up by one call; only a repeat of this
 * call may bring it again.
 */
export type AssertSigned = (
  facts: Pick<RequestFacts, 'address' | 'isReplay'> & { tx: Queryable },
  operation: string,
  given: SignedAct,
) => Promise<void>

export const assertSigned =
  ({ clock, keyCheck }: { clock: Clock; keyCheck: KeyCheck }): AssertSigned =>
  async (
    { tx, address, isReplay },
    operation,
    { caller: { agentId }, signed: { timestamp, signature }, says },
  ) => {
    const messages = [actMessage({ operation, agentId, timestamp, says })]
    const { spent } = await keyCheck.verify({ agentId, timestamp, signature }, messages, {
      address,
      db: tx,
      signs: `\`portico-${operation}:v1:<agent_id>:<timestamp>${says === undefined ? '' : `:${says}`}\``,
    })
    if (!isReplay && !(await store.spendSignature(tx, spent))) throw replayed(timestamp, clock.now())
  }
