import { monotonicMs } from '#kernel/clock.ts'
import { type Queryable, query } from '#store/query.ts'

/** Raises the trigger price of trailing orders when the price of their market rises. */

export type MarketPrice = { market: string; price: string; places: number }

/** The most orders that one statement raises, in equal shares for its markets. */
const batchMax = 1_000

const shareOf = (prices: readonly MarketPrice[]): number => Math.ceil(batchMax / prices.length)

/** Raises a batch of trailing orders, those furthest behind first, and returns the market of each raised order. */
export const raiseTrails = (db: Queryable, prices: readonly MarketPrice[]): Promise<{ market: string }[]> =>
  query<{ market: string }>(
    db,
    `update trigger_order t set high_water = r.price,
       trigger_price = round(ceil(r.price * (1 - t.trail) * 10 ^ r.places) / 10 ^ r.places, r.places::integer)
     from (select o.id, m.price, m.places::numeric as places
       from unnest($1::text[], $2::numeric[], $3::integer[]) m (market, price, places),
         lateral (select id from trigger_order where market = m.market and status = 'armed' and trail is not null
           and high_water < m.price order by high_water limit $4 for update skip locked) o) r
     where t.id = r.id returning t.market`,
    [
      prices.map(({ market }) => market),
      prices.map(({ price }) => price),
      prices.map(({ places }) => places),
      shareOf(prices),
    ],
  )

/**
 * Raises batch after batch until all orders have followed the price or the time is used up; the next call
 * continues. A market with many orders holds back no other market. Locked rows follow in the next call.
 */
export async function raiseAllTrails(
  db: Queryable,
  prices: readonly MarketPrice[],
  { msMax }: { msMax: number },
): Promise<void> {
  const startedMs = monotonicMs()
  let left = prices
  while (left.length > 0) {
    const share = shareOf(left)
    const counts = Map.groupBy(await raiseTrails(db, left), ({ market }) => market)
    left = left.filter(({ market }) => counts.get(market)?.length === share)
    if (monotonicMs() - startedMs >= msMax) return
  }
}
