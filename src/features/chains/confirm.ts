import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kernel/fault.ts'
import type { Carrier, Effect, EffectUpdate, JsonObject, Step, StepResult, TaskView } from '#kernel/task.ts'
import type { Head, Receipt } from '#upstreams/evm/evm.ts'
import type { BatchRules, EvmPort } from './batch.ts'
import { balanceChangesOf, transactionsOf } from './mined.ts'

/** A quick chain answers within this; a slower one is asked again later. */
const inlineMs = 2_000
const pollFirstMs = 15
const pollMostMs = 250
/** Within one look; after it the waits between looks begin. */
const sendingsMost = 4
const parkFirstMs = 1_000
const parkMostMs = 15_000

type Sight = {
  head: Head
  receipts: (Receipt | undefined)[]
  mined: Receipt | undefined
  final: boolean
  /** The last sending got no answer. */
  doubt: boolean
}
type Follow = { task: TaskView; effect: Effect; port: EvmPort; rules: BatchRules; now: Date }

export const confirmStep =
  (portOf: (chainId: string) => EvmPort, rules: BatchRules): Step =>
  async (task, { now, signal }) => {
    const effect = task.effects.findLast((each) => each.kind === 'evm_batch')
    if (!effect) throw new Error(`task ${task.id} confirms a batch that was never stored`)
    const follow = { task, effect, rules, now, port: portOf(String(effect.intent.chainId)) }
    try {
      const sight = await watch(follow, signal)
      if (sight.mined && sight.final) return await judge(follow, sight, sight.mined)
      if (sight.mined) return waiting(follow, sight)
      return (await giveUp(follow, sight)) ?? (await replaceStuck(follow, sight)) ?? waiting(follow, sight)
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault
      return unknown(follow)
    }
  }

