import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { PredictionExitRow, PredictionFillRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import type { FillChange } from './store/fill-store.ts'

/** The events of prediction markets for the user's own log. */

const usd = (units: bigint): string => fromUnits(units, usdcDecimals)

const fillData = (fill: PredictionFillRow, taskId: string | null) => ({
  venue: fill.venue,
  trade_id: fill.trade_id,
  order_id: fill.order_id,
  task_id: taskId,
  condition_id: fill.market_id,
  outcome_id: fill.outcome_id,
  outcome: fill.outcome,
  title: fill.title,
  side: fill.side === 'buy' ? 'BUY' : 'SELL',
  role: fill.role,
  size: usd(BigInt(fill.size)),
  price: usd(fill.price),
  fee_usd: usd(BigInt(fill.fee)),
  settlement: fill.settlement,
  tx_hash: fill.tx_hash,
  at: fill.updated_at.toISOString(),
})

/** One event per fact: the first sight of a match, its confirmation, and its failure. */
export const fillEvents = (changes: readonly FillChange[], taskId: string | null): NewEvent[] =>
  changes.flatMap(({ before, fill }) => {
    const type = fillEventType(before, fill)
    return type === undefined
      ? []
      : [{ type, subject: { kind: 'prediction_trade', id: fill.trade_id }, data: fillData(fill, taskId) }]
  })

function fillEventType(before: FillChange['before'], { settlement }: PredictionFillRow): string | undefined {
  if (settlement === 'confirmed') return 'predmkt.trade.confirmed'
  if (settlement === 'failed') return before === null ? undefined : 'predmkt.trade.failed'
  return before === null ? 'predmkt.trade.matched' : undefined
}

/** The order ended at the venue without a cancel of the gateway; another client of the user may have cancelled it. */
export const cancelledByVenue = (order: PredictionOrderRow, now: Date): NewEvent => ({
  type: 'predmkt.order.cancelled_by_venue',
  subject: { kind: 'prediction_order', id: order.order_id },
  data: {
    venue: order.venue,
    order_id: order.order_id,
    task_id: order.task_id,
    condition_id: order.market_id,
    outcome_id: order.outcome_id,
    leg: order.leg,
    size: usd(BigInt(order.size)),
    matched: usd(BigInt(order.matched)),
    at: now.toISOString(),
  },
})

const exitEvent =
  (type: string) =>
  (exit: PredictionExitRow, reason: string, now: Date): NewEvent => ({
    type,
    subject: { kind: 'prediction_exit', id: exit.id },
    data: {
      venue: exit.venue,
      exit_id: exit.id,
      order_id: exit.entry_order_id,
      task_id: exit.entry_task_id,
      condition_id: exit.market_id,
      outcome_id: exit.outcome_id,
      leg: exit.leg,
      reason,
      at: now.toISOString(),
    },
  })

/** The exit has ended without a sale. */
export const exitCancelled = exitEvent('predmkt.exit.cancelled')
/** The exit goes on: no bid is near enough to the price of the market, or its sales have failed. */
export const exitHeldBack = exitEvent('predmkt.exit.held_back')
