import type { Ledger } from '#durable/ledger/ledger.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { creditsAsset, planAccountOf } from '#kernel/money/credit-accounts.ts'
import { externalAccount, type Move, type Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { PlanCreditChangeRow, PlanInvoiceRow } from '#store/tables/subscriptions.ts'

/** The credits of paid invoices: granted once, expired with their period, and taken back after refunds and disputes. */

export type CreditDeps = { ledger: Pick<Ledger, 'apply'>; clock: Clock; random: Random }
type Reason = PlanCreditChangeRow['reason']

export const isDisputed = ({ dispute }: Pick<PlanInvoiceRow, 'dispute'>): boolean =>
  dispute === 'open' || dispute === 'lost'

type Change = { invoice: PlanInvoiceRow; credits: bigint; reason: Reason; now: Date }

/** Credits stay this long after their period, so that a renewal that is paid late leaves no gap. */
const graceMs = 3 * 86_400_000

/** Locks the account of an invoice's credits until the transaction ends; running tasks hold a part of the unspent ones. */
async function lockUnspent(
  tx: Tx,
  { user_id: userId, id }: PlanInvoiceRow,
): Promise<{ available: bigint; held: bigint }> {
  const [row] = await query<{ avail: string; held: string }>(
    tx,
    'select avail, held from account where owner = $1 and asset = $2 and sub_account = $3 for update',
    [userId, creditsAsset, planAccountOf(id)],
  )
  return { available: BigInt(row?.avail ?? '0'), held: BigInt(row?.held ?? '0') }
}

/** Books a change of an invoice's credits, and records it for the history; nothing is booked for zero. */
async function change({ ledger, random }: CreditDeps, tx: Tx, given: Change): Promise<void> {
  const { invoice, credits, reason, now } = given
  if (credits === 0n) return
  const account = { owner: invoice.user_id, asset: creditsAsset, subAccount: planAccountOf(invoice.id) }
  const outside = externalAccount(creditsAsset)
  const gain = credits > 0n
  invoice.changes += 1
  const move: Move = {
    move: 'transfer',
    key: `plan:${invoice.id}:${invoice.changes}`,
    debit: gain ? outside : account,
    credit: gain ? account : outside,
    amountUnits: gain ? credits : -credits,
    reason: `plan credits ${reason}`,
  }
  await ledger.apply(tx, [move], { taskId: null, now })
  await query(tx, 'update plan_invoice set changes = $2 where id = $1', [invoice.id, invoice.changes])
  await query(
    tx,
    'insert into plan_credit_change (id, user_id, invoice_id, credits, reason, at) values ($1, $2, $3, $4, $5, $6)',
    [uuidv7(now, random), invoice.user_id, invoice.id, credits, reason, now],
  )
}

/** Returns what is unspent of the credits that earlier invoices brought for a period that has not ended. */
async function unspentOf(tx: Tx, earlier: readonly PlanInvoiceRow[], at: Date): Promise<bigint> {
  let unspent = 0n
  for (const each of earlier) {
    if (each.period_end <= at) continue
    const { available, held } = await lockUnspent(tx, each)
    unspent += available + held
  }
  return unspent
}

type Grant = {
  invoice: PlanInvoiceRow
  /** Those of the same subscription before it, or of its second, with credits. */
  earlier: readonly PlanInvoiceRow[]
  credits: bigint
}

const isPaidBack = ({ paid_cents: paid, refunded_cents: refunded }: PlanInvoiceRow): boolean =>
  paid > 0n && refunded >= paid

/**
 * Returns the credits of a plan for the part of a period that a change bills; the portal may be set up to keep the
 * period. A plan brings none that costs no more than one whose credits came for this period: pages that were opened
 * while the plan was smaller may be confirmed one after the other, and their invoices are of nearly 0 USD.
 */
function creditsOfChange(
  { billed_cents: billed, price_cents: whole, created_at: at }: PlanInvoiceRow,
  earlier: readonly PlanInvoiceRow[],
  credits: bigint,
): bigint {
  const isRepeated = earlier.some(
    (each) => each.period_end > at && each.price_cents >= whole && !isPaidBack(each),
  )
  if (isRepeated) return 0n
  return billed < whole ? (credits * billed) / whole : credits
}

/**
 * Grants the credits of a paid invoice. A change of plan within a period brings as many credits as complete the new
 * plan's; what is unspent of the old ones then lasts as long. Any other invoice ends the earlier credits.
 */
export async function grantCredits(
  deps: CreditDeps,
  tx: Tx,
  { invoice, earlier, credits }: Grant,
): Promise<bigint> {
  const now = deps.clock.now()
  const expiresAt = later(invoice.period_end, graceMs)
  const isChange = invoice.reason === 'subscription_update'
  const unspent = isChange ? await unspentOf(tx, earlier, invoice.created_at) : 0n
  const wanted = isChange ? creditsOfChange(invoice, earlier, credits) : credits
  const granted = wanted > unspent ? wanted - unspent : 0n
  invoice.granted = granted
  invoice.expires_at = expiresAt
  await query(tx, 'update plan_invoice set granted = $2, expires_at = $3 where id = $1', [
    invoice.id,
    granted,
    expiresAt,
  ])
  await change(deps, tx, { invoice, credits: granted, reason: 'granted', now })
  for (const each of earlier) {
    if (isChange && each.period_end > invoice.created_at) await expireAt(tx, each, expiresAt)
    else if (!isChange) await expireBy(tx, each, earliest(each.period_end, now))
  }
  return granted
}

const earliest = (a: Date, b: Date): Date => (a < b ? a : b)

async function expireAt(tx: Tx, invoice: PlanInvoiceRow, at: Date): Promise<void> {
  invoice.expires_at = at
  await query(tx, 'update plan_invoice set expires_at = $2 where id = $1', [invoice.id, at])
}
const expireBy = async (tx: Tx, invoice: PlanInvoiceRow, at: Date): Promise<void> => {
  if (invoice.expires_at !== null && invoice.expires_at > at) await expireAt(tx, invoice, at)
}

/** Ends the credits of a subscription that has ended: with their period, and at once where that is over. */
export async function expireEnded(
  { clock }: Pick<CreditDeps, 'clock'>,
  tx: Tx,
  invoice: PlanInvoiceRow,
  endedAt: Date,
): Promise<void> {
  const isOver = endedAt >= invoice.period_end
  await expireBy(tx, invoice, isOver ? earliest(invoice.period_end, clock.now()) : invoice.period_end)
}

/** How many credits of an invoice are to be taken back: all after a dispute, else the refunded part. */
function returnable(invoice: PlanInvoiceRow): bigint {
  const { granted, paid_cents, refunded_cents } = invoice
  if (isDisputed(invoice)) return granted ?? 0n
  return paid_cents === 0n ? 0n : ((granted ?? 0n) * refunded_cents) / paid_cents
}

/** Returns the change of the credits that a refund or a dispute caused, with its reason; nothing is owed beyond it. */
export async function settleReturns(
  deps: CreditDeps,
  tx: Tx,
  invoice: PlanInvoiceRow,
): Promise<{ credits: bigint; reason: Reason } | undefined> {
  const now = deps.clock.now()
  const wanted = returnable(invoice)
  const isSuspended = isDisputed(invoice) || isPaidBack(invoice)
  const missing = wanted - invoice.taken_back
  let settled: { credits: bigint; reason: Reason } | undefined
  if (missing > 0n) {
    // What is on hold now, and is not spent, is taken by a later reading.
    const { available } = await lockUnspent(tx, invoice)
    const taken = missing < available ? missing : available
    if (taken > 0n) settled = { credits: -taken, reason: isDisputed(invoice) ? 'disputed' : 'refunded' }
  } else if (missing < 0n) {
    settled = { credits: -missing, reason: invoice.dispute === 'won' ? 'dispute_won' : 'refund_failed' }
  }
  if (settled) {
    await change(deps, tx, { invoice, now, ...settled })
    invoice.taken_back -= settled.credits
    await query(tx, 'update plan_invoice set taken_back = $2 where id = $1', [invoice.id, invoice.taken_back])
  }
  // Units that a running task holds come back later; in an expired account they are not spendable.
  await query(
    tx,
    `insert into credit_bucket (user_id, sub_account, expires_at) values ($1, $2, $3)
     on conflict (user_id, sub_account) do update set
       expires_at = case when $4 then least(credit_bucket.expires_at, excluded.expires_at) else excluded.expires_at end`,
    [
      invoice.user_id,
      planAccountOf(invoice.id),
      isSuspended ? earliest(invoice.expires_at!, now) : invoice.expires_at,
      isSuspended,
    ],
  )
  return settled
}