/** Bytes that were never sent go out first; bytes that were are looked up first, and sent again where absent. */
async function watch({ effect, port: { chain } }: Follow, signal: AbortSignal): Promise<Sight> {
  const newest = newestOf(effect)
  let sendings = newest.status === 'prepared' ? 1 : 0
  let doubt = sendings > 0 && (await hand(chain, newest.raw))
  const startedMs = performance.now()
  for (let waitMs = pollFirstMs; ; waitMs = Math.min(waitMs * 2, pollMostMs)) {
    const late = signal.aborted || performance.now() - startedMs > inlineMs
    const seen = await lookOnce(effect, chain, late)
    const sight = seen && { ...seen, doubt }
    if (sight && (sight.final || late)) return sight
    if (!sight) {
      await pause(waitMs, undefined, { signal }).catch(() => undefined)
      continue
    }
    if (!sight.mined && (sendings === 0 || (doubt && sendings < sendingsMost))) {
      sendings += 1
      doubt = await hand(chain, newest.raw)
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

/** True where nobody can say what became of the bytes. A lost reply is no failure: the look-up tells. */
async function hand(chain: EvmPort['chain'], raw: string): Promise<boolean> {
  try {
    await chain.sendRaw(raw)
    return false
  } catch (fault) {
    if (fault instanceof Fault) return true
    throw fault
  }
}

const newestOf = (effect: Effect): Carrier => {
  const newest = effect.carriers.at(-1)
  if (!newest) throw new Error(`effect ${effect.id} has nothing to carry it`)
  return newest
}

async function look(effect: Effect, chain: EvmPort['chain']): Promise<Omit<Sight, 'doubt'>> {
  const { head, receipts } = await chain.receipts(effect.carriers.map((carrier) => carrier.extId))
  const mined = receipts.find((receipt) => receipt !== undefined)
  const final = mined !== undefined && head.number - mined.block + 1n >= BigInt(chain.row.confirmations)
  return { head, receipts, mined, final }
}

/** The receipt is final. Only the expected events prove the deed: a green status alone proves nothing. */
async function judge(follow: Follow, sight: Sight, receipt: Receipt): Promise<StepResult> {
  const { task, effect, port, rules } = follow
  rules.landed?.(task)
  const account = String((effect.intent.batch as JsonObject).account)
  const settled = receipt.success ? await rules.settle(task, receipt) : undefined
  if (settled) {
    return {
      end: 'completed',
      outcome: settled.outcome ?? 'executed',
      result: settled.result,
      moves: settled.moves ?? [],
      events: settled.events ?? [],
      effects: [{ effectId: effect.id, status: 'confirmed', carrierExtId: receipt.txHash }],
      ...(settled.also && { also: settled.also }),
      data: {
        ...settled.data,
        transactions: transactionsOf(follow, sight, 'finalized'),
        balance_changes: balanceChangesOf(port.chain, receipt, account, rules.tokens ?? []),
      },
    }
  }
  const executed = await port.chain.executed(account, task.id, receipt.block)
  if (executed > 0n) return review(follow, sight)
  // All carriers share one nonce, which is spent, and the batch names their sender: nothing can execute it any more.
  return dropped(follow, sight, {
    code: 'tx_failed',
    message: await failureOf(follow, receipt),
    proof: { block: String(receipt.block), tx_hash: receipt.txHash, executions: 0 },
  })
}

async function failureOf({ effect, port: { chain } }: Follow, receipt: Receipt): Promise<string> {
  if (receipt.success) return 'The transaction was mined but did not run the batch'
  const batch = effect.intent.batch as {
    account: string
    calls: { to: string; value: string; data: string }[]
  }
  const calls = batch.calls.map(({ to, value, data }) => ({ to, data, value: BigInt(value) }))
  const again = await chain.simulate(batch.account, calls)
  return again.ok ? 'The transaction was mined and reverted' : `The transaction reverted: ${again.reason}`
}

/** No receipt, and none can come: the deadline passed at a final block in which the batch had not run. */
async function giveUp(follow: Follow, { head }: Sight): Promise<StepResult | undefined> {
  const { task, effect, port } = follow
  const { chain } = port
  const { account, deadlineSeconds } = effect.intent.batch as { account: string; deadlineSeconds: number }
  const finalBlock = head.number - BigInt(chain.row.confirmations - 1)
  if (head.timestampSeconds <= deadlineSeconds || finalBlock < 0n) return undefined
  const final = await chain.headAt(finalBlock)
  if (final.timestampSeconds <= deadlineSeconds) return undefined
  const executed = await chain.executed(account, task.id, finalBlock)
  const sight = await look(effect, chain)
  // It ran, yet no receipt of ours shows it: a node that lags, or one that forgets.
  if (executed > 0n || sight.mined) return sight.mined ? undefined : review(follow, sight)
  return dropped(follow, sight, {
    code: 'expired',
    message: 'The chain did not take the transaction before its deadline',
    proof: {
      block: String(final.number),
      block_time: final.timestampSeconds,
      deadline: deadlineSeconds,
      executions: 0,
    },
  })
}

/** Only the first open number of a lane is replaced: those behind it wait for it, not for a higher fee. */
async function replaceStuck(follow: Follow, sight: Sight): Promise<StepResult | undefined> {
  // A node that takes nothing is not convinced by a higher fee.
  if (sight.doubt) return undefined
  const { effect, port, now } = follow
  const { chain, sponsor } = port
  const newest = newestOf(effect)
  if (now.getTime() - newest.at.getTime() < chain.row.stuckAfterMs) return undefined
  const mined = await chain.transactionCount(newest.lane.signer, 'latest')
  if (mined !== newest.nonce) return undefined
  const how = await sponsor.replacementOf(newest.raw)
  if (!how) return undefined
  return {
    replace: {
      effectId: effect.id,
      lane: newest.lane,
      build: () => sponsor.replace(newest.raw, newest.lane.signer, how),
    },
    next: 'confirm',
    state: 'submitted',
    data: { transactions: transactionsOf(follow, sight, 'pending') },
  }
}

const update = ({ effect }: Follow, status: EffectUpdate['status']): EffectUpdate[] => [
  { effectId: effect.id, status },
]

/** The waits double, so that a slow chain is not asked for ever at the pace of a quick one. */
function parking({ task }: Follow): { data: JsonObject; park: { afterMs: number; next: string } } {
  const polls = Number(task.data.polls ?? 0)
  const afterMs = Math.min(parkFirstMs * 2 ** Math.min(polls, 10), parkMostMs)
  return { data: { polls: polls + 1 }, park: { afterMs, next: 'confirm' } }
}

function waiting(follow: Follow, sight: Sight): StepResult {
  const { data, park } = parking(follow)
  const lost = sight.doubt && !sight.mined
  return {
    park,
    state: lost ? 'reconciling' : sight.mined ? 'confirming' : 'submitted',
    ...(lost && { outcome: 'unknown' as const }),
    effects: update(follow, lost ? 'unknown' : 'sent'),
    data: { ...data, transactions: transactionsOf(follow, sight, sight.mined ? 'confirmed' : 'pending') },
  }
}

function unknown(follow: Follow): StepResult {
  const { data, park } = parking(follow)
  return { park, data, state: 'reconciling', outcome: 'unknown', effects: update(follow, 'unknown') }
}

function review(follow: Follow, sight: Omit<Sight, 'doubt'>): StepResult {
  const { data, park } = parking(follow)
  return {
    park,
    state: 'review',
    outcome: 'unknown',
    effects: update(follow, 'unknown'),
    data: { ...data, transactions: transactionsOf(follow, sight, 'pending') },
  }
}

type Death = { code: string; message: string; proof: JsonObject }

function dropped(follow: Follow, sight: Omit<Sight, 'doubt'>, { code, message, proof }: Death): StepResult {
  const { effect, port } = follow
  return {
    end: 'failed',
    outcome: 'not_executed',
    error: { code, message, retryable: false, upstream: port.chain.row.displayName },
    effects: [{ effectId: effect.id, status: 'dropped', proof }],
    data: { transactions: transactionsOf(follow, sight, 'dropped') },
  }
}
