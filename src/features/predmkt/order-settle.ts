import { later } from '#kernel/clock.ts'
import { uuidv7 } from '#kernel/id.ts'
import type { TimeInForce } from '#kernel/money/prediction-venue.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { StepContext, Tx } from '#kernel/task/task.ts'
import type { PredictionOrderRow, PredictionOrderStatus } from '#store/tables/predmkt.ts'
import { credentialsOf } from './account-checks.ts'
import { sharesAfterSales } from './balances.ts'
import { cancelAtVenue } from './cancel-orders.ts'
import type { PredmktDeps } from './deps.ts'
import { fillEvents } from './events.ts'
import { leastUnits } from './exit-rules.ts'
import { type Finding, orderFinding } from './order-finding.ts'
import { fillSummary, fillViews, orderResult, shownMax } from './order-result.ts'
import type { OrderStepResult, OrderTask } from './order-task.ts'
import { latestEffect } from './signed-effect.ts'
import { lockAccount, scheduleSync } from './store/account-store.ts'
import type { ChainUnits } from './store/exit-facts.ts'
import { addExits } from './store/exit-store.ts'
import { type FillChange, isFinal, namedTrade, recordTrades } from './store/fill-store.ts'
import { changeOrder, isOverdue, orderRow } from './store/order-store.ts'

/** Follows a placed order until it rests without a match that is open, or until each of its trades is final. */

const pollBackoff = { firstMs: 700, maxMs: 5_000 }
const reviewAfterMs = 60 * 60_000
const settlingText = 'Waits until the venue confirms the settlement'
const delayedText = 'venue_delayed: the venue matches the order once the delay of its market is over'
const syncMs = 2_000

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n)

/**
 * Whether the list of trades has every match of the order, and each is final. What is overdue may differ by rounding from
 * what the order states.
 */
export function isSettled(
  { order, trades }: Finding,
  tradeIds: readonly string[],
  { isOverdue }: { isOverdue: boolean },
): boolean {
  const listed = new Set(trades.map(({ tradeId }) => tradeId))
  const wanted = [...tradeIds, ...(order?.tradeIds ?? [])]
  const matchedUnits = order?.matchedUnits ?? 0n
  return (
    wanted.every((id) => listed.has(id)) &&
    matchedUnits - sum(trades.map(({ sizeUnits }) => sizeUnits)) < (isOverdue ? leastUnits : 1n) &&
    trades.every(({ settlement }) => isFinal(settlement))
  )
}

type Known = {
  status: string | undefined
  row: Pick<PredictionOrderRow, 'order_type' | 'size' | 'expires_at'>
  isDelayed: boolean
  now: Date
}

/** The state of the order; undefined while the venue's record lags or a match is delayed. */
export function statusOf(
  { order, trades }: Finding,
  { status, row, isDelayed, now }: Known,
): PredictionOrderStatus | undefined {
  switch (order?.status) {
    case 'live':
      return isDelayed ? undefined : 'live'
    case 'delayed':
      return undefined
    case 'matched':
      return 'matched'
    case 'canceled':
      return row.expires_at !== null && row.expires_at <= now ? 'expired' : 'cancelled'
    case 'canceled_market_resolved':
      return 'resolved'
    case 'invalid':
      return 'unmatched'
    case undefined:
      return status === 'matched' && hasMatched(trades, row) ? 'matched' : undefined
  }
}

/** Whether trades show that an order has ended, without its record: what they leave of a limit order may rest. */
function hasMatched(trades: Finding['trades'], { order_type: type, size }: Known['row']): boolean {
  if (isImmediate(type)) return trades.length > 0
  return sum(trades.map(({ sizeUnits }) => sizeUnits)) >= BigInt(size)
}

