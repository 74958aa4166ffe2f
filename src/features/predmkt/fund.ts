import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type {
  EndResult,
  FailedResult,
  JsonObject,
  StepContext,
  StepResultOf,
  Steps,
  TaskView,
} from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { rampOf, type WrapToken, wrapCalls, wrapFacts, wrapSpend } from './fund-admission.ts'
import type { FundTaskData } from './fund-task.ts'
import { relayDriver } from './relay-action.ts'

/** Wraps dollars to the funded wallet by a sponsored batch, after a swap where the source was another token. */

export type FundStepName = 'relay' | 'relayed' | 'swap' | 'swapped' | 'track' | 'deposit' | 'sign' | 'confirm'
type FundTask = TaskView<FundTaskData>
type Result = StepResultOf<Partial<FundTaskData>, FundStepName>

const pollBackoff = { firstMs: 300, maxMs: 5_000 }
const depositHold = (taskId: string): string => `${taskId}:deposit`
const tokenOf = ({ token, symbol }: FundTaskData): WrapToken => ({ token, symbol })

export function fundSteps(deps: PredmktDeps): Steps<FundTaskData, FundStepName> {
  const wrap = wrapEffect(deps)
  const legs = deps.swapLeg.swapLegSteps<FundTaskData, FundStepName>(deps.swaps, {
    onEnd: (task, end, now) => afterSwap(deps, task, { end, now }),
    onRefused: (task, { code, message }) =>
      swapFailed(deps, task, { end: 'failed', outcome: 'not_executed', error: { code, message } }),
  })
  const inWallet = walletWrapEffect(deps)
  return {
    ...legs,
    relay: inWallet.sign,
    relayed: inWallet.confirm,
    deposit: (task, context) => prepareWrap(deps, task, context),
    sign: afterSwapStep(deps, wrap.sign),
    confirm: afterSwapStep(deps, wrap.confirm),
  } as Steps<FundTaskData, FundStepName>
}

/** The cash that the venue's contract paid to the wallet proves the wrapping. */
const arrivedUnits = (deps: PredmktDeps, { wallet }: FundTaskData, receipt: Receipt): bigint =>
  deps.chain
    .transfers(receipt)
    .filter(
      ({ token, to }) =>
        token.toLowerCase() === moneyOf(deps).cashToken.toLowerCase() &&
        to.toLowerCase() === wallet.wallet.toLowerCase(),
    )
    .reduce((sum, { amountUnits }) => sum + amountUnits, 0n)

const wrapEffect = (deps: PredmktDeps) =>
  createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: deps.batches.driver<FundTaskData, Receipt, FundStepName>({
      onFinal: ({ userId }) => deps.changed(userId, deps.chain.row.id),
      prove: ({ data }, receipt) =>
        arrivedUnits(deps, data, receipt) >= BigInt(data.units) ? receipt : undefined,
    }),
    plan({ data }) {
      const units = BigInt(data.units)
      return {
        ...wrapFacts(deps, tokenOf(data), units),
        account: data.account,
        calls: wrapCalls(deps, { token: data.token, units, to: data.wallet.wallet }),
        spends: [{ token: data.token, amountUnits: units, spender: rampOf(deps, data.token) }],
      }
    },
    settle: (task, receipt, { now }) => wrapped(deps, task, receipt, now),
  })

/** Wraps dollars that lie in the funded wallet itself, by a call of that wallet. */
const walletWrapEffect = (deps: PredmktDeps) =>
  createEffect({
    steps: { sign: 'relay', confirm: 'relayed' },
    driver: relayDriver<FundTaskData, FundStepName>(deps, {
      prove: ({ data }, receipt) =>
        receipt !== null && arrivedUnits(deps, data, receipt) >= BigInt(data.units),
    }),
    plan({ data }) {
      const units = BigInt(data.units)
      const calls = wrapCalls(deps, { token: data.token, units, to: data.wallet.wallet })
      return { calls, facts: { ...wrapFacts(deps, tokenOf(data), units), exit: false } }
    },
    settle(task, { receipt }, { now }) {
      const { spent, ...ended } = wrapped(deps, task, receipt!, now)
      return task.data.is_reserved ? { ...ended, spent: spent! } : ended
    },
  })

function wrapped(
  deps: PredmktDeps,
  task: FundTask,
  receipt: Receipt,
  now: Date,
): EndResult<Partial<FundTaskData>> {
  const { data } = task
  const units = arrivedUnits(deps, data, receipt)
  const spentUnits = BigInt(data.units)
  return {
    end: 'completed',
    outcome: 'executed',
    // After a swap, which spent the task's own hold, the wrapping has a separate hold.
    ...(data.swapped
      ? { moves: [{ move: 'post', key: depositHold(task.id), amountUnits: spentUnits }] }
      : { spent: spentUnits }),
    result: {
      amount: String(units),
      amount_usd: fromUnits(units, usdcDecimals),
      fee_usd: data.swap ? deps.swapLeg.swapFeesUsd(data) : '0',
      chain_id: deps.chain.row.id,
      token_address: moneyOf(deps).cashToken,
      tx_hash: receipt.txHash,
      credited_at: now.toISOString(),
    },
    data: { progress: null },
    async writes(tx) {
      await query(
        tx,
        `insert into prediction_transfer (task_id, user_id, venue, type, amount, tx_hash, at)
         values ($1, $2, $3, 'deposit', $4, $5, $6) on conflict (task_id) do nothing`,
        [task.id, task.userId, deps.venue.name, String(units), receipt.txHash, now],
      )
    },
  }
}

