import { venueChainId } from '#compose/settings.ts'
import { effectKind } from '#engines/venue/orders/action-outcome.ts'
import type { ExecutedOrder, FoundWithdrawal } from '#engines/venue/orders/find-forgotten-executions.ts'
import { nonceKind } from '#engines/venue/orders/signed-action.ts'
import { scheduleNow } from '#engines/venue/records/account-store.ts'
import { noteFoundOrder } from '#engines/venue/records/order-store.ts'
import type { FoundOutcomeOrder } from '#features/predmkt/find-forgotten-orders.ts'
import { scheduleSync } from '#features/predmkt/store/account-store.ts'
import { noteFoundOrder as noteFoundOutcomeOrder } from '#features/predmkt/store/forgotten-order-store.ts'
import { toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import { adoptedKind, recordFoundEffect } from '#store/record-found-effect.ts'
import type { PredictionOrderStatus } from '#store/tables/predmkt.ts'
import { raiseCounter } from './raise-nonce-counter.ts'
import type { Session } from './session.ts'

/** An execution at a venue that the database has lost. */
export type FoundAtVenue = ExecutedOrder | FoundWithdrawal | FoundOutcomeOrder
type NotedAtVenue = { userId: string; taskId: string; venue: FoundAtVenue; at: Date }

/** Records an order by its id, or a withdrawal by its nonce, so that the reconciler of the account finds it. */
export async function noteFoundAtVenue(
  { clock }: Pick<Session, 'clock'>,
  tx: Tx,
  { userId, taskId, venue, at }: NotedAtVenue,
): Promise<void> {
  if (venue.type === 'outcome_order')
    return noteOutcomeOrder(tx, { userId, taskId, venue, at, now: clock.now() })
  await scheduleNow(tx, userId, clock.now())
  if (venue.type === 'order') return noteFoundOrder(tx, userId, { taskId, order: venue, at })
  const { account, nonce, amount_usd, fee_usd } = venue
  const nonceSequence = { kind: nonceKind, chain: venueChainId, signer: account }
  await raiseCounter(tx, { ...nonceSequence, next: BigInt(nonce) + 1n })
  await recordFoundEffect(tx, {
    taskId,
    step: adoptedKind,
    kind: effectKind,
    externalId: `${account}:${nonce}`,
    intent: { amount_usd, fee_usd },
    nonceSequence,
    nonce: BigInt(nonce),
    proof: {},
    at,
  })
}

type NotedOutcome = { userId: string; taskId: string; venue: FoundOutcomeOrder; at: Date; now: Date }

/** Records an order of a prediction market, so that its task and its trades belong together. */
async function noteOutcomeOrder(tx: Tx, { userId, taskId, venue, at, now }: NotedOutcome): Promise<void> {
  const owner = { userId, venue: venue.venue }
  await noteFoundOutcomeOrder(tx, {
    ...owner,
    taskId,
    order: {
      orderId: venue.order_id,
      marketId: venue.market_id,
      outcomeId: venue.outcome_id,
      outcome: venue.outcome,
      side: venue.side,
      timeInForce: venue.order_type,
      sizeUnits: toUnits(venue.size, usdcDecimals),
      priceMicros: toUnits(venue.price, usdcDecimals),
      expiresAt: venue.expires_at === null ? null : new Date(venue.expires_at),
      createdAt: at,
    },
    market: {
      question: venue.question,
      protocol: venue.protocol,
      isNegRisk: venue.neg_risk,
      fee: venue.fee,
    },
    status: statusOfListed[venue.status],
    matchedUnits: toUnits(venue.matched, usdcDecimals),
    now,
  })
  await scheduleSync(tx, owner, now)
}
const statusOfListed: Readonly<Record<FoundOutcomeOrder['status'], PredictionOrderStatus>> = {
  live: 'live',
  delayed: 'delayed',
  matched: 'matched',
  canceled: 'cancelled',
  canceled_market_resolved: 'resolved',
  invalid: 'unmatched',
}