export async function settleOrder(
  deps: PredmktDeps,
  task: OrderTask,
  { now }: StepContext,
): Promise<OrderStepResult> {
  const effect = latestEffect(task, 'prediction_order')
  const orderId = task.data.order_id
  if (!effect || orderId === undefined) return { next: 'sign' }
  const credentials = await credentialsOf(deps, task.userId)
  const [found, row] = await Promise.all([
    orderFinding(deps, { task, effect, credentials }),
    orderRow(deps.db, orderId),
  ])
  if (!row) throw new Error(`the order ${orderId} has no row`)
  const { terms, order_status: known, delayed_until_ms: delayedUntilMs = 0 } = task.data
  const isDelayed = found.trades.length === 0 && now.getTime() < delayedUntilMs
  const status = statusOf(found, { status: known, row, isDelayed, now })
  // It may have come to the venue after its cancel, which the venue may also have put off.
  const isUnwanted = row.cancel_asked && found.order?.status === 'live' && now <= task.deadline
  const cancel = { userId: task.userId, orderIds: [orderId], credentials, now }
  const cancelled = isUnwanted ? await cancelAtVenue(deps, cancel) : undefined
  const isWaiting =
    (cancelled !== undefined && cancelled.type !== 'rejected') ||
    status === undefined ||
    (status === 'live' && isImmediate(terms.timeInForce)) ||
    !isSettled(found, task.data.trade_ids ?? [], { isOverdue: isOverdue(row, now) })
  const chainUnits = await sharesAfterSales(deps, task.data.wallet.wallet, found.trades)
  const recorded = recordFindings(deps, task, {
    found,
    chainUnits,
    row,
    status,
    now,
    rests: !isWaiting && status === 'live',
  })
  return isWaiting
    ? follow(deps, task, { found, row, now, recorded, isDelayed })
    : endOrder(deps, task, { found, row, now, recorded, status })
}

const isImmediate = (timeInForce: TimeInForce): boolean => timeInForce === 'fok' || timeInForce === 'fak'

type Recorded = { writes: (tx: Tx) => Promise<void>; changes: FillChange[] }
type Seen = { found: Finding; row: PredictionOrderRow; now: Date }

type Recording = Seen & {
  status: PredictionOrderStatus | undefined
  rests: boolean
  chainUnits: ChainUnits
}

/** Returns the writes that store what the venue shows; `changes` has the fills that changed, once they have run. */
function recordFindings(
  deps: PredmktDeps,
  { userId, data }: OrderTask,
  { found, chainUnits, row, status, now, rests }: Recording,
): Recorded {
  const owner = { userId, venue: deps.venue.name }
  const recorded: Recorded = {
    changes: [],
    async writes(tx) {
      const named = found.trades.map((trade) => namedTrade(trade, row, deps.takerFeeUnits))
      await lockAccount(tx, owner)
      recorded.changes = await recordTrades(tx, owner, named, chainUnits)
      const matchedUnits = found.order?.matchedUnits ?? sum(found.trades.map(({ sizeUnits }) => sizeUnits))
      await changeOrder(tx, {
        orderId: data.order_id!,
        status: status ?? 'delayed',
        matchedUnits,
        now,
        ...(rests && { rests }),
      })
      await scheduleSync(tx, owner, later(now, syncMs))
    },
  }
  return recorded
}

function follow(
  deps: PredmktDeps,
  task: OrderTask,
  { found, row, now, recorded, isDelayed }: Seen & { recorded: Recorded; isDelayed: boolean },
): OrderStepResult {
  const { park, data } = pollAgain(task, 'settle', pollBackoff)
  const isLate = now.getTime() - task.createdAt.getTime() > reviewAfterMs
  const fills = fillViews(deps, { trades: found.trades, row })
  return {
    park: { afterMs: isLate ? 60_000 : park.afterMs, next: 'settle' },
    ...(isLate ? { state: 'review', outcome: 'unknown' } : { state: isDelayed ? 'waiting' : 'confirming' }),
    data: {
      ...data,
      fills,
      progress: { step: 2, of: 2, text: isDelayed ? delayedText : settlingText },
      ...(found.order && { order_status: found.order.status }),
      trade_ids: [
        ...new Set([...(task.data.trade_ids ?? []), ...found.trades.map(({ tradeId }) => tradeId)]),
      ].slice(-shownMax),
    },
    writes: recorded.writes,
    complete: async () => ({ events: fillEvents(recorded.changes, task.id) }),
  }
}

