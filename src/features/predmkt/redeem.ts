import { later } from '#kernel/clock.ts'
import { conflict, exactlyOneOf, Fault } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import { outsideId } from '#kernel/task/forgotten-execution.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { EndResult, StepContext, StepResultOf, Steps, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { fundedWallet } from './account-checks.ts'
import { moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { allTargets, callsOf, oneTarget, type TargetDeps, targetOf } from './redeem-targets.ts'
import {
  byUs,
  isOfMarket,
  overlapMs,
  payoutOf,
  provenRedemptions,
  type RedeemTask,
  type RedeemTaskData,
  type Redemption,
  redeemedIn,
  rowsMax,
  rowsOf,
  sum,
  type Target,
} from './redemption-proof.ts'
import { relayDriver } from './relay-action.ts'
import { assertRelays } from './relay-allowance.ts'
import { latestEffect } from './signed-effect.ts'
import { isWalletTaken, lockAccount } from './store/account-store.ts'
import { addRedemption, redemptionsOf } from './store/redemption-store.ts'

/** Shares of resolved markets become cash of the wallet; a redemption of the venue itself counts as done. */

type StepName = 'sign' | 'confirm' | 'attribute'
type Result = StepResultOf<Partial<RedeemTaskData>, StepName>

const redeemMs = 48 * 3_600_000
const operation = 'predmkt_redeem'
/** The venue lists a redemption a little after the chain has it. */
const listedWithinMs = 10_000
const pollBackoff = { firstMs: 500, maxMs: 8_000 }

export const createRedeem = (deps: TargetDeps) =>
  taskOf({ admit: admitRedeem(deps), steps: redeemSteps(deps), looksUp: true })

const facts = (deps: PredmktDeps): Omit<PlannedAction, 'userId'> => ({
  operation,
  chainId: deps.chain.row.id,
  tokens: [moneyOf(deps).cashToken],
  recipients: [],
  usdMicros: 0n,
  exit: true,
})

const admitRedeem = (deps: TargetDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    async check({ condition_id: conditionId, all }: PredmktInput<'redeem'>, { userId }) {
      if ((conditionId === undefined) === (all !== true))
        throw exactlyOneOf('condition_id', 'all', { hasBoth: conditionId !== undefined })
      const wallet = await fundedWallet(deps, userId)
      const data: RedeemTaskData = { wallet, targets: [], asked: conditionId ?? null }
      return { action: { userId, ...facts(deps) }, data }
    },
    async fund({ action: { userId }, data }) {
      await assertRelays(deps, userId, { isExit: true })
      const targets =
        data.asked === null
          ? await allTargets(deps, userId, data.wallet.wallet)
          : [await oneTarget(deps, userId, data)]
      if (targets.length === 0)
        throw new Fault('no_position', 'There are no shares of a resolved market to redeem')
      return targets
    },
    start: ({ data }, targets): { first: StepName; deadlineMs: number; data: RedeemTaskData } => ({
      first: 'sign',
      deadlineMs: redeemMs,
      data: { ...data, targets },
    }),
  })

function redeemSteps(deps: PredmktDeps): Steps<RedeemTaskData, StepName> {
  const effect = createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: relayDriver<RedeemTaskData, StepName>(deps, {
      // An empty balance proves nothing: the shares may have been moved, or redeemed by somebody else.
      async prove({ data }, receipt) {
        if (!receipt?.success) return false
        return redeemedIn(deps, data, receipt).length > 0 || (await remaining(deps, data)).length === 0
      },
      async findRun({ userId, data }) {
        const [found] = await provenRedemptions(deps, { userId, wallet: data.wallet }, data.targets)
        return found && (await deps.chain.receipts([found.txHash])).receipts[0]
      },
      // The venue may have redeemed between the reading and the batch.
      async onRejected({ data }, { code, message }) {
        return (await remaining(deps, data)).length > 0
          ? notExecuted({ code, message, retryable: true, upstream: 'Polymarket' })
          : gone(deps.clock.now())
      },
    }),
    async plan(task, { now }) {
      const open = await remaining(deps, task.data)
      if (open.length === 0) return (await isTaken(deps, task)) ? waiting(task) : goneUnsigned(task, now)
      const calls = open.flatMap(({ market, target }) => callsOf(deps, market, target))
      return { calls, facts: facts(deps) }
    },
    settle(task, { txHash, receipt }, { now }) {
      const own = redeemedIn(deps, task.data, receipt!)
      const redemptions = own.map(byUs(txHash!))
      const isAll = task.data.targets.every((target) => own.some(isOfMarket(target)))
      const next = isAll ? ended(task, redemptions, { isAll }) : gone(now, { own, own_tx: txHash })
      // They are booked before the wallet is released, because other tasks find them in the venue's record.
      return { ...next, writes: (tx) => book(deps, tx, task, { redemptions, now }).then(() => {}) }
    },
  })
  return {
    ...effect,
    attribute: (task: RedeemTask, context: StepContext) => attribute(deps, task, context),
  } as Steps<RedeemTaskData, StepName>
}

/** Continues with the question who redeemed shares that are gone. */
const gone = (now: Date, own: Pick<RedeemTaskData, 'own' | 'own_tx'> = {}): Result => ({
  next: 'attribute',
  state: 'confirming',
  data: { ...own, gone_ms: now.getTime(), polls: 0 },
})

/** The same before this task has signed anything. */
function goneUnsigned(task: RedeemTask, now: Date): Result {
  const { data } = gone(now)
  const park = { afterMs: 0, next: 'attribute' as const }
  return { park, state: 'confirming', ...unlessFound(task), data: data! }
}

