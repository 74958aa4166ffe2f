import type { SwapAfterStep } from '#features/perp/withdraw-swap.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import { isLookingUp, nothingFound, outsideId } from '#kernel/task/forgotten-execution.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type {
  EndResult,
  FailedResult,
  Move,
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
import { findLostTransfer, findOwnTransfer } from './forgotten-transfer.ts'
import { walletAccount } from './fund-admission.ts'
import { relayDriver } from './relay-action.ts'
import {
  admitWithdraw,
  isRampPaused,
  rampPaused,
  readOwnCash,
  unitsThere,
  unwrapTokens,
  venueUnitsOf,
  type WithdrawTaskData,
  withdrawFacts,
} from './withdraw-admission.ts'
import { onwardSteps } from './withdraw-onward.ts'

/**
 * The relayer sends cash to the user's own account without gas; a sponsored batch of that account unwraps it, and a swap
 * brings it to another chain or coin.
 */

type StepName = 'sign' | 'confirm' | 'prepare' | 'unwrap' | 'unwrapped' | SwapAfterStep
type WithdrawTask = TaskView<WithdrawTaskData>
type Result = StepResultOf<Partial<WithdrawTaskData>, StepName>

export const createWithdraw = (deps: PredmktDeps) =>
  taskOf({ admit: admitWithdraw(deps), steps: withdrawSteps(deps), looksUp: true })

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
        sentTo(deps, moneyOf(deps).cashToken, data.account, receipt) >= venueUnitsOf(data),
      findLost: (task) => findLostTransfer(deps, task),
      findRun: (task) => findOwnTransfer(deps, task),
    }),
    async plan(task, { now }) {
      const { data } = task
      const own = await ownSpend(deps, task)
      return {
        // Otherwise another withdrawal takes it while the transfer is on its way.
        ...(own && {
          data: { is_own_reserved: true },
          writes: (tx: Tx) => deps.reserve(tx, task, own, now),
        }),
        calls: [moneyOf(deps).transferCall(data.account, venueUnitsOf(data))],
        facts: withdrawFacts(deps, data.account),
        waits: async () =>
          data.token !== 'pusd' && (await isRampPaused(deps)) ? waitForRamp(task, 'sign', now) : undefined,
      }
    },
    async settle(task, { txHash }, { now }) {
      const { data } = task
      const spent = venueUnitsOf(data)
      const writes = (tx: Tx) => noteWithdrawal(tx, deps, { task, txHash, now })
      if (data.token === 'pusd')
        return {
          ...arrived(deps, { units: spent, txHash, token: moneyOf(deps).cashToken, now }),
          spent,
          writes,
        }
      const spend = await unwrapSpend(deps, task)
      return {
        next: 'prepare',
        state: 'settling',
        spent,
        data: { sent_tx: txHash, polls: 0 },
        writes,
        // Otherwise another withdrawal takes the cash for some that a failed one has left there.
        complete: async (tx) => ({ data: { is_reserved: await tryReserve(deps, tx, task, { spend, now }) } }),
      }
    },
  })

const unwrapHold = (taskId: string): string => `${taskId}:unwrap`
const ownHold = (taskId: string): string => `${taskId}:own`
const ownUnitsOf = (data: WithdrawTaskData): bigint => BigInt(data.units) - venueUnitsOf(data)
const pollBackoff = { firstMs: 300, maxMs: 5_000 }
const pausedBackoff = { firstMs: 1_000, maxMs: 60_000 }
/** How long a node may lag behind the one that showed the arrival of the cash. */
const lagMs = 60_000

const isOwnOnly = (data: WithdrawTaskData): boolean => venueUnitsOf(data) === 0n

/** Waits until the venue unwraps again; the task says so meanwhile, and goes on until its deadline. */
function waitForRamp(task: WithdrawTask, next: 'sign' | 'prepare' | 'unwrap', now: Date): Result {
  if (now >= task.deadline) return notExecuted({ code: 'expired', message: rampPaused })
  const polled = pollAgain(task, next, pausedBackoff)
  return {
    ...polled,
    state: 'waiting',
    data: { ...polled.data, note: rampPaused, progress: { step: 1, of: 1, text: rampPaused } },
  }
}

/** Reserves the cash in the user's own account once a node shows it there. */
async function prepareUnwrap(deps: PredmktDeps, task: WithdrawTask, { now }: StepContext): Promise<Result> {
  const { chain, batches } = deps
  const { account, units: text, prepared_ms: sinceMs = now.getTime() } = task.data
  const units = BigInt(text)
  const next = { next: 'unwrap' as const, state: 'settling' as const }
  const data = { polls: 0, note: null, progress: null }
  const { executionId } = task
  // An earlier task of the execution, which this database has lost, may have unwrapped it.
  const isUnwrapped =
    outsideId(task) !== undefined &&
    (await batches.executed({ chainId: chain.row.id, account, executionId })) !== undefined
  if (isUnwrapped) return { ...next, data: { ...data, was_unwrapped: true } }
  // A cancel or the deadline comes first once nothing was found.
  if (isLookingUp(task)) return nothingFound('prepare')
  if (await isRampPaused(deps)) return waitForRamp(task, 'prepare', now)
  const [spend, trial] = await Promise.all([
    unwrapSpend(deps, task),
    unwrapCalls(deps, task.data, units).then((calls) => batches.simulate(chain.row.id, account, calls)),
  ])
  const refused = ({ message }: { message: string }): Result => {
    if (now.getTime() - sinceMs >= lagMs) return notExecuted({ code: 'conflict', message })
    const polled = pollAgain(task, 'prepare', pollBackoff)
    return { ...polled, state: 'settling', data: { ...polled.data, prepared_ms: sinceMs } }
  }
  if (!trial.ok) return refused({ message: `The venue unwraps nothing now: ${trial.reason}` })
  if (spend.seen.totalUnits < units)
    return refused({ message: 'The cash did not show in the wallet in time' })
  // The acceptance has reserved what lay in the own account already.
  if (isOwnOnly(task.data) || task.data.is_reserved) return { ...next, data }
  return {
    ...next,
    data,
    writes: (tx) => deps.reserve(tx, task, spend, now),
    onWritesRefused: refused,
  }
}

