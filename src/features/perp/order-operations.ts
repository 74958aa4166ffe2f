import { admitCancel, cancelSteps, type Section } from '#engines/venue/orders/cancel.ts'
import { cancelAllSteps } from '#engines/venue/orders/cancel-all.ts'
import type { VenueDriverDeps } from '#engines/venue/orders/venue-effect.ts'
import type { VenueTrading } from '#engines/venue/orders/venue-trading-deps.ts'
import { placePerpOrderSteps } from '#engines/venue/perp-orders/place-perp-order.ts'
import { fillHistory, orderHistory } from '#engines/venue/records/history.ts'
import type { Asker, Caller } from '#kernel/contract/caller.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { admitPerpCancelAll } from './cancel-all.ts'
import { admitClose } from './close.ts'
import type { PerpInput } from './contract.ts'
import { historyQuery } from './history-query.ts'
import { admitOpen, type TradeDeps } from './open.ts'
import { ordersOf } from './orders-view.ts'
import { admitTpSl } from './tp-sl.ts'
import { tpSlSteps } from './tp-sl-steps.ts'

type Deps = VenueTrading & TradeDeps & VenueDriverDeps
/** The dependencies of orders that spend, of exits, and of accepted tasks; their requests differ in urgency. */
type ByUrgency = { trade: Deps; exit: Deps; work: Deps }

export function createOrderOperations({ trade, exit, work }: ByUrgency) {
  const { db, venue, views, viewedAccountOf } = trade
  const cancelled: Section = {
    kind: 'perp',
    operation: 'perp_cancel',
    marketOf: async ({ symbol }) => (await venue.perps()).markets.find((each) => each.symbol === symbol),
  }
  const steps = placePerpOrderSteps(work)
  return {
    orders: async (_input: PerpInput<'orders'>, { userId }: Caller) =>
      ordersOf({ db, venue, views }, userId, await viewedAccountOf(userId)),
    open: taskOf({ admit: admitOpen(trade), steps }),
    close: taskOf({ admit: admitClose(exit), steps }),
    cancel: taskOf({ admit: admitCancel(exit, cancelled), steps: cancelSteps(exit) }),
    tpSl: taskOf({ admit: admitTpSl(exit), steps: tpSlSteps(exit) }),
    cancelAll: taskOf({
      admit: (input: PerpInput<'cancelAll'>, asker: Asker) => admitPerpCancelAll(exit, input, asker),
      steps: cancelAllSteps(exit),
    }),
    fills: async (input: PerpInput<'fills'>, { userId }: Caller) =>
      fillHistory(db, await historyQuery(exit.venue, userId, input)),
    orderHistory: async (input: PerpInput<'fills'>, { userId }: Caller) =>
      orderHistory(db, await historyQuery(exit.venue, userId, input)),
  }
}
