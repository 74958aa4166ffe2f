import type { FundingRate } from '#market/trade-simulation.ts'
import { type Queryable, query } from '#store/query.ts'
import type { MarketHistory } from '#upstreams/hyperliquid/market-history.ts'

/** The hourly funding of markets, which is read from the venue once. */

type Time = { fromMs: number; toMs: number }
export type FundingStore = {
  /** Reads the rates of a time that are not stored yet, page by page. */
  fill(market: string, time: Time, owner: string): Promise<void>
  /** Returns the stored rates of a time, oldest first. */
  read(market: string, time: Time): Promise<FundingRate[]>
}
type FundingDeps = { db: Queryable; venue: Pick<MarketHistory, 'fundingPage'> }

const hourMs = 3_600_000
/** The venue returns at most 500 rates, of which each hour has one. */
const pageMs = 480 * hourMs

/** Returns until when a page is known: the venue publishes the rate of an hour shortly after it, so the last may still come. */
function knownUntil({ fromMs, toMs }: Time, rates: readonly { atMs: number }[]): number {
  const lastHourMs = Math.floor(toMs / hourMs) * hourMs
  return rates.some(({ atMs }) => atMs >= lastHourMs) ? toMs : Math.max(fromMs, lastHourMs)
}

export function createFundingStore({ db, venue }: FundingDeps): FundingStore {
  async function filledOf(market: string): Promise<Time | undefined> {
    const [row] = await query<{ filled_from_ms: bigint; filled_to_ms: bigint }>(
      db,
      'select filled_from_ms, filled_to_ms from funding_series where market = $1',
      [market],
    )
    return row && { fromMs: Number(row.filled_from_ms), toMs: Number(row.filled_to_ms) }
  }

  /** Reads the rates of one page, and widens by it the time that is known. */
  async function fillPage(market: string, page: Time, owner: string): Promise<void> {
    const rates = await venue.fundingPage(market, page, owner)
    const within = rates.filter(({ atMs }) => atMs < page.toMs)
    await query(
      db,
      `insert into funding_rate (market, at_ms, rate) select $1, * from unnest($2::bigint[], $3::numeric[])
       on conflict do nothing`,
      [market, within.map(({ atMs }) => String(atMs)), within.map(({ rate }) => rate)],
    )
    await query(
      db,
      `insert into funding_series (market, filled_from_ms, filled_to_ms) values ($1, $2, $3)
       on conflict (market) do update set
         filled_from_ms = least(funding_series.filled_from_ms, excluded.filled_from_ms),
         filled_to_ms = greatest(funding_series.filled_to_ms, excluded.filled_to_ms)`,
      [market, page.fromMs, knownUntil(page, rates)],
    )
  }

  return {
    async fill(market, { fromMs, toMs }, owner) {
      const known = await filledOf(market)
      // What is known stays one time without a hole, so pages join it at its ends.
      for (let at = known?.toMs ?? fromMs; at < toMs; at += pageMs)
        await fillPage(market, { fromMs: at, toMs: Math.min(toMs, at + pageMs) }, owner)
      for (let before = known?.fromMs ?? fromMs; before > fromMs; before -= pageMs)
        await fillPage(market, { fromMs: Math.max(fromMs, before - pageMs), toMs: before }, owner)
    },
    async read(market, { fromMs, toMs }) {
      const rows = await query<{ at: number; rate: number }>(
        db,
        `select at_ms::float8 as at, rate::float8 from funding_rate
         where market = $1 and at_ms > $2 and at_ms <= $3 order by at_ms`,
        [market, fromMs, toMs],
      )
      return rows.map(({ at, rate }) => ({ atMs: at, rate }))
    },
  }
}
