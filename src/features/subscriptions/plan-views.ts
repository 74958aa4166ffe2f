import { withTimeLimit } from '#kernel/async/time-limit.ts'
import type { OutputOf } from '#kernel/contract/operation.ts'
import type { Queryable } from '#store/query.ts'
import type { PlanInvoiceRow, PlanSubscriptionRow } from '#store/tables/subscriptions.ts'
import type { contract, planStatuses } from './contract.ts'
import { type PlanCatalogue, usdOf } from './plan-catalogue.ts'
import { isDisputed } from './plan-credits.ts'
import { currentSubscription, invoicesOfUser, lastSubscription } from './store.ts'

export type PlanStatus = (typeof planStatuses)[number]
export type PlanState = { plan: string; status: PlanStatus; until: Date | null }

/** The plan of a user without one. */
export const freePlan = 'free'

const priceMsMax = 1_000
export const activeStatuses: readonly string[] = ['active', 'trialing']
export const endedStatuses: readonly string[] = ['canceled', 'incomplete_expired']

type Paid = Pick<PlanInvoiceRow, 'subscription_id' | 'dispute' | 'paid_at' | 'expires_at'>
/**
 * Returns the status of a plan, whose invoices come newest first. A change leaves the credits of the invoice before it
 * the same end, so that a dispute of either suspends the plan.
 */
export function statusOf(
  { id, status }: Pick<PlanSubscriptionRow, 'id' | 'status'>,
  invoices: readonly Paid[],
): PlanStatus {
  if (endedStatuses.includes(status)) return 'canceled'
  const paid = invoices.filter((each) => each.subscription_id === id && each.paid_at !== null)
  const [last] = paid
  const endMs = last?.expires_at?.getTime()
  const isOfPeriod = (each: Paid) =>
    each === last || (endMs !== undefined && each.expires_at?.getTime() === endMs)
  if (paid.some((each) => isOfPeriod(each) && isDisputed(each))) return 'suspended'
  return activeStatuses.includes(status) ? 'active' : 'past_due'
}

const paymentOf = (row: PlanInvoiceRow) => ({
  invoice_id: row.id,
  status: row.status,
  amount_usd: usdOf(row.paid_at === null ? row.total_cents : row.paid_cents),
  refunded_usd: usdOf(row.refunded_cents),
  dispute: row.dispute,
  credits: Number(row.granted ?? 0n),
  credits_taken_back: Number(row.taken_back),
  credits_expire_at: row.expires_at?.toISOString() ?? null,
  paid_at: row.paid_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
})

export async function subscriptionView(
  db: Queryable,
  catalogue: PlanCatalogue,
  userId: string,
): Promise<OutputOf<(typeof contract)['entries']['show']>> {
  const [row, invoices] = await Promise.all([lastSubscription(db, userId), invoicesOfUser(db, userId)])
  const payments = invoices.map(paymentOf)
  if (!row)
    return {
      plan: null,
      price_id: null,
      price_usd: null,
      interval: null,
      status: 'none',
      current_period_end: null,
      cancel_at_period_end: false,
      pay_url: null,
      payments,
    }
  // The view does not wait long for a provider that is away: the price is left out then.
  const priced = await withTimeLimit(catalogue.priced(row.price_id), priceMsMax).catch(() => undefined)
  const open = invoices.find((each) => each.subscription_id === row.id && each.status === 'open')
  return {
    plan: catalogue.find(row.price_id)?.name ?? row.price_id,
    price_id: row.price_id,
    price_usd: priced ? usdOf(priced.cents) : null,
    interval: priced?.interval ?? null,
    status: statusOf(row, invoices),
    current_period_end: row.current_period_end.toISOString(),
    cancel_at_period_end: row.cancel_at_period_end,
    pay_url: row.ended_at === null ? (open?.pay_url ?? null) : null,
    payments,
  }
}

/** Returns the plan that a user has now, for `GET /v1/user`. */
export async function planStateOf(
  db: Queryable,
  catalogue: Pick<PlanCatalogue, 'find'>,
  userId: string,
): Promise<PlanState> {
  const row = await currentSubscription(db, userId)
  if (!row) return { plan: freePlan, status: 'none', until: null }
  const invoices = await invoicesOfUser(db, userId)
  return {
    plan: catalogue.find(row.price_id)?.name ?? row.price_id,
    status: statusOf(row, invoices),
    until: row.current_period_end,
  }
}
