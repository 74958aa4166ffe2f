/** The same orders on paper and at the venue, at the same time and on the same book, whose price walks. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { pastDayEnds } from '#features/schedules/recurrence/past-times.ts'
import { lockAccount, openAccountRow, storeAccount, storeFills } from '#features/strategies/account-store.ts'
import type { ModeDriver, StrategyTerms } from '#features/strategies/mode-driver.ts'
import { createPaperDriver, latencyMs } from '#features/strategies/paper.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Decision, OrderIntent } from '#market/strategies/strategy.ts'
import { query } from '#store/query.ts'
import type { StrategyFillRow } from '#store/tables/strategies.ts'
import type { Book } from '#upstreams/hyperliquid/market-history.ts'
import { eventually } from '../harness/gateway.ts'
import { bySize } from '../proof/support/seed.ts'
import { addStrategy, newId, type Strategy } from './strategy-rows.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

const traders = 10
const rounds = bySize({ short: 2, full: 25, nightly: 25 })
/** Each round buys and sells. */
const orders = traders * rounds * 2
const meanBpsMax = 5
const sizes = ['0.005', '0.02', '0.1', '0.25']

describe('paper beside live orders', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({
      quiet: 'its prices walk by themselves, and its replies are compared in time',
    })
    await app.market.control('POST', '/settings', { walking: true })
  })
  after(() => app?.[Symbol.asyncDispose]())

  const driverOf = (books?: () => Promise<Book>): ModeDriver => {
    const { upstream, db } = app.main
    const book = (asset: string, maxAgeMs: number, owner: string) =>
      books?.() ?? upstream.book(asset, owner, { maxAgeMs })
    const observe = {
      mids: () => upstream.mids(),
      book,
      minutes: async () => undefined,
      funding: async () => [],
    }
    return createPaperDriver({ db, clock: systemClock, observe, dayEnds: pastDayEnds })
  }
  const termsOf = ({ id, userId }: Strategy): StrategyTerms => ({
    strategyId: id,
    userId,
    version: 1,
    mode: 'paper',
    config: {
      decision: {
        strategy: { type: 'dca', asset: 'BTC', amount_usd: '100' },
        markets: {
          BTC: {
            kind: 'perp',
            size_decimals: 5,
            price_decimals: 1,
            leverage_max: 40,
            venue_leverage_max: 40,
            min_order_usd: '10',
          },
        },
      },
      guards: { on_trip: 'stop_entries' },
      budgetMicros: null,
    },
    span: '1h',
    timezone: 'UTC',
    initialMicros: 10_000_000_000_000n,
  })
  const orderOf = (size: string, isBuy: boolean): OrderIntent => ({
    asset: 'BTC',
    side: isBuy ? 'buy' : 'sell',
    order_type: 'market',
    size,
    reduce_only: !isBuy,
    leverage: 10,
  })

  const open = async (owner: User): Promise<StrategyTerms> => {
    const strategy = await addStrategy(app.main.db, owner, {
      type: 'dca',
      config: { asset: 'BTC', amount_usd: '100' },
    })
    const terms = termsOf(strategy)
    const at = systemClock.now()
    const account = driverOf().open(terms, at.getTime())
    const key = { strategy_id: strategy.id, mode: 'paper', user_id: owner.id, version: 1 } as const
    await app.main.transactions.run((tx) =>
      openAccountRow(tx, { ...key, ...account, at, random: systemRandom }),
    )
    return terms
  }

  /** Decides an order and fills it on paper, as a run does. */
  async function onPaper(
    driver: ModeDriver,
    terms: StrategyTerms,
    order: OrderIntent,
  ): Promise<readonly StrategyFillRow[]> {
    const key = { strategy_id: terms.strategyId, mode: 'paper' } as const
    const { run: transact } = app.main.transactions
    const at = systemClock.now()
    const decision: Decision = { action: 'adjust', reason: 'test', figures: {}, orders: [order] }
    const ordered = { executionId: newId(), seq: 1, atMs: at.getTime(), decision }
    const placed = await transact(async (tx) => {
      const account = driver.place((await lockAccount(tx, key))!, ordered, terms)
      await storeAccount(tx, account, at)
      return account
    })
    // A book that is older than one from which another order was filled serves nothing, so it is read again.
    return eventually(async () => {
      const nowMs = systemClock.now().getTime()
      if (nowMs < at.getTime() + latencyMs) return undefined
      const reading = await driver.read(placed, terms, { nowMs, userId: terms.userId, purpose: 'decide' })
      const { account, fills } = await transact(async (tx) => {
        const made = await reading.apply(tx, (await lockAccount(tx, key))!)
        await storeFills(tx, made.fills)
        await storeAccount(tx, made.account, systemClock.now())
        return made
      })
      return account.run.pending.length === 0 ? fills : undefined
    }, 'the fill on paper')
  }

  test(`${orders} orders cost the same within ${meanBpsMax} basis points on average`, async () => {
    const differences: number[] = []
    const trade = async (at: number): Promise<void> => {
      const owner = await app.trader('100000')
      const terms = await open(owner)
      const driver = driverOf()
      for (let round = 0; round < rounds; round++)
        for (const isBuy of [true, false]) {
          const size = sizes[(at + round) % sizes.length]!
          const [fills, live] = await Promise.all([
            onPaper(driver, terms, orderOf(size, isBuy)),
            isBuy
              ? app.call('perp_open', { asset: 'BTC', side: 'long', size, leverage: 10 }, owner)
              : app.call('perp_close', { asset: 'BTC', size }, owner),
          ])
          assert.equal(live.outcome, 'executed', JSON.stringify(live))
          const [fill, ...others] = fills
          assert.deepEqual([others.length, fill?.size], [0, live.result.filled_size])
          const [paper, real] = [Number(fill?.price), Number(live.result.avg_price)]
          differences.push((Math.abs(paper - real) / real) * 10_000)
        }
    }
    await Promise.all(Array.from({ length: traders }, (_, at) => trade(at)))
    assert.equal(differences.length, orders)
    const mean = differences.reduce((sum, bps) => sum + bps, 0) / orders
    console.log(`paper beside live: ${orders} orders, ${mean.toFixed(2)} bps apart on average`)
    assert.ok(mean <= meanBpsMax, `${mean} bps`)
  })

  test('strategies of one user share one book: nothing beyond it is filled, and no level twice', async () => {
    const owner = await app.addUser()
    const { bids, asks } = await app.main.upstream.book('BTC', owner.id, { maxAgeMs: 0 })
    const timeMs = systemClock.now().getTime() + 60_000
    const driver = driverOf(async () => ({ timeMs, bids, asks: asks.slice(0, 3) }))
    const there = asks.slice(0, 3).reduce((sum, { size }) => sum + Math.round(Number(size) * 1e5), 0)
    const size = (Math.ceil(there / 5) / 1e5).toFixed(5)
    const all = await Promise.all(Array.from({ length: 8 }, () => open(owner)))
    const filled = await Promise.all(all.map((terms) => onPaper(driver, terms, orderOf(size, true))))
    const units = filled.flat().map((fill) => Math.round(Number(fill.size) * 1e5))
    assert.equal(
      units.reduce((sum, each) => sum + each, 0),
      there,
    )
    const [taken] = await query<{ asks: Record<string, string> }>(
      app.main.db,
      'select asks from paper_levels where user_id = $1 and market = $2',
      [owner.id, 'BTC'],
    )
    for (const { price, size: shown } of asks.slice(0, 3))
      assert.equal(
        Number(taken?.asks[String(Math.round(Number(price) * 1e8))]),
        Math.round(Number(shown) * 1e5),
      )
  })
})
