import type { Lanes } from '#durable/lanes.ts'
import { Fault } from '#kernel/fault.ts'
import type { EffectUpdate, JsonObject, Step, StepResult } from '#kernel/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { BatchRules, EvmPort } from './batch.ts'
import { type Follow, finalBlockOf, look, newestOf, type Sight, watch } from './chain-state.ts'
import type { GasBudget } from './gas-budget.ts'
import { balanceChangesOf, transactionsOf } from './mined.ts'
import { renumberTaken, replaceStuck } from './replace-carrier.ts'

const parkFirstMs = 1_000
const parkMostMs = 15_000

type Needs = {
  portOf: (chainId: string) => EvmPort
  lanes: Pick<Lanes, 'take'>
  gasBudget: Pick<GasBudget, 'settle'>
  rules: BatchRules
}

export const confirmStep =
  ({ portOf, lanes, gasBudget, rules }: Needs): Step =>
  async (task, { now, signal }) => {
    const effect = task.effects.findLast((each) => each.kind === 'evm_batch')
    if (!effect) throw new Error(`task ${task.id} confirms a batch that was never stored`)
    const follow = { task, effect, lanes, gasBudget, rules, now, port: portOf(String(effect.intent.chainId)) }
    try {
      const sight = await watch(follow, signal)
      if (sight.mined && sight.final) return await judge(follow, sight, sight.mined)
      if (sight.mined) return waiting(follow, sight)
      return (
        (await giveUp(follow, sight)) ??
        (await renumberTaken(follow, sight)) ??
        (await replaceStuck(follow, sight)) ??
        waiting(follow, sight)
      )
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault
      return unknown(follow)
    }
  }

/** The receipt is final. Only the expected events prove the deed: a green status alone proves nothing. */
async function judge(follow: Follow, sight: Sight, receipt: Receipt): Promise<StepResult> {
  const { task, effect, port, rules } = follow
  // A receipt of a block that is not the chain's own any more proves nothing.
  const block = await port.chain.headAt(receipt.block)
  if (block.hash.toLowerCase() !== receipt.blockHash.toLowerCase())
    return waiting(follow, { ...sight, mined: undefined, final: false })
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
      also: async (tx) => {
        // The budget's row comes first, as where a task is accepted.
        await follow.gasBudget.settle(tx, task.id, receipt.feeWei)
        await settled.also?.(tx)
      },
      data: {
        ...settled.data,
        transactions: transactionsOf(follow, sight, 'finalized'),
        balance_changes: balanceChangesOf(port.chain, receipt, account, rules.tokens ?? []),
      },
    }
  }
  const { times: executed } = await port.chain.executed(account, task.id, receipt.block)
  if (executed > 0n) return review(follow, sight)
  // The batch names its sender: nothing can execute it any more once every number that carries it is spent.
  const spent = await port.chain.transactionCount(
    newestOf(effect).lane.signer,
    finalBlockOf(port, sight.head),
  )
  if (effect.carriers.some(({ nonce }) => nonce >= spent)) return waiting(follow, sight)
  const end = dropped(follow, sight, {
    code: 'tx_failed',
    message: await failureOf(follow, receipt),
    proof: { block: String(receipt.block), tx_hash: receipt.txHash, executions: 0 },
  })
  return { ...end, also: (tx) => follow.gasBudget.settle(tx, task.id, receipt.feeWei) }
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
  const finalBlock = finalBlockOf(port, head)
  if (head.timestampSeconds <= deadlineSeconds || finalBlock < 0n) return undefined
  const final = await chain.headAt(finalBlock)
  if (final.timestampSeconds <= deadlineSeconds) return undefined
  const { times: executed, timestampSeconds } = await chain.executed(account, task.id, finalBlock)
  // The state that was asked says by its own clock whether the deadline had passed in it.
  if (timestampSeconds <= deadlineSeconds) return undefined
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
