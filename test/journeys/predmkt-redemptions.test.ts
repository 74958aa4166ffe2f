/** Redemptions of shares that the gateway did not trade, at the same time, and again. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  accept,
  cashOf,
  createTrader,
  type Ended,
  executed,
  forgetRelayed,
  type Market,
  marketBy,
  micros,
  moveOutcomeShares,
  outcomeOf,
  positionOf,
  predictionVenue,
  statusOf,
} from './predmkt-calls.ts'
import type { Person } from './users.ts'
import { type World, worldOf } from './world.ts'

/** Nobody's wallet. */
const stranger = '0x00000000000000000000000000000000000a11ce'
type Redeemed = { condition_id: string; shares: string; payout_usd: string; by: string }

describe('redemptions at the prediction market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let venue: ReturnType<typeof predictionVenue>
  let ada: Person
  let wallet: string
  /** Has the shares that come to ada. */
  let bob: Person
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0' },
      { ownWorld: 'the markets of this one are resolved' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    const newTrader = () => createTrader(gateway, world, '200')
    ;[ada, bob] = await Promise.all([newTrader(), newTrader()])
    wallet = (await statusOf(ada)).safe_address
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const marketAt = async (slug: string): Promise<Market> => {
    await venue('POST', '/price', { market: slug, price: 0.4 })
    return marketBy(ada, slug)
  }
  const buy = async (person: Person, market: Market): Promise<string> => {
    const terms = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: '8' }
    return (await executed(person, '/predmkt/order', terms)).result.settled_shares!
  }
  const receive = async (market: Market, shares: string) => {
    const from = (await statusOf(bob)).safe_address
    const units = micros(shares)
    await moveOutcomeShares(world, { from, to: wallet, market, outcomeId: outcomeOf(market), units })
  }
  const resolve = ({ slug }: Market, outcome: string) => venue('POST', '/resolve', { market: slug, outcome })
  const redeem = (body: object) => executed(ada, '/predmkt/redeem', body)
  const redeemedOf = ({ result }: Ended) => result.redeemed as unknown as Redeemed[]
  const realized = async () =>
    micros((await ada.call<{ pnl: { realized_usd: string } }>('GET /predmkt/activity')).body.pnl.realized_usd)

  test('all covers every market of which the wallet has shares, traded here or not', async () => {
    const cases = [
      { slug: 'fed-cuts-rates-in-december', outcome: 'yes', isOwn: true },
      { slug: 'new-phone-before-march', outcome: 'yes', isOwn: false },
      { slug: 'ada-winter-wins-the-mayoral-race', outcome: 'yes', isOwn: false },
      { slug: 'bitcoin-up-or-down-today', outcome: 'void', isOwn: false },
      { slug: 'gamma-is-the-largest-company', outcome: 'no', isOwn: false },
    ]
    const expected = new Map<string, string>()
    for (const { slug, outcome, isOwn } of cases) {
      const market = await marketAt(slug)
      const shares = await buy(isOwn ? ada : bob, market)
      if (!isOwn) await receive(market, shares)
      await resolve(market, outcome)
      const share = { yes: 1_000_000n, no: 0n, void: 500_000n }[outcome]!
      expected.set(market.condition_id, String((micros(shares) * share) / 1_000_000n))
      await eventually(() => positionOf(ada, outcomeOf(market)), `${slug} is listed`)
    }
    const cash = await cashOf(ada)
    const task = await redeem({ all: true })
    const paid = new Map(redeemedOf(task).map((row) => [row.condition_id, String(micros(row.payout_usd))]))
    assert.deepEqual(paid, expected)
    assert.ok(redeemedOf(task).every(({ by }) => by === 'us'))
    const total = [...expected.values()].reduce((sum, units) => sum + BigInt(units), 0n)
    assert.equal(micros(task.result.payout_usd!), total)
    assert.equal((await cashOf(ada)) - cash, total)
    const again = await ada.call('POST /predmkt/redeem', { body: { all: true } })
    assert.deepEqual([again.status, again.body.code], [409, 'no_position'], JSON.stringify(again.body))
  })

  test('two redemptions of the same shares pay once, and one of them says so', async () => {
    for (const slug of ['harbor-city-vs-river-town', 'recession-declared-next-year']) {
      const market = await marketAt(slug)
      const shares = await buy(ada, market)
      await resolve(market, 'yes')
      const [cash, profit] = [await cashOf(ada), await realized()]
      await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 2_000, maxMs: 2_000 } })
      const body = { condition_id: market.condition_id }
      const tasks = await Promise.all([0, 1].map(() => ada.call<Ended>('POST /predmkt/redeem', { body })))
      const ends = await Promise.all(tasks.map(({ body: { task_id: id } }) => ada.ended(id)))
      await venue('POST', '/realism', { preset: 'quiet' })
      assert.deepEqual(
        ends.map(({ outcome, error }) => [outcome, error?.code]).sort(),
        [
          ['executed', undefined],
          ['not_executed', 'no_position'],
        ],
        JSON.stringify(ends),
      )
      assert.equal((await cashOf(ada)) - cash, micros(shares))
      const cost = micros('8')
      assert.ok((await realized()) - profit <= micros(shares) - cost + 100_000n, 'the payout counts once')
    }
  })

  test('a redemption of the venue is reported by one task, and counts once, also before any task', async () => {
    for (const [slug, isBookedFirst] of [
      ['ben-summer-wins-the-mayoral-race', false],
      ['cal-autumn-wins-the-mayoral-race', true],
    ] as const) {
      const market = await marketAt(slug)
      const outcome = market.outcomes[1]!.outcome_id
      const terms = { outcome_id: outcome, side: 'BUY', order_type: 'FOK', amount_usd: '8' }
      const { settled_shares: shares, total_usd: cost } = (await executed(ada, '/predmkt/order', terms))
        .result
      const profit = await realized()
      if (isBookedFirst) await executed(bob, '/predmkt/order', terms)
      const { safe_address: bobs } = await statusOf(bob)
      const moveUnit = (from: string, to: string) =>
        moveOutcomeShares(world, { from, to, market, outcomeId: outcome, units: 1n })
      if (isBookedFirst) await moveUnit(bobs, stranger)
      await venue('POST', '/realism', { autoRedeem: { rate: 1, delayMs: 0 } })
      await resolve(market, 'no')
      await venue('POST', '/auto-redeem')
      // A unit that a stranger sends does not hide that the shares have left.
      if (isBookedFirst) await moveUnit(stranger, wallet)
      await venue('POST', '/realism', { preset: 'quiet' })
      const gained = micros(shares!) - micros(cost!)
      const isBooked = async () => (await realized()) - profit === gained || undefined
      if (isBookedFirst)
        await eventually(isBooked, 'the redemption counts, and nobody has asked for it', 60_000)
      if (isBookedFirst) await moveUnit(wallet, stranger)
      const body = { condition_id: market.condition_id }
      const accepted = await eventually(async () => {
        const replies = await Promise.all(
          [0, 1, 2].map(() => ada.call<Ended>('POST /predmkt/redeem', { body })),
        )
        const tasks = replies.filter(({ status }) => status < 400)
        if (tasks.length > 1) return tasks
        // The reads of redemptions have a bound.
        await delay(2_000)
        return undefined
      }, 'the venue lists the redemption')
      const ends = await Promise.all(accepted.map(({ body: { task_id: id } }) => ada.ended(id)))
      const executions = ends.filter(({ outcome }) => outcome === 'executed')
      assert.equal(executions.length, 1, JSON.stringify(ends))
      assert.ok(
        ends.every(({ outcome, error }) => outcome === 'executed' || error?.code === 'no_position'),
        JSON.stringify(ends),
      )
      assert.equal((executions[0] as unknown as Ended).result.payout_usd, shares)
      assert.equal((await realized()) - profit, gained, 'the payout counts once')
    }
  })

  test('shares that leave the wallet without a payout are no redemption, and count as none', async () => {
    for (const [slug, outcome] of [
      ['bitcoin-reaches-250k-this-year', 'yes'],
      ['alpha-is-the-largest-company', 'no'],
    ] as const) {
      const market = await marketAt(slug)
      const shares = await buy(ada, market)
      await resolve(market, outcome)
      const [cash, profit] = [await cashOf(ada), await realized()]
      await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 6_000, maxMs: 6_000 } })
      const body = { condition_id: market.condition_id }
      const { task_id: id } = await accept(ada, '/predmkt/redeem', body)
      const { safe_address: to } = await statusOf(bob)
      const units = micros(shares)
      await moveOutcomeShares(world, { from: wallet, to, market, outcomeId: outcomeOf(market), units })
      const ended = (await ada.ended(id, 60_000)) as unknown as Ended
      await venue('POST', '/realism', { preset: 'quiet' })
      assert.deepEqual(
        [ended.status, ended.outcome, ended.error?.code],
        ['failed', 'not_executed', 'no_position'],
        JSON.stringify(ended),
      )
      assert.equal(await cashOf(ada), cash)
      assert.equal(await realized(), profit, 'no payout is booked')
    }
  })

  test('a redemption whose batch the relayer has lost ends, and shares that come after it are redeemed as well', async () => {
    const market = await marketAt('beta-is-the-largest-company')
    const [own, shares] = [await buy(ada, market), await buy(bob, market)]
    await resolve(market, 'yes')
    const [body, cash] = [{ condition_id: market.condition_id }, await cashOf(ada)]
    const database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 3_000, maxMs: 3_000 } })
    const { task_id: taskId } = await accept(ada, '/predmkt/redeem', body)
    const hasRun = async () => (await cashOf(ada)) === cash + micros(own)
    await forgetRelayed({ venue, database, taskId, hasRun })
    await database.end()
    await venue('POST', '/realism', { preset: 'quiet' })
    const lost = (await ada.ended(taskId)) as unknown as Ended
    assert.deepEqual([lost.outcome, lost.result.payout_usd], ['executed', own], JSON.stringify(lost))
    const profit = await realized()
    await receive(market, shares)
    assert.equal((await redeem(body)).result.payout_usd, shares)
    assert.equal((await realized()) - profit, micros(shares))
  })
})