/** The cash of a withdrawal in the user's own account, as a node shows it now. */
async function unwrapSpend(deps: PredmktDeps, { id, userId, data }: WithdrawTask) {
  const readBalance = () => readOwnCash(deps, { userId, account: data.account })
  const { totalUnits, version } = await readBalance()
  return {
    account: walletAccount(deps, userId, moneyOf(deps).cashToken),
    amountUnits: data.is_own_reserved ? venueUnitsOf(data) : BigInt(data.units),
    token: cashLedgerToken(deps),
    seen: { totalUnits, version, reread: readBalance },
    holdKey: unwrapHold(id),
  }
}

/** What of a withdrawal lies in the user's own account already, unless it is reserved or there is none. */
async function ownSpend(deps: PredmktDeps, task: WithdrawTask) {
  const { id, data } = task
  if (data.is_own_reserved || ownUnitsOf(data) === 0n) return undefined
  return { ...(await unwrapSpend(deps, task)), amountUnits: ownUnitsOf(data), holdKey: ownHold(id) }
}

type Reserving = { spend: Awaited<ReturnType<typeof unwrapSpend>>; now: Date }

/** Reserves the cash that has just arrived; false where the node does not show it yet. */
const tryReserve = (
  deps: PredmktDeps,
  tx: Tx,
  task: WithdrawTask,
  { spend, now }: Reserving,
): Promise<boolean> =>
  deps.reserve(tx, task, spend, now).then(
    () => true,
    (fault: unknown) => {
      if (fault instanceof Fault) return false
      throw fault
    },
  )

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
    data: { progress: null, note: null },
  }
}

type Noted = { task: WithdrawTask; txHash: string | null; now: Date }
async function noteWithdrawal(tx: Tx, { venue }: PredmktDeps, { task, txHash, now }: Noted) {
  await query(
    tx,
    `insert into prediction_transfer (task_id, user_id, venue, type, amount, tx_hash, at)
     values ($1, $2, $3, 'withdrawal', $4, $5, $6) on conflict (task_id) do nothing`,
    [task.id, task.userId, venue.name, String(venueUnitsOf(task.data)), txHash, now],
  )
}

const unwrapEffect = (deps: PredmktDeps) =>
  createEffect({
    steps: { sign: 'unwrap', confirm: 'unwrapped' },
    driver: deps.batches.driver<WithdrawTaskData, Receipt, StepName>({
      onFinal: ({ userId }) => deps.changed(userId, deps.chain.row.id),
      prove: ({ data }, receipt) => (paid(deps, data, receipt) ? receipt : undefined),
    }),
    async plan(task, { now }) {
      const { data } = task
      const units = BigInt(data.units)
      if (!data.was_unwrapped && (await isRampPaused(deps))) return waitForRamp(task, 'unwrap', now)
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
      const { data } = task
      const { token, units } = paid(deps, data, receipt)!
      const spentUnits = BigInt(data.units)
      const spent = isOwnOnly(data)
        ? { spent: spentUnits }
        : data.was_unwrapped
          ? {}
          : { moves: postsOf(task) }
      const { txHash } = receipt
      if (!data.destination) return { ...arrived(deps, { units, token, txHash, now }), ...spent }
      const next = deps.swapAfter.swapNext({ units: String(units), txHash, at: now.toISOString() })
      return { ...next, data: { ...next.data, received_token: token, note: null }, ...spent }
    },
  })

function postsOf({ id, data }: WithdrawTask): Move[] {
  const units = BigInt(data.units)
  if (!data.is_own_reserved) return [{ move: 'post', key: unwrapHold(id), amountUnits: units }]
  return [
    { move: 'post', key: unwrapHold(id), amountUnits: venueUnitsOf(data) },
    { move: 'post', key: ownHold(id), amountUnits: ownUnitsOf(data) },
  ]
}

function paid(deps: PredmktDeps, data: WithdrawTaskData, receipt: Receipt) {
  return unwrapTokens(deps, data)
    .map(({ token }) => ({ token, units: sentTo(deps, token, data.account, receipt) }))
    .find(({ units }) => units >= BigInt(data.units))
}

async function unwrapCalls(deps: PredmktDeps, data: WithdrawTaskData, units: bigint) {
  const money = moneyOf(deps)
  const options = unwrapTokens(deps, data).map(({ token }) => money.unwrapCalls(token, units, data.account))
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
    if (isOwnOnly(task.data)) return step(task, context)
    const units = fromUnits(await unitsThere(deps, task), usdcDecimals)
    const stays = (error: { code: string; message: string }): FailedResult<Record<never, never>> => ({
      end: 'failed',
      outcome: 'partial',
      error: {
        code: error.code,
        message: `${error.message.replace(/[.\s]+$/, '')}; ${units} ${cashSymbol} are in your own wallet on ${deps.chain.row.displayName}`,
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
