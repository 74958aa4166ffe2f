import { addressOf } from './chain/accounts.ts'
import type { AccountName, Call, Sender, SignedTransaction } from './chain/chain-terms.ts'
import type { Engine } from './machine.ts'
import type { RelayState, Sent } from './state.ts'

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

const sendsMax = 20
const sends = new WeakMap<SignedTransaction, number>()

/**
 * Sends what the node lost. Bytes that it never takes are given up: an empty transaction uses their nonce, which would
 * hold back all later ones.
 */
export const sendAgain = async (sender: Sender, attempt: SignedTransaction): Promise<'sent' | 'givenUp'> => {
  const count = (sends.get(attempt) ?? 0) + 1
  sends.set(attempt, count)
  const { account, nonce } = attempt
  const empty = { to: addressOf(account), data: '0x', gas: 21_000n } as const
  await sender.submit(count <= sendsMax ? attempt : await sender.sign(account, empty, { nonce }))
  return count <= sendsMax ? 'sent' : 'givenUp'
}

/** A step that fails ends no other one; the first error is reported after all of them. */
export const stepEach = async <T>(items: Iterable<T>, step: (item: T) => Promise<void>): Promise<void> => {
  const errors: unknown[] = []
  for (const item of items)
    try {
      await step(item)
    } catch (error) {
      errors.push(error)
    }
  if (errors.length > 0) throw errors[0]
}

/** What the chain says of it, if that is news. Bytes that can never land are signed anew. */
export const nextState = async (
  sender: Sender,
  { attempt, state }: Sent,
): Promise<RelayState | undefined> => {
  if (!attempt) return 'STATE_NEW'
  const found = await sender.stateOf(attempt)
  if (found.state === 'unknown')
    return (await sendAgain(sender, attempt)) === 'givenUp' ? 'STATE_FAILED' : undefined
  if (found.state === 'replaced') return 'STATE_NEW'
  if (found.state !== 'mined') return undefined
  if (found.receipt.status === 'reverted') return 'STATE_FAILED'
  return state === 'STATE_EXECUTED' ? 'STATE_MINED' : 'STATE_CONFIRMED'
}
