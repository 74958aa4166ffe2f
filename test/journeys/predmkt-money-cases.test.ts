/** What users of prediction markets complain of about their money, each case on a market of each protocol. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  accept,
  cashOf,
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  outcomeOf,
  positionOf,
  predictionVenue,
  run,
  setUp,
  statusOf,
} from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'
import { polygon, type World, worldOf } from './world.ts'

const price = 0.4
type Redeemed = { redeemed: { shares: string; payout_usd: string; by: string; tx_hash: string | null }[] }

describe('the cases of complaints about money at prediction markets, on both protocols', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let venue: ReturnType<typeof predictionVenue>
  let admin: pg.Pool
  let ada: Person
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0' },
      { ownWorld: 'the markets of this one are resolved, and its relayer fails' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    admin = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    ada = await createFundedPerson(gateway.url)
    await setUp(ada)
    await world.fund(polygon, ada.evm, 'USDC', '500')
    await executed(ada, '/predmkt/fund-safe', { amount_usd: '300' })
    await venue('POST', '/faults', { effect: 'latency', latencyMs: 1, endpoint: 'relayer', type: '/submit' })
  })
  afterEach(() => dial({ preset: 'quiet' }))
  after(async () => {
    await admin?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const dial = (settings: object) => venue('POST', '/realism', settings)
  const relayer = {
    dailyQuota: 0,
    busyRate: 0,
    nonceMismatchRate: 0,
    precheckRate: 0,
    refusedTargets: [] as string[],
  }
  /** Buys shares of the first outcome, and returns the market and how many they are. */
  const buy = async (slug: string): Promise<{ market: Market; shares: string; cost: bigint }> => {
    await venue('POST', '/price', { market: slug, price })
    const market = await marketBy(ada, slug)
    const terms = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: '4' }
    const { result } = await executed(ada, '/predmkt/order', terms)
    return { market, shares: result.settled_shares!, cost: micros(result.total_usd!) }
  }
  const redeem = ({ condition_id }: Market) => executed(ada, '/predmkt/redeem', { condition_id })
  const resolve = (market: Market, outcome: string, onChain = true) =>
    venue('POST', '/resolve', { market: market.condition_id, outcome, onChain })
  const countOfSubmits = async (): Promise<number> =>
    (await venue<{ fault: { type?: string }; struck: number }[]>('GET', '/faults')).find(
      ({ fault }) => fault.type === '/submit',
    )?.struck ?? 0
  const dialRelayer = (settings: object) => dial({ relayer: { ...relayer, ...settings } })
  const pnl = async () =>
    micros((await ada.call<{ pnl: { realized_usd: string } }>('GET /predmkt/activity')).body.pnl.realized_usd)

  test('case 7: what the relayer refuses ends or waits with its reason and time, and can be done later', async () => {
    const bought = [await buy('fed-cuts-rates-in-december'), await buy('gamma-is-the-largest-company')]
    await resolve(bought[0]!.market, 'yes')
    await resolve(bought[1]!.market, 'no')
    const newcomer = await createFundedPerson(gateway.url)
    await newcomer.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    const redemptions = bought.map(({ market }, index) => ({
      person: ada,
      route: '/predmkt/redeem',
      body: { condition_id: market.condition_id },
      target: [contracts.collateralAdapter, contracts.router][index]!,
    }))
    const actions = [
      { person: newcomer, route: '/predmkt/setup', body: {}, target: contracts.pusd },
      { person: ada, route: '/predmkt/withdraw', body: { amount_usdc: '3' }, target: contracts.pusd },
      ...redemptions,
    ]
    for (const { person, route, body, target } of actions) {
      const cash = await cashOf(ada)
      await dialRelayer({ refusedTargets: [target] })
      const blocked = await run(person, route, body)
      assert.deepEqual(
        [blocked.outcome, blocked.error?.code],
        ['not_executed', 'call_blocked'],
        JSON.stringify(blocked),
      )
      if (person === newcomer) assert.match((await statusOf(person)).last_error ?? '', /not permitted/)
      if (route === '/predmkt/redeem') {
        await dialRelayer({ precheckRate: 1 })
        const skipped = await run(person, route, body)
        assert.deepEqual(
          [skipped.outcome, skipped.error?.code],
          ['not_executed', 'relay_failed'],
          JSON.stringify(skipped),
        )
      }
      await dialRelayer({ dailyQuota: 1 })
      const requests = await countOfSubmits()
      const task = await accept(person, route, body)
      await eventually(async () => {
        const now = JSON.stringify((await person.call(`GET /v1/tasks/${task.task_id}`)).body)
        return /quota exceeded.*continues at 20/.test(now) || undefined
      }, `${route} waits for the quota`)
      const [row] = (
        await admin.query<{ seconds: number }>(
          'select extract(epoch from run_at - clock_timestamp())::int as seconds from task_queue where task_id = $1',
          [task.task_id],
        )
      ).rows
      const tomorrow = 86_400 - Math.floor((Date.now() / 1_000) % 86_400)
      // The relayer is asked once an hour, because the time that it names can be wrong.
      const expected = Math.min(tomorrow, 3_600)
      assert.ok(Math.abs(row!.seconds - expected) < 10, `it continues in ${row!.seconds} s`)
      assert.equal(await countOfSubmits(), requests + 1, 'nothing is sent meanwhile')
      if (person === newcomer) {
        const { steps } = await statusOf(person)
        assert.ok(steps.some(({ waiting_until: until }) => until !== null && Date.parse(until) > Date.now()))
      } else assert.equal(await cashOf(ada), route === '/predmkt/redeem' ? cash : cash - 3_000_000n)
      await dial({ preset: 'quiet' })
      // The day is over: what waits for the quota is due.
      await admin.query('update task_queue set run_at = now() where task_id = $1', [task.task_id])
      const ended = await person.ended(task.task_id)
      assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    }
    assert.equal((await statusOf(newcomer)).setup_complete, true)
    for (const { market } of bought) assert.equal(await positionOf(ada, outcomeOf(market)), undefined)
  })

  test('case 9: dollars that are no cash yet are shown as such, and wrapped on request', async () => {
    for (const slug of ['cal-autumn-wins-the-mayoral-race', 'beta-is-the-largest-company']) {
      const person = await createFundedPerson(gateway.url)
      await setUp(person)
      const { safe_address: wallet } = await statusOf(person)
      await world.fund(polygon, person.evm, 'USDC', '10')
      await venue('POST', '/credit', { wallet: person.evm, token: 'usdce', amount: '10' })
      for (const token of ['usdc', 'usdce']) await venue('POST', '/credit', { wallet, token, amount: '10' })
      const places = [
        { token: 'usdc', wallet: 'eoa' },
        { token: 'usdc_e', wallet: 'eoa' },
        { token: 'usdc', wallet: 'deposit_wallet' },
        { token: 'usdc_e', wallet: 'deposit_wallet' },
      ]
      // The status is read for two seconds from a cache.
      const status = await eventually(async () => {
        const shown = await statusOf(person)
        const isShown = (place: (typeof places)[number]) =>
          shown.wrappable.some(
            ({ token, wallet: at, amount }) =>
              token === place.token && at === place.wallet && BigInt(amount) >= 10_000_000n,
          )
        return places.every(isShown) ? shown : undefined
      }, 'the dollars that are no cash yet')
      assert.equal(status.spendable_cash_usd, '0')
      await venue('POST', '/price', { market: slug, price })
      const market = await marketBy(person, slug)
      const terms = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: '35' }
      const early = await person.call('POST /predmkt/order', { body: terms })
      assert.equal(early.body.code, 'insufficient_balance', JSON.stringify(early.body))
      for (const { token, wallet: place } of places)
        await executed(person, '/predmkt/fund-safe', {
          wrap_only: true,
          amount_usd: '10',
          source_wallet: place,
          source_token_address: token === 'usdc' ? contracts.usdc : contracts.usdce,
        })
      assert.equal(await cashOf(person), 40_000_000n)
      await executed(person, '/predmkt/order', terms)
    }
  })

  test('case 8: a redemption of the venue counts as done, and a result that the chain lacks is none', async () => {
    for (const slug of ['harbor-city-vs-river-town', 'new-phone-before-march']) {
      const { market, shares, cost } = await buy(slug)
      const body = { condition_id: market.condition_id }
      await resolve(market, 'yes', false)
      const early = await ada.call('POST /predmkt/redeem', { body })
      assert.deepEqual([early.status, early.body.code], [409, 'not_resolved'], JSON.stringify(early.body))
      await venue('POST', '/report', { market: market.condition_id })
      const [cash, realized] = [await cashOf(ada), await pnl()]
      // The venue redeems after the batch was signed, and before the relayer takes it.
      await dialRelayer({ busyRate: 1 })
      const requests = await countOfSubmits()
      const task = await accept(ada, '/predmkt/redeem', body)
      await eventually(async () => (await countOfSubmits()) > requests, 'the batch is signed')
      await dial({ autoRedeem: { rate: 1, delayMs: 0 } })
      await venue('POST', '/auto-redeem')
      await dialRelayer({})
      const ended = (await ada.ended(task.task_id)) as unknown as Ended
      assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
      const [row] = (ended.result as unknown as Redeemed).redeemed
      assert.deepEqual([row!.by, row!.payout_usd], ['venue', shares], JSON.stringify(ended))
      assert.match(row!.tx_hash ?? '', /^0x/)
      assert.equal(await cashOf(ada), cash + micros(shares))
      assert.equal((await pnl()) - realized, micros(shares) - cost, 'paid once')
      await dial({ preset: 'quiet' })
    }
    for (const slug of ['ada-winter-wins-the-mayoral-race', 'alpha-is-the-largest-company']) {
      const { market, shares, cost } = await buy(slug)
      const realized = await pnl()
      await dial({ autoRedeem: { rate: 1, delayMs: 0 } })
      await resolve(market, 'yes')
      await venue('POST', '/auto-redeem')
      // The venue lists the redemption a little after the chain has it.
      const task = await eventually(async () => {
        const body = { condition_id: market.condition_id }
        const reply = await ada.call<Ended>('POST /predmkt/redeem', { body })
        if (reply.body.code !== 'no_position') return reply.body
        // The reads of redemptions have a bound.
        await delay(1_000)
        return undefined
      }, 'the redemption is accepted')
      const { result } = (await ada.ended(task.task_id)) as unknown as Ended
      const [row] = (result as unknown as Redeemed).redeemed
      assert.deepEqual([row!.by, row!.payout_usd, result.payout_usd], ['venue', shares, shares])
      assert.equal((await pnl()) - realized, micros(shares) - cost, 'paid once')
      const again = await ada.call('POST /predmkt/redeem', { body: { condition_id: market.condition_id } })
      assert.deepEqual([again.status, again.body.code], [409, 'no_position'], JSON.stringify(again.body))
      await dial({ preset: 'quiet' })
    }
    for (const [slug, outcome, share] of [
      ['bitcoin-reaches-250k-this-year', 'no', 0n],
      ['beta-is-the-largest-company', 'no', 0n],
      ['bitcoin-up-or-down-today', 'void', 500_000n],
      ['recession-declared-next-year', 'void', 500_000n],
    ] as const) {
      const { market, shares } = await buy(slug)
      const cash = await cashOf(ada)
      await resolve(market, outcome)
      const { result } = await redeem(market)
      const payout = (micros(shares) * share) / 1_000_000n
      assert.equal(micros(result.payout_usd!), payout, `${slug}: ${JSON.stringify(result)}`)
      assert.equal(await cashOf(ada), cash + payout, slug)
    }
  })

  test('each set-up ends on a bad day of the venue', async () => {
    const people = await Promise.all(Array.from({ length: 4 }, () => createFundedPerson(gateway.url)))
    await dial({ preset: 'stormy' })
    for (const person of people) {
      await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
      const task = await eventually(async () => {
        const { status, body } = await person.call<Ended>('POST /predmkt/setup', { body: {} })
        return status < 400 ? body : undefined
      }, 'the set-up is accepted')
      const ended = await person.ended(task.task_id, 180_000)
      assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    }
  })
})
