import type { SwapAfterStep } from '#features/perp/withdraw-swap.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type {
  EndResult,
  FailedResult,
  StepContext,
  StepResultOf,
  Steps,
  TaskView,
  Tx,
} from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { cashLedgerToken, cashSymbol, moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { walletAccount } from './fund-admission.ts'
import { relayDriver } from './relay-action.ts'
import { admitWithdraw, symbols, type WithdrawTaskData, withdrawFacts } from './withdraw-admission.ts'
import { onwardSteps } from './withdraw-onward.ts'

/**
 * The relayer sends cash to the user's own account without gas; a sponsored batch of that account unwraps it, and a swap
 * brings it to another chain or coin.
 */

type StepName = 'sign' | 'confirm' | 'prepare' | 'unwrap' | 'unwrapped' | SwapAfterStep
type WithdrawTask = TaskView<WithdrawTaskData>
type Result = StepResultOf<Partial<WithdrawTaskData>, StepName>

export const createWithdraw = (deps: PredmktDeps) =>
  taskOf({ admit: admitWithdraw(deps), steps: withdrawSteps(deps) })

function withdrawSteps(deps: PredmktDeps): Steps<WithdrawTaskData, StepName> {
  const relayed = transferEffect(deps)
  const unwrapped = unwrapEffect(deps)
  return {
    sign: relayed.sign,
    confirm: relayed.confirm,
    prepare: afterTransfer(deps, (task, context) => prepareUnwrap(deps, task, context)),
    unwrap: afterTransfer(deps, unwrapped.sign),
    unwrapped: afterTransfer(deps, unwrapped.confirm),
    ...onwardSteps(deps),
  } as Steps<WithdrawTaskData, StepName>
}

const sentTo = (deps: PredmktDeps, token: string, account: string, receipt: Receipt): bigint =>
  deps.chain
    .transfers(receipt)
    .filter(
      (log) =>
        log.token.toLowerCase() === token.toLowerCase() && log.to.toLowerCase() === account.toLowerCase(),
    )
    .reduce((sum, { amountUnits }) => sum + amountUnits, 0n)

const transferEffect = (deps: PredmktDeps) =>
  createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: relayDriver<WithdrawTaskData, StepName>(deps, {
      prove: ({ data }, receipt) =>
        receipt !== null &&
        sentTo(deps, moneyOf(deps).cashToken, data.account, receipt) >= BigInt(data.units),
    }),
    plan: ({ data }) => ({
      calls: [moneyOf(deps).transferCall(data.account, BigInt(data.units))],
      facts: withdrawFacts(deps, data.account),
    }),
    settle(task, { txHash }, { now }) {
      const { data } = task
      const spent = BigInt(data.units)
      const writes = (tx: Tx) => noteWithdrawal(tx, deps, { task, txHash, now })
      if (data.token === 'pusd')
        return {
          ...arrived(deps, { units: spent, txHash, token: moneyOf(deps).cashToken, now }),
          spent,
          writes,
        }
      return { next: 'prepare', state: 'settling', spent, data: { sent_tx: txHash, polls: 0 }, writes }
    },
  })

const unwrapHold = (taskId: string): string => `${taskId}:unwrap`
const pollBackoff = { firstMs: 300, maxMs: 5_000 }
/** How long a node may lag behind the one that showed the arrival of the cash. */
const lagMs = 60_000

/** Reserves the cash in the user's own account once a node shows it there. */
async function prepareUnwrap(deps: PredmktDeps, task: WithdrawTask, { now }: StepContext): Promise<Result> {
  const { db, ledger, chain, batches } = deps
  const { account, units: text, prepared_ms: sinceMs = now.getTime() } = task.data
  const units = BigInt(text)
  const { cashToken } = moneyOf(deps)
  const ref = walletAccount(deps, task.userId, cashToken)
  const readBalance = async () => {
    const { version } = await ledger.balance(db, ref)
    const { tokens } = await chain.balances(account, [cashToken])
    return { totalUnits: tokens[0] ?? 0n, version }
  }
  const [seen, trial] = await Promise.all([
    readBalance(),
    unwrapCalls(deps, task.data, units).then((calls) => batches.simulate(chain.row.id, account, calls)),
  ])
  const refused = ({ message }: { message: string }): Result => {
    if (now.getTime() - sinceMs >= lagMs) return notExecuted({ code: 'conflict', message })
    const polled = pollAgain(task, 'prepare', pollBackoff)
    return { ...polled, state: 'settling', data: { ...polled.data, prepared_ms: sinceMs } }
  }
  if (!trial.ok) return refused({ message: `The venue unwraps nothing now: ${trial.reason}` })
  if (seen.totalUnits < units) return refused({ message: 'The cash did not show in the wallet in time' })
  const spend = {
    account: ref,
    amountUnits: units,
    token: cashLedgerToken(deps),
    seen: { ...seen, reread: readBalance },
  }
  return {
    next: 'unwrap',
    state: 'settling',
    data: { polls: 0 },
    writes: (tx) => deps.reserve(tx, task, { ...spend, holdKey: unwrapHold(task.id) }, now),
    onWritesRefused: refused,
  }
}