type SwapEnd = Parameters<Parameters<PredmktDeps['swapLeg']['swapLegSteps']>[1]['onEnd']>[1]

function afterSwap(deps: PredmktDeps, task: FundTask, { end, now }: { end: SwapEnd; now: Date }): Result {
  if (end.end !== 'completed') return swapFailed(deps, task, end)
  const { end: _end, outcome: _outcome, result: _result, ...committed } = end
  const swapped = deps.swapLeg.swappedOf(end, now)
  return {
    ...(committed as Record<never, never>),
    next: 'deposit',
    state: 'settling',
    data: {
      ...(committed.data as Partial<FundTaskData>),
      polls: 0,
      swapped,
      units: swapped.units,
      progress: { step: 2, of: 2, text: 'Move to the wallet at the venue' },
    },
  }
}

const swapFailed = (
  deps: PredmktDeps,
  { data }: FundTask,
  end: Exclude<SwapEnd, { end: 'completed' }>,
): FailedResult<Record<never, never>> =>
  ({
    ...end,
    result: {
      ...nothingArrived(deps),
      remaining: { ...deps.swapLeg.remainingAfter(data, end) },
    },
  }) as FailedResult<Record<never, never>>

const nothingArrived = (deps: PredmktDeps): JsonObject => ({
  amount: '0',
  amount_usd: '0',
  fee_usd: '0',
  chain_id: deps.chain.row.id,
  token_address: moneyOf(deps).cashToken,
  tx_hash: null,
  credited_at: null,
})

/** Prepares the wrapping of what the swap brought; where it cannot follow, the task says that the money is in the wallet. */
async function prepareWrap(deps: PredmktDeps, task: FundTask, { now }: StepContext): Promise<Result> {
  const { id: taskId, userId, data } = task
  const ageMs = deps.swapLeg.ageOf(data.swapped!, now)
  if (ageMs > deps.swapLeg.secondLegMs)
    return wrapFailed(deps, task, {
      code: 'expired',
      message: 'The money could not be moved to the venue in time',
    })
  const swapEffect = task.effects.findLast(
    ({ step, status }) => step === deps.swapLeg.swapStepNames.sign && status === 'confirmed',
  )
  const refused = (fault: Fault): Result =>
    deps.swapLeg.mayPass(fault, ageMs)
      ? { ...pollAgain(task, 'deposit', pollBackoff), state: 'waiting' }
      : wrapFailed(deps, task, fault)
  try {
    const units = BigInt(data.units)
    const spend = await wrapSpend(deps, {
      userId,
      account: data.account,
      to: data.wallet.wallet,
      token: tokenOf(data),
      units,
    })
    return {
      next: 'sign',
      state: 'held',
      async writes(tx) {
        // The wrapping counts the same money against the limits, so what the swap has counted is released.
        if (swapEffect) await deps.policy.release(tx, { userId, taskId, intent: swapEffect.intent })
        await deps.reserve(tx, task, { ...spend, holdKey: depositHold(taskId) }, now)
      },
      onWritesRefused: refused,
    }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return refused(fault)
  }
}

function wrapFailed(
  deps: PredmktDeps,
  { id, data }: FundTask,
  { code, message }: { code: string; message: string },
): FailedResult<Record<never, never>> {
  const { row } = deps.chain
  const { units, txHash } = data.swapped!
  return {
    end: 'failed',
    outcome: 'partial',
    error: {
      code,
      message: `${message.replace(/[.\s]+$/, '')}; the swap was executed, and its ${fromUnits(BigInt(units), usdcDecimals)} ${data.symbol} are in your wallet on ${row.displayName}`,
      retryable: false,
    },
    result: {
      ...nothingArrived(deps),
      remaining: {
        place: 'wallet',
        chain_id: row.id,
        token_address: data.token,
        symbol: data.symbol,
        amount: units,
        account: data.account,
        tx_hash: txHash,
      },
    },
    writes: (tx) => deps.batches.releaseGas(tx, id),
  }
}

type Step = (task: FundTask, context: StepContext) => Promise<Result>
const afterSwapStep =
  (deps: PredmktDeps, step: Step): Step =>
  async (task, context) => {
    if (!task.data.swapped) return step(task, context)
    const result = await step(task, context)
    if ('sign' in result)
      return { ...result, sign: { ...result.sign, onRefused: (fault) => wrapFailed(deps, task, fault) } }
    if (!('end' in result) || result.end === 'completed') return result
    const failed = wrapFailed(deps, task, result.error)
    return { ...result, ...failed }
  }
