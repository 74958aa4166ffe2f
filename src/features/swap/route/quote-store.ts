import type { SwapDeps } from '#features/swap/deps.ts'
import { later } from '#kernel/clock.ts'
import { Fault, invalid, notFound } from '#kernel/contract/fault.ts'
import { isUuid, uuidv7 } from '#kernel/id.ts'
import type { ProposedRoute } from '#kernel/money/swap-provider.ts'
import { canonicalJson, type JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import { quoteMs, quotesPerUserMax } from './limits.ts'
import { storedRoute, toRoute } from './stored-route.ts'
import type { AskedTerms } from './terms.ts'

/** This module stores bound quotes. A dry run creates one, and at most one task executes it. */

type StoredRoute = { route: ProposedRoute; expiresAt: Date }
type Row = { request: JsonObject; route: JsonObject; expires_at: Date; claim: string | null }

/**
 * The fields that a request has to repeat to execute a quote. The amount is compared as it was given, because
 * the units of a dollar amount change with the price.
 */
const boundFields = ({ origin, destination, recipient, ...terms }: AskedTerms): JsonObject => ({
  chain_id_in: origin.chain.id,
  chain_id_out: destination.chain.id,
  token_in: origin.token.address,
  token_out: destination.token.address,
  ...terms.given,
  recipient,
  slippage_bps: terms.slippageBps,
  deadline_seconds: terms.deadlineSeconds,
})

/** Stores a quote, and deletes the user's oldest ones beyond the limit. */
export async function saveQuote(
  { db, clock, random }: Pick<SwapDeps, 'db' | 'clock' | 'random'>,
  terms: AskedTerms,
  route: ProposedRoute,
): Promise<{ quoteId: string; expiresAt: Date }> {
  const now = clock.now()
  const quoteId = uuidv7(now, random)
  const expiresAt = later(now, quoteMs)
  const values = [
    quoteId,
    terms.userId,
    now,
    expiresAt,
    boundFields(terms),
    storedRoute(route),
    quotesPerUserMax,
  ]
  await query(
    db,
    `with excess as (
       delete from swap_quote where id = any(array(
         select id from swap_quote where user_id = $2 order by created_at desc offset $7 - 1)))
     insert into swap_quote (id, user_id, created_at, expires_at, request, route) values ($1, $2, $3, $4, $5, $6)`,
    values,
  )
  return { quoteId, expiresAt }
}

/** Returns a stored quote; throws if it is not the user's, expired or used, or if the request differs from it. */
export async function storedQuote(
  { db, clock }: Pick<SwapDeps, 'db' | 'clock'>,
  terms: AskedTerms,
  quoteId: string,
): Promise<StoredRoute> {
  const [row] = isUuid(quoteId)
    ? await query<Row>(
        db,
        `select q.request, q.route, q.expires_at, u.claim from swap_quote q
         left join swap_quote_use u on u.quote_id = q.id where q.id = $1 and q.user_id = $2`,
        [quoteId, terms.userId],
      )
    : []
  if (!row) throw notFound('quote')
  if (row.claim !== null) throw quoteUsed()
  if (row.expires_at <= clock.now())
    throw new Fault('quote_expired', 'The quote has expired; ask for another one with `dryrun`', {
      extras: { quote_id: quoteId, expired_at: row.expires_at.toISOString() },
    })
  if (canonicalJson(row.request) !== canonicalJson(boundFields(terms)))
    throw invalid('quote_id', 'value_error', 'Input should be the quote of this very request')
  return { route: toRoute(row.route), expiresAt: row.expires_at }
}

export const quoteUsed = () =>
  new Fault('conflict', 'The quote was already executed; ask for a new one with `dryrun`', {
    extras: { reason: 'quote_used' },
  })

/** Whether the task with this claim was the first to be accepted for the quote. */
export async function isFirstClaim(db: Queryable, quoteId: string, claim: string): Promise<boolean> {
  const [row] = await query<{ claim: string }>(db, 'select claim from swap_quote_use where quote_id = $1', [
    quoteId,
  ])
  return row?.claim === claim
}
