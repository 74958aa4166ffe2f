/** Stops of many users that one fall of a price reaches: each of them fires, however slow the providers of quotes are. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createRound } from '#engines/trigger-orders/price-watch.ts'
import { insertTriggerOrders } from '#engines/trigger-orders/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const steps = { only: async () => executed }
const fired = { kind: 'fired', version: 1, priority: 0 as const, steps }
const everyMs = 2_000
const quotesAtOnce = 4

describe('orders with a quote each that a price reaches together', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const armed = async (market: string, orders: number): Promise<void> => {
    const rows = Array.from({ length: orders }, (_, at) => ({
      id: newUser(),
      user_id: newUser(),
      kind: 'fired',
      market,
      direction: 'lte' as const,
      trigger_price: '10',
      quote_key: `quote ${at}`,
      input: {},
      created_at: new Date(),
    }))
    await fixture.admin.transaction((tx) => insertTriggerOrders(tx, rows))
  }
  const firedOn = async (market: string): Promise<number> => {
    const sql = `select count(*)::integer as count from trigger_order where market = $1 and status = 'fired'`
    return (await fixture.rows<{ count: number }>(sql, market))[0]!.count
  }

  for (const { orders, quotesPerMinute, quoteMs, minutes } of [
    { orders: 30, quotesPerMinute: 30, quoteMs: 300, minutes: 4 },
    { orders: 30, quotesPerMinute: 30, quoteMs: 4_000, minutes: 4 },
    { orders: 80, quotesPerMinute: 600, quoteMs: 2_000, minutes: 3 },
  ])
    test(`${orders} orders fire within ${minutes} minutes at ${quotesPerMinute} quotes of ${quoteMs} ms`, async () => {
      await using a = await fixture.instance({ steps }, { internal: [fired] })
      const market = `token:${newUser()}`
      await armed(market, orders)
      let nowMs = 0
      const round = createRound({
        db: fixture.admin.pool,
        clock,
        log: silentLog,
        priceTriggers: a.priceTriggers,
        displayPrices: async (markets) =>
          new Map(
            markets.filter((each) => each === market).map((each) => [each, { price: '9', at: new Date() }]),
          ),
        quotePrice: async () => {
          nowMs += quoteMs / quotesAtOnce
          return '9'
        },
        quotesPerMinute,
        isOnDuty: () => true,
        nowMs: () => nowMs,
      })
      for (; nowMs < minutes * 60_000; nowMs += everyMs) {
        await round()
        if ((await firedOn(market)) === orders) return
      }
      assert.equal(await firedOn(market), orders)
    })
})
