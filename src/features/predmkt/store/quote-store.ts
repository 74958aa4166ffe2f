import { isUuid } from '#kernel/id.ts'
import type { OutcomeQuote } from '#kernel/money/prediction-views.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'

/** Quotes that an order may name until they expire. */

export type StoredQuote = {
  outcomeId: string
  side: 'buy' | 'sell'
  worstPriceMicros: bigint
  sizeUnits: bigint
  allInUnits: bigint
  expiresAt: Date
}
type NewQuote = { id: string; userId: string; quote: OutcomeQuote; allInUnits: bigint; expiresAt: Date }

export async function addQuote(
  db: Queryable,
  { id, userId, quote, allInUnits, expiresAt }: NewQuote,
): Promise<void> {
  const { venue, outcomeId, side, worstPriceMicros, sizeUnits } = quote
  await query(
    db,
    `insert into prediction_quote (id, user_id, venue, outcome_id, side, worst_price, size, all_in, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [id, userId, venue, outcomeId, side, worstPriceMicros, String(sizeUnits), String(allInUnits), expiresAt],
  )
}

export async function findQuote(db: Queryable, userId: string, id: string): Promise<StoredQuote | undefined> {
  if (!isUuid(id)) return undefined
  const row = await fetchOne(
    db,
    builder.selectFrom('prediction_quote').selectAll().where('id', '=', id).where('user_id', '=', userId),
  )
  return (
    row && {
      outcomeId: row.outcome_id,
      side: row.side,
      worstPriceMicros: row.worst_price,
      sizeUnits: BigInt(row.size),
      allInUnits: BigInt(row.all_in),
      expiresAt: row.expires_at,
    }
  )
}