type Arrival = { units: bigint; txHash: string | null; token: string; now: Date }

function arrived(
  deps: PredmktDeps,
  { units, txHash, token, now }: Arrival,
): EndResult<Partial<WithdrawTaskData>> {
  return {
    end: 'completed',
    outcome: 'executed',
    result: {
      amount: String(units),
      amount_usd: fromUnits(units, usdcDecimals),
      fee_usd: '0',
      chain_id: deps.chain.row.id,
      token_address: token,
      tx_hash: txHash,
      credited_at: now.toISOString(),
    },
    data: { progress: null },
  }
}

type Noted = { task: WithdrawTask; txHash: string | null; now: Date }
async function noteWithdrawal(tx: Tx, { venue }: PredmktDeps, { task, txHash, now }: Noted) {
  await query(
    tx,
    `insert into prediction_transfer (task_id, user_id, venue, type, amount, tx_hash, at)
     values ($1, $2, $3, 'withdrawal', $4, $5, $6) on conflict (task_id) do nothing`,
    [task.id, task.userId, venue.name, task.data.units, txHash, now],
  )
}

/** The tokens that the cash may be unwrapped to, the one that was asked for first: the venue can pause one. */
function targets(deps: PredmktDeps, { token }: WithdrawTaskData) {
  const { wrappable } = moneyOf(deps)
  const asked = wrappable.filter(({ symbol }) => symbol === symbols[token])
  return [...asked, ...wrappable.filter((each) => !asked.includes(each))]
}

const unwrapEffect = (deps: PredmktDeps) =>
  createEffect({
    steps: { sign: 'unwrap', confirm: 'unwrapped' },
    driver: deps.batches.driver<WithdrawTaskData, Receipt, StepName>({
      onFinal: ({ userId }) => deps.changed(userId, deps.chain.row.id),
      prove: ({ data }, receipt) => (paid(deps, data, receipt) ? receipt : undefined),
    }),
    async plan({ data }) {
      const units = BigInt(data.units)
      const calls = await unwrapCalls(deps, data, units)
      const { cashToken } = moneyOf(deps)
      const ramp = calls.at(-1)!.to
      return {
        ...withdrawFacts(deps, data.account),
        recipients: [ramp],
        account: data.account,
        calls,
        spends: [{ token: cashToken, amountUnits: units, spender: ramp }],
        fullExit: data.full_exit,
      }
    },
    settle(task, receipt, { now }) {
      const { token, units } = paid(deps, task.data, receipt)!
      const posted = { move: 'post' as const, key: unwrapHold(task.id), amountUnits: BigInt(task.data.units) }
      const { txHash } = receipt
      if (!task.data.destination) return { ...arrived(deps, { units, token, txHash, now }), moves: [posted] }
      const next = deps.swapAfter.swapNext({ units: String(units), txHash, at: now.toISOString() })
      return { ...next, data: { ...next.data, received_token: token }, moves: [posted] }
    },
  })

function paid(deps: PredmktDeps, data: WithdrawTaskData, receipt: Receipt) {
  return targets(deps, data)
    .map(({ token }) => ({ token, units: sentTo(deps, token, data.account, receipt) }))
    .find(({ units }) => units >= BigInt(data.units))
}

async function unwrapCalls(deps: PredmktDeps, data: WithdrawTaskData, units: bigint) {
  const money = moneyOf(deps)
  const options = targets(deps, data).map(({ token }) => money.unwrapCalls(token, units, data.account))
  for (const calls of options) {
    const trial = await deps.batches.simulate(deps.chain.row.id, data.account, calls)
    if (trial.ok) return calls
  }
  return options[0]!
}

type Step = (task: WithdrawTask, context: StepContext) => Promise<Result>
/** The cash has left the venue: whatever the unwrapping does, it is in the user's own account. */
const afterTransfer =
  (deps: PredmktDeps, step: Step): Step =>
  async (task, context) => {
    const stays = (error: { code: string; message: string }): FailedResult<Record<never, never>> => ({
      end: 'failed',
      outcome: 'partial',
      error: {
        code: error.code,
        message: `${error.message.replace(/[.\s]+$/, '')}; ${fromUnits(BigInt(task.data.units), usdcDecimals)} ${cashSymbol} are in your own wallet on ${deps.chain.row.displayName}`,
        retryable: false,
      },
      result: {
        amount: '0',
        amount_usd: '0',
        fee_usd: '0',
        chain_id: deps.chain.row.id,
        token_address: moneyOf(deps).cashToken,
        tx_hash: task.data.sent_tx ?? null,
        credited_at: null,
      },
      writes: (tx) => deps.batches.releaseGas(tx, task.id),
    })
    const withPlace = (result: Result): Result =>
      !('end' in result) || result.end === 'completed' ? result : { ...result, ...stays(result.error) }
    const result = await step(task, context)
    if ('sign' in result) return { ...result, sign: { ...result.sign, onRefused: stays } }
    if (!('onWritesRefused' in result) || !result.onWritesRefused) return withPlace(result)
    const { onWritesRefused } = result
    return { ...result, onWritesRefused: (fault) => withPlace(onWritesRefused(fault)) }
  }
