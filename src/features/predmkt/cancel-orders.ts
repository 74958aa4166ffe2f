import type { CancelReply, VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { PredmktDeps } from './deps.ts'
import { lockAccount } from './store/account-store.ts'
import { changeOrder, noteCancelAsked } from './store/order-store.ts'

/** Cancels orders whose end the gateway itself wants. */

type Cancelled = { userId: string; orderIds: string[]; credentials: VenueCredentials; now: Date }

/** Cancels orders at the venue; what does not end now is tried again with the next comparison. */
export async function cancelAtVenue(
  { db, venue, transact }: PredmktDeps,
  { userId, orderIds, credentials, now }: Cancelled,
): Promise<CancelReply> {
  const owner = { userId, venue: venue.name }
  await noteCancelAsked(db, owner, orderIds)
  const reply = await venue.cancelOrders(orderIds, credentials)
  if (reply.type === 'answered')
    await transact(async (tx) => {
      await lockAccount(tx, owner)
      for (const orderId of reply.canceled)
        await changeOrder(tx, { orderId, owner, status: 'cancelled', isUnread: true, now })
    })
  return reply
}
