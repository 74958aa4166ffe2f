import { setTimeout as pause } from 'node:timers/promises'
import type { Lanes } from '#durable/lanes.ts'
import { Fault } from '#kernel/fault.ts'
import type { Carrier, Effect, TaskView } from '#kernel/task.ts'
import type { Head, Receipt } from '#upstreams/evm/evm.ts'
import type { BatchRules, EvmPort } from './batch.ts'
import type { GasBudget } from './gas-budget.ts'

/** Sends what carries a batch, and looks up what the chain shows of it. */

/** A quick chain answers within this; a slower one is asked again later. */
const inlineMs = 2_000
const pollFirstMs = 15
const pollMostMs = 250
/** Within one look; after it the waits between looks begin. */
const sendingsMost = 4
/** A node that calls the number used may show the receipt a moment later. */
const nonceUsedMs = 100

export type Sight = {
  head: Head
  receipts: (Receipt | undefined)[]
  mined: Receipt | undefined
  final: boolean
  /** The last sending got no answer. */
  doubt: boolean
}
/** What became of the last sending. */
type Sent = { doubt: boolean; nonceUsed: boolean }
export type Follow = {
  task: TaskView
  effect: Effect
  port: EvmPort
  lanes: Pick<Lanes, 'take'>
  gasBudget: Pick<GasBudget, 'settle'>
  rules: BatchRules
  now: Date
}

/** Bytes that were never sent go out first; bytes that were are looked up first, and sent again where absent. */
export async function watch({ effect, port: { chain } }: Follow, signal: AbortSignal): Promise<Sight> {
  const newest = newestOf(effect)
  let sendings = newest.status === 'prepared' ? 1 : 0
  let sent = sendings > 0 ? await hand(chain, newest.raw) : { doubt: false, nonceUsed: false }
  const startedMs = performance.now()
  for (let waitMs = pollFirstMs; ; waitMs = Math.min(waitMs * 2, pollMostMs)) {
    const late = signal.aborted || performance.now() - startedMs > inlineMs
    const seen = await lookOnce(effect, chain, late)
    const sight = seen && { ...seen, doubt: sent.doubt }
    if (sight && (sight.final || late)) return sight
    // Either our bytes are mined and not shown yet, or others took the number: waiting here tells neither.
    if (sight && !sight.mined && sent.nonceUsed && performance.now() - startedMs > nonceUsedMs) return sight
    if (!sight) {
      await pause(waitMs, undefined, { signal }).catch(() => undefined)
      continue
    }
    if (!sight.mined && (sendings === 0 || (sent.doubt && sendings < sendingsMost))) {
      sendings += 1
      sent = await hand(chain, newest.raw)
    }
    await pause(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

/** A look-up that gets no answer is repeated while there is time; the last one tells the failure. */
async function lookOnce(effect: Effect, chain: EvmPort['chain'], last: boolean) {
  try {
    return await look(effect, chain)
  } catch (fault) {
    if (last || !(fault instanceof Fault)) throw fault
    return undefined
  }
}

/** `doubt` where nobody can say what became of the bytes. A lost reply is no failure: the look-up tells. */
async function hand(chain: EvmPort['chain'], raw: string): Promise<Sent> {
  try {
    const { verdict } = await chain.sendRaw(raw)
    return { doubt: false, nonceUsed: verdict === 'nonce_used' }
  } catch (fault) {
    if (fault instanceof Fault) return { doubt: true, nonceUsed: false }
    throw fault
  }
}

export const newestOf = (effect: Effect): Carrier => {
  const newest = effect.carriers.at(-1)
  if (!newest) throw new Error(`effect ${effect.id} has nothing to carry it`)
  return newest
}

export async function look(effect: Effect, chain: EvmPort['chain']): Promise<Omit<Sight, 'doubt'>> {
  const { head, receipts } = await chain.receipts(effect.carriers.map((carrier) => carrier.extId))
  // Under several numbers more than one can be mined; at most one of them ran the batch.
  const mined =
    receipts.find((receipt) => receipt?.success) ?? receipts.find((receipt) => receipt !== undefined)
  const final = mined !== undefined && head.number - mined.block + 1n >= BigInt(chain.row.confirmations)
  return { head, receipts, mined, final }
}

export const finalBlockOf = ({ chain }: EvmPort, head: Head): bigint =>
  head.number - BigInt(chain.row.confirmations - 1)
