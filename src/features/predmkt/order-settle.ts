import { later } from '#kernel/clock.ts'
import { uuidv7 } from '#kernel/id.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { StepContext, Tx } from '#kernel/task/task.ts'
import type { PredictionOrderRow, PredictionOrderStatus } from '#store/tables/predmkt.ts'
import { credentialsOf } from './account-checks.ts'
import type { PredmktDeps } from './deps.ts'
import { fillEvents } from './events.ts'
import { type Finding, orderFinding } from './order-finding.ts'
import { fillSummary, fillViews, orderResult } from './order-result.ts'
import type { OrderStepResult, OrderTask } from './order-task.ts'
import { latestEffect } from './signed-effect.ts'
import { lockAccount, scheduleSync } from './store/account-store.ts'
import { addExits } from './store/exit-store.ts'
import { type FillChange, isFinal, namedTrade, recordTrades } from './store/fill-store.ts'
import { changeOrder, orderRow } from './store/order-store.ts'

/** Follows a placed order until it rests without a match that is open, or until each of its trades is final. */

const pollBackoff = { firstMs: 700, maxMs: 5_000 }
const reviewAfterMs = 60 * 60_000
const syncMs = 2_000

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n)

/** Whether the list of trades has every match of the order, and each is final. */
function isSettled({ order, trades }: Finding, tradeIds: readonly string[]): boolean {
  const listed = new Set(trades.map(({ tradeId }) => tradeId))
  const wanted = [...tradeIds, ...(order?.tradeIds ?? [])]
  const matchedUnits = order?.matchedUnits ?? 0n
  return (
    wanted.every((id) => listed.has(id)) &&
    sum(trades.map(({ sizeUnits }) => sizeUnits)) >= matchedUnits &&
    trades.every(({ settlement }) => isFinal(settlement))
  )
}

/** The state of the order; undefined while the venue's record lags or a match is delayed. */
export function statusOf(
  { order, trades }: Finding,
  { status, expiresAt, now }: { status: string | undefined; expiresAt: Date | null; now: Date },
): PredictionOrderStatus | undefined {
  switch (order?.status) {
    case 'live':
      return 'live'
    case 'delayed':
      return undefined
    case 'matched':
      return 'matched'
    case 'canceled':
      return expiresAt !== null && expiresAt <= now ? 'expired' : 'cancelled'
    case 'canceled_market_resolved':
      return 'resolved'
    case 'invalid':
      return 'unmatched'
    case undefined:
      return status === 'matched' && trades.length > 0 ? 'matched' : undefined
  }
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
  const { terms } = task.data
  const status = statusOf(found, { status: task.data.order_status, expiresAt: row.expires_at, now })
  const isImmediate = terms.timeInForce === 'fok' || terms.timeInForce === 'fak'
  const isWaiting =
    status === undefined || (status === 'live' && isImmediate) || !isSettled(found, task.data.trade_ids ?? [])
  const recorded = recordFindings(deps, task, {
    found,
    row,
    status,
    now,
    rests: !isWaiting && status === 'live',
  })
  return isWaiting
    ? follow(deps, task, { found, row, now, recorded })
    : endOrder(deps, task, { found, row, now, recorded, status })
}

type Recorded = { writes: (tx: Tx) => Promise<void>; changes: FillChange[] }
type Seen = { found: Finding; row: PredictionOrderRow; now: Date }

/** Returns the writes that store what the venue shows; `changes` has the fills that changed, once they have run. */
function recordFindings(
  deps: PredmktDeps,
  { userId, data }: OrderTask,
  { found, row, status, now, rests }: Seen & { status: PredictionOrderStatus | undefined; rests: boolean },
): Recorded {
  const owner = { userId, venue: deps.venue.name }
  const recorded: Recorded = {
    changes: [],
    async writes(tx) {
      const named = found.trades.map((trade) => namedTrade(trade, row, deps.takerFeeUnits))
      await lockAccount(tx, owner)
      recorded.changes = await recordTrades(tx, owner, named)
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
  { found, row, now, recorded }: Seen & { recorded: Recorded },
): OrderStepResult {
  const { park, data } = pollAgain(task, 'settle', pollBackoff)
  const isLate = now.getTime() - task.createdAt.getTime() > reviewAfterMs
  const fills = fillViews(deps, { trades: found.trades, row })
  return {
    park: { afterMs: isLate ? 60_000 : park.afterMs, next: 'settle' },
    ...(isLate ? { state: 'review', outcome: 'unknown' } : { state: 'confirming' }),
    data: {
      ...data,
      fills,
      progress: { step: 2, of: 2, text: 'Waits until the venue confirms the settlement' },
      ...(found.order && { order_status: found.order.status }),
      trade_ids: [
        ...new Set([...(task.data.trade_ids ?? []), ...found.trades.map(({ tradeId }) => tradeId)]),
      ],
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
    // An exit has no hold of its own: its shares are those of the purchase.
    ...(spentUnits > 0n && task.data.leg === undefined && { spent: spentUnits }),
    complete: async () => ({ events: fillEvents(recorded.changes, task.id) }),
  }
  if (settledUnits === 0n && status !== 'live')
    return {
      ...notExecuted(reasonOf(status, failedUnits)),
      ...common,
      result,
      writes: recorded.writes,
    }
  const isWhole = status === 'live' || (status === 'matched' && failedUnits === 0n)
  const exits = task.data.exits ?? []
  return {
    end: 'completed',
    outcome: isWhole ? 'executed' : 'partial',
    result,
    ...common,
    async writes(tx) {
      await recorded.writes(tx)
      await addExits(tx, {
        userId: task.userId,
        taskId: task.id,
        row,
        exits,
        now,
        idOf: () => uuidv7(now, deps.random),
      })
    },
  }
}

function reasonOf(status: PredictionOrderStatus, failedUnits: bigint) {
  if (failedUnits > 0n)
    return {
      code: 'settlement_failed',
      message: 'The order was matched, and its settlement failed on the chain: nothing was bought or sold',
      retryable: true,
    }
  const messages: Partial<Record<PredictionOrderStatus, string>> = {
    cancelled: 'The order was cancelled before it matched',
    expired: 'The order expired before it matched',
    resolved: 'The market was resolved before the order matched',
  }
  return { code: status, message: messages[status] ?? 'The order found no match', retryable: false }
}