type Ended = Seen & { recorded: Recorded; status: PredictionOrderStatus }

function endOrder(deps: PredmktDeps, task: OrderTask, ended: Ended): OrderStepResult {
  const { found, row, now, recorded, status } = ended
  const summary = fillSummary(deps, { trades: found.trades, row })
  const { settledUnits, spentUnits, failedUnits } = summary
  const fills = fillViews(deps, { trades: found.trades, row })
  const result = orderResult(deps, task, { ...ended, summary })
  const common = {
    data: { fills, progress: null },
    ...(spentUnits > 0n && holdsSpend(task) && { spent: postedOf(task, spentUnits) }),
    complete: async () => ({ events: fillEvents(recorded.changes, task.id) }),
  }
  if (settledUnits === 0n && status !== 'live')
    return {
      ...notExecuted(reasonOf(status, { failedUnits, row })),
      ...common,
      result,
      writes: recorded.writes,
    }
  // The rest of an exit is sold by another task.
  const hasRest = task.data.leg !== undefined && BigInt(row.size) - summary.matchedUnits >= leastUnits
  const isWhole = status === 'live' || (status === 'matched' && failedUnits === 0n && !hasRest)
  const exits = task.data.exits ?? []
  let legs: Awaited<ReturnType<typeof addExits>> = new Set()
  return {
    end: 'completed',
    outcome: isWhole ? 'executed' : 'partial',
    result,
    ...common,
    async writes(tx) {
      await recorded.writes(tx)
      legs = await addExits(tx, {
        userId: task.userId,
        taskId: task.id,
        row,
        exits,
        now,
        idOf: () => uuidv7(now, deps.random),
      })
    },
    complete: async () => ({
      events: fillEvents(recorded.changes, task.id),
      result: {
        take_profit_state: legs.has('tp') ? 'waiting' : 'none',
        stop_loss_state: legs.has('sl') ? 'waiting' : 'none',
      },
    }),
  }
}

/**
 * Whether the task's hold has the spent units. An exit has none of its own, because its shares are those of the
 * purchase; and the hold of a repeated request was made on a balance without what the order of before had spent.
 */
const holdsSpend = ({ data: { leg, was_found: isFound } }: OrderTask): boolean =>
  leg === undefined && isFound !== true

/**
 * Returns what the hold posts. A venue that takes more than the order could cost has it anyway: the result says so, and
 * the next reading of the wallet takes the rest from the ledger.
 */
function postedOf({ data: { terms, cost_units: cost } }: OrderTask, spentUnits: bigint): bigint {
  const heldUnits = BigInt(terms.side === 'buy' ? cost : terms.sizeUnits!)
  return spentUnits < heldUnits ? spentUnits : heldUnits
}

type Reasons = { failedUnits: bigint; row: PredictionOrderRow }

function reasonOf(status: PredictionOrderStatus, { failedUnits, row }: Reasons) {
  if (failedUnits > 0n)
    return {
      code: 'settlement_failed',
      message: 'The order was matched, and its settlement failed on the chain: nothing was bought or sold',
      retryable: true,
    }
  if (status === 'cancelled' && !row.cancel_asked && isImmediate(row.order_type))
    return {
      code: 'not_filled',
      message: 'The book did not fill the order when the delay of its market was over',
      retryable: false,
    }
  const messages: Partial<Record<PredictionOrderStatus, string>> = {
    cancelled: 'The order was cancelled before it matched',
    expired: 'The order expired before it matched',
    resolved: 'The market was resolved before the order matched',
  }
  return { code: status, message: messages[status] ?? 'The order found no match', retryable: false }
}
