import type { AccountName, Call, Sender } from './chain/chain-terms.ts'
import type { Engine } from './machine.ts'
import type { RelayState, Sent } from './state.ts'

export const isUnderWay = ({ state }: Sent): boolean =>
  state === 'STATE_NEW' || state === 'STATE_EXECUTED' || state === 'STATE_MINED'

export const persisted = (engine: Engine): Promise<void> =>
  new Promise((resolve) => engine.afterPersist(resolve))

/** Signed bytes are stored before they are sent. */
export const sendStored = async (
  { engine, sender, account }: { engine: Engine; sender: Sender; account: AccountName },
  call: Call,
  change: (sent: Sent) => void,
): Promise<void> => {
  const attempt = await sender.sign(account, call)
  change({ state: 'STATE_EXECUTED', attempt, hash: attempt.hash })
  await persisted(engine)
  await sender.submit(attempt)
}

/** What the chain says of it, if that is news. Bytes that can never land are signed anew. */
export const nextState = async (
  sender: Sender,
  { attempt, state }: Sent,
): Promise<RelayState | undefined> => {
  if (!attempt) return 'STATE_NEW'
  const found = await sender.stateOf(attempt)
  if (found.state === 'unknown') await sender.submit(attempt)
  if (found.state === 'replaced') return 'STATE_NEW'
  if (found.state !== 'mined') return undefined
  if (found.receipt.status === 'reverted') return 'STATE_FAILED'
  return state === 'STATE_EXECUTED' ? 'STATE_MINED' : 'STATE_CONFIRMED'
}
