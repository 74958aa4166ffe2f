import { later } from '#kernel/clock.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { OutcomeOrder } from '#kernel/money/prediction-views.ts'
import type { Effect, TaskView } from '#kernel/task/task.ts'
import type { PredmktDeps } from './deps.ts'
import { type MeasuredTrade, measureTrades } from './measured-trades.ts'
import type { OrderTaskData } from './order-task.ts'

/** What the venue knows of an order, by its hash and by the trades that name it. */

export type Finding = { isKnown: boolean; order: OutcomeOrder | undefined; trades: MeasuredTrade[] }
type Sought = { task: TaskView<OrderTaskData>; effect: Effect; credentials: VenueCredentials }

/** The clocks of gateway and venue may differ by this much. */
const skewMs = 120_000

export async function orderFinding(
  { venue, chain }: Pick<PredmktDeps, 'venue' | 'chain'>,
  { task, effect, credentials }: Sought,
): Promise<Finding> {
  const { order_id: orderId = '', market_id: marketId = '', wallet } = task.data
  const [order, listed] = await Promise.all([
    venue.order(orderId, credentials),
    venue.trades({ marketId, since: later(effect.at, -skewMs) }, wallet, credentials),
  ])
  const measured = await measureTrades({ venue, chain }, wallet.wallet, listed)
  const trades = measured.filter((trade) => trade.orderId.toLowerCase() === orderId.toLowerCase())
  return { isKnown: order !== undefined || trades.length > 0, order, trades }
}
