/** Trailing orders follow the price, however many there are. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createRound } from '#engines/trigger-orders/price-watch.ts'
import { raiseAllTrails } from '#engines/trigger-orders/trailing.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const steps = { only: async () => executed }
const fired = { kind: 'fired', version: 1, priority: 0 as const, steps }
const statementMax = 1_000

describe('trailing orders', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  /** A market with so many orders that trail the price 10 by a tenth. */
  const marketOf = async (orders: number): Promise<string> => {
    const market = `token:${newUser()}`
    await fixture.rows(
      `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, quote_key, trail, high_water,
           input, status, created_at, updated_at)
         select gen_random_uuid(), gen_random_uuid(), 'fired', $1, 'lte', 9, 'k', 0.1, 10, '{}', 'armed', now(), now()
         from generate_series(1, $2::integer) returning id`,
      market,
      orders,
    )
    return market
  }
  const raised = async (market: string) =>
    (
      await fixture.rows<{ high_water: string; trigger_price: string; count: number }>(
        `select high_water::text, trigger_price::text, count(*)::integer from trigger_order
           where market = $1 group by 1, 2 order by 1`,
        market,
      )
    ).map(({ high_water, trigger_price, count }) => [Number(high_water), Number(trigger_price), count])
  const priceOf = (market: string) => ({ market, price: '11', places: 2 })
  /** The rows that each statement changes. */
  const countedDb = () => {
    const changed: number[] = []
    const { pool } = fixture.admin
    const db = {
      async query(...given: unknown[]) {
        const result = await (pool.query as (...args: unknown[]) => Promise<{ rowCount: number }>)(...given)
        changed.push(result.rowCount)
        return result
      },
    }
    return { changed, db: db as unknown as Queryable }
  }

  test('all orders below a higher price follow it, a bounded number in each statement', async () => {
    const markets = [await marketOf(2_500), await marketOf(700), await marketOf(0)]
    const { changed, db } = countedDb()
    await raiseAllTrails(db, markets.map(priceOf), { msMax: Number.POSITIVE_INFINITY })
    assert.deepEqual(await Promise.all(markets.map(raised)), [[[11, 9.9, 2_500]], [[11, 9.9, 700]], []])
    assert.ok(
      changed.every((count) => count <= statementMax + markets.length),
      `${changed}`,
    )
    assert.ok(changed.length <= 7, `${changed}`)
  })

  test('a market with many orders leaves another one its part of the time', async () => {
    const [many, few] = [await marketOf(2_500), await marketOf(300)]
    await raiseAllTrails(fixture.admin.pool, [many, few].map(priceOf), { msMax: 0 })
    assert.deepEqual(await raised(few), [[11, 9.9, 300]])
    assert.deepEqual(await raised(many), [
      [10, 9, 2_000],
      [11, 9.9, 500],
    ])
  })

  test('orders that cannot be raised keep no order from firing', async () => {
    await using a = await fixture.instance({ steps }, { internal: [fired] })
    const market = await marketOf(1)
    const { pool } = fixture.admin
    const failing = {
      async query(...given: unknown[]) {
        if (JSON.stringify(given).includes('high_water = r.price')) throw new Error('the rows are locked')
        return (pool.query as (...args: unknown[]) => Promise<unknown>)(...given)
      },
    }
    const round = createRound({
      db: failing as unknown as Queryable,
      clock,
      log: silentLog,
      priceTriggers: a.priceTriggers,
      displayPrices: async (leased) =>
        new Map(
          leased.filter((each) => each === market).map((each) => [each, { price: '9', at: new Date() }]),
        ),
      quotePrice: async () => '8.9',
      quotesPerMinute: 6_000,
      isOnDuty: () => true,
    })
    await round()
    await assert.rejects(round(), /locked/)
    const [order] = await fixture.rows<{ status: string }>(
      'select status from trigger_order where market = $1',
      market,
    )
    assert.equal(order?.status, 'fired')
  })
})
