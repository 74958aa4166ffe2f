import type { CancelReply, VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { PredmktDeps } from './deps.ts'
import { changeOrder, noteCancelAsked } from './store/order-store.ts'

/** Cancels orders whose end the gateway itself wants. */

type Cancelled = { userId: string; orderIds: string[]; credentials: VenueCredentials; now: Date }

/** Cancels orders at the venue; what does not end now is tried again with the next comparison. */
export async function cancelAtVenue(
  { db, venue, transact }: PredmktDeps,
  { orderIds, credentials, now }: Cancelled,
): Promise<CancelReply> {
  await noteCancelAsked(db, orderIds)
  const reply = await venue.cancelOrders(orderIds, credentials)
  if (reply.type === 'answered')
    await transact(async (tx) => {
      for (const orderId of reply.canceled)
        await changeOrder(tx, { orderId, status: 'cancelled', isUnread: true, now })
    })
  return reply
}