/** Whether another task has an action of the wallet in flight, which may be the one that redeems these shares. */
const isTaken = ({ db, venue }: PredmktDeps, { id, userId }: RedeemTask): Promise<boolean> =>
  isWalletTaken(db, { userId, venue: venue.name }, id)

/** While shares may have been redeemed by a task that this database has lost, nothing else ends this one. */
const unlessFound = (task: RedeemTask) =>
  outsideId(task) !== undefined && latestEffect(task, 'prediction_relay') === undefined
    ? ({ outcome: 'unknown' } as const)
    : {}

const waiting = (task: RedeemTask): Result => ({
  ...pollAgain(task, 'sign', pollBackoff),
  state: 'waiting',
  ...unlessFound(task),
})

/** The targets whose shares no other task of the user has redeemed meanwhile. */
async function unclaimed(
  { venue }: PredmktDeps,
  db: Queryable,
  { id, userId, data, createdAt }: RedeemTask,
): Promise<Target[]> {
  const rows = await redemptionsOf(db, { userId, venue: venue.name }, rowsMax)
  const since = later(createdAt, -overlapMs)
  const claimed = rows.filter((row) => row.task_id !== null && row.task_id !== id && row.at >= since)
  return data.targets.filter(({ shares }) =>
    shares.some(
      ({ outcome_id, units }) => units !== '0' && !claimed.some((row) => row.outcome_id === outcome_id),
    ),
  )
}

/** The targets of which the wallet still has shares. */
async function remaining(deps: PredmktDeps, { targets, wallet }: RedeemTaskData) {
  const open: { market: PredictionMarket; target: Target }[] = []
  const markets = await deps.venue.marketsById(targets.map(({ market_id }) => market_id))
  // Shares of a market that cannot be read are not gone.
  if (markets.size < targets.length)
    throw new Fault('unavailable', 'The venue does not list a market of this redemption now')
  for (const market of markets.values()) {
    const target = await targetOf(deps, market, wallet.wallet)
    if (target) open.push({ market, target })
  }
  return open
}

/** Reports what the venue's record lists of shares that are gone, and what the own batch has redeemed. */
async function attribute(deps: PredmktDeps, task: RedeemTask, { now }: StepContext): Promise<Result> {
  const { own = [], own_tx: ownTx, gone_ms: goneMs = now.getTime(), wallet } = task.data
  const again: Result = {
    ...pollAgain(task, 'attribute', pollBackoff),
    state: 'confirming',
    ...unlessFound(task),
  }
  const open = (await unclaimed(deps, deps.db, task)).filter((target) => !own.some(isOfMarket(target)))
  if (own.length + open.length === 0)
    return notExecuted({ code: 'no_position', message: 'Another task has redeemed these shares meanwhile' })
  // What the venue lists of a batch in flight is booked by the task of the batch.
  if (open.length > 0 && (await isTaken(deps, task))) return again
  const found = await provenRedemptions(deps, { userId: task.userId, wallet }, open)
  const isAll = found.length === open.length
  if (!isAll && now.getTime() - goneMs < listedWithinMs) return again
  const redemptions = [...own.map(byUs(ownTx!)), ...found]
  if (redemptions.length === 0)
    return notExecuted({
      code: 'no_position',
      message: 'The shares have left the wallet without a payout that is known here',
    })
  return {
    ...ended(task, redemptions, { isAll }),
    writes: (tx) => bookFound(deps, tx, task, { redemptions: found, now }),
    onWritesRefused: () => again,
  }
}

function ended(
  { data }: RedeemTask,
  redemptions: readonly Redemption[],
  { isAll }: { isAll: boolean },
): EndResult<Partial<RedeemTaskData>> {
  const rows = redemptions.map(({ target, by, txHash }) => ({
    condition_id: target.market_id,
    shares: fromUnits(sum(target.shares.map(({ units }) => BigInt(units))), usdcDecimals),
    payout_usd: fromUnits(payoutOf(target), usdcDecimals),
    tx_hash: txHash,
    by,
  }))
  return {
    end: 'completed',
    outcome: isAll ? 'executed' : 'partial',
    result: {
      redeemed: rows,
      payout_usd: fromUnits(sum(redemptions.map(({ target }) => payoutOf(target))), usdcDecimals),
      condition_id: data.asked,
      tx_hash: rows[0]?.tx_hash ?? null,
    },
    data: { progress: null },
  }
}

type Booked = { redemptions: readonly Redemption[]; now: Date }

/** Books redemptions, each once; false if another task has reported one of them. */
async function book(
  { venue }: PredmktDeps,
  tx: Tx,
  { id: taskId, userId }: RedeemTask,
  { redemptions, now }: Booked,
): Promise<boolean> {
  const owner = { userId, venue: venue.name }
  await lockAccount(tx, owner)
  const rows = redemptions.flatMap((redemption) => rowsOf(redemption, { ...owner, taskId, now }))
  let isOwn = true
  for (const row of rows) isOwn = (await addRedemption(tx, row)) && isOwn
  return isOwn
}

/** Books what the venue's record lists, unless another task has redeemed these shares, or may be about to book them. */
async function bookFound(deps: PredmktDeps, tx: Tx, task: RedeemTask, booked: Booked): Promise<void> {
  await lockAccount(tx, { userId: task.userId, venue: deps.venue.name })
  const open = await unclaimed(deps, tx, task)
  const isOpen = booked.redemptions.every(({ target }) => open.some(isOfMarket(target)))
  const isFree = booked.redemptions.length === 0 || !(await isTaken({ ...deps, db: tx }, task))
  if (isOpen && isFree && (await book(deps, tx, task, booked))) return
  throw conflict('Another task has redeemed these shares meanwhile', 'redeemed_elsewhere')
}
