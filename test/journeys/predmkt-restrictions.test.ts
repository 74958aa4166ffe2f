/** What the venue withholds from accounts and regions, and what it delays: exits work, and no failure is reported. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  accept,
  buyTerms,
  cashOf,
  createTrader,
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  openOrdersOf,
  outcomeOf,
  positionOf,
  predictionVenue,
  type Quote,
  run,
  sellable,
  statusOf,
} from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'
import { polygon, type World, worldOf } from './world.ts'

const price = 0.4

describe('restrictions and delays of the prediction market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let venue: ReturnType<typeof predictionVenue>
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0', SPONSOR_USER_DAY: '0.02,137:0.25' },
      { ownWorld: 'the markets of this one are resolved, and its venue refuses' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
  })
  afterEach(() => venue('POST', '/realism', { preset: 'quiet' }))
  after(() => gateway?.[Symbol.asyncDispose]())

  const newTrader = (usd: string) => createTrader(gateway, world, usd)
  const marketAt = async (person: Person, slug: string): Promise<Market> => {
    await venue('POST', '/price', { market: slug, price })
    return marketBy(person, slug)
  }
  const bidTerms = (market: Market) => ({
    outcome_id: outcomeOf(market),
    side: 'BUY',
    price: '0.05',
    size: '10',
  })
  const sellTerms = (market: Market, shares: bigint) => ({
    outcome_id: outcomeOf(market),
    side: 'SELL',
    order_type: 'FAK',
    amount_shares: String(Number(shares) / 1e6),
  })

  /** Refused by the venue at most once, because what it said of access counts for a minute. */
  const assertNoPurchase = async (person: Person, terms: object, code: string) => {
    const first = await person.call<Ended>('POST /predmkt/order', { body: terms })
    if (first.status < 400) {
      const { outcome, error } = await person.ended(first.body.task_id)
      assert.deepEqual([outcome, error?.code], ['not_executed', code])
    }
    const tasks = await person.taskCount()
    const { status, body } = await person.call('POST /predmkt/order', { body: terms })
    assert.deepEqual([status, body.code], [403, 'venue_restricted'], JSON.stringify(body))
    assert.equal(await person.taskCount(), tasks, 'no task exists')
  }

  type Held = { market: Market; shares: bigint; bid: string }
  /** Takes a settled position and a bid in a market of each protocol. */
  const holdIn = async (person: Person, slugs: readonly [string, string]): Promise<Held[]> => {
    const held: Held[] = []
    for (const slug of slugs) {
      const market = await marketAt(person, slug)
      const { result } = await executed(person, '/predmkt/order', buyTerms(market))
      const bid = await executed(person, '/predmkt/order', bidTerms(market))
      held.push({ market, shares: micros(result.settled_shares!), bid: bid.result.order_id! })
    }
    assert.deepEqual(
      held.map(({ market }) => market.protocol),
      ['v1', 'v2'],
    )
    return held
  }

  type Restriction = { sells: boolean; trading: string; code: string }
  /** Nothing is bought, and all that is held becomes cash. */
  const assertExits = async (
    person: Person,
    held: readonly Held[],
    { sells, trading, code }: Restriction,
  ) => {
    for (const { market, shares, bid } of held) {
      await assertNoPurchase(person, buyTerms(market), code)
      await assertNoPurchase(person, bidTerms(market), code)
      assert.equal((await statusOf(person)).trading, trading)
      const half = sellable(String(Number(shares) / 2e6))
      const sale = await run(person, '/predmkt/order', sellTerms(market, half))
      const expected = sells ? ['executed', undefined] : ['not_executed', code]
      assert.deepEqual([sale.outcome, sale.error?.code], expected, JSON.stringify(sale))
      const left = sells ? shares - half : shares
      assert.equal(micros((await positionOf(person, outcomeOf(market)))!.size), left)
      const before = await cashOf(person)
      const { result } = await executed(person, '/predmkt/order/cancel', { order_id: bid })
      assert.deepEqual(result, { canceled: [bid], not_canceled: {} })
      const freed = before + micros('0.5')
      assert.equal(await cashOf(person), freed)
      await venue('POST', '/resolve', { market: market.condition_id, outcome: 'yes' })
      const redeemed = await executed(person, '/predmkt/redeem', { condition_id: market.condition_id })
      assert.equal(micros(redeemed.result.payout_usd!), left)
      assert.equal(await cashOf(person), freed + left)
    }
  }
  const withdraw = async (person: Person, units: bigint) => {
    const usdc = world.manifest.contracts[polygon]!.usdc
    const before = await world.balance(polygon, person.evm, usdc)
    await executed(person, '/predmkt/withdraw', { amount_usdc: String(Number(units) / 1e6) })
    assert.equal((await world.balance(polygon, person.evm, usdc)) - before, units)
  }

  test('an account that may only close sells, cancels, redeems and withdraws', async () => {
    const person = await newTrader('30')
    const held = await holdIn(person, ['ben-summer-wins-the-mayoral-race', 'beta-is-the-largest-company'])
    const { safe_address: wallet } = await statusOf(person)
    await venue('POST', '/account', { wallet, closedOnly: true })
    await assertExits(person, held, { sells: true, trading: 'close_only', code: 'closed_only' })
    await withdraw(person, await cashOf(person))
    assert.equal(await cashOf(person), 0n)
  })

  const waitsForMatch = (person: Person, { task_id: id }: Ended) =>
    eventually(async () => {
      const { body } = await person.call<Ended>(`GET /v1/tasks/${id}`)
      assert.ok(body.status === 'pending' || body.status === 'running', JSON.stringify(body))
      const text = (body as unknown as { progress: { text: string } | null }).progress?.text ?? ''
      return body.state === 'waiting' && text.startsWith('venue_delayed: ') ? body : undefined
    }, 'the order waits for its match')

  test('an order of a market that delays matches waits under that name, and ends with its fill', async () => {
    const person = await newTrader('60')
    for (const [slug, protocol] of [
      ['harbor-city-vs-river-town', 'v1'],
      ['gamma-is-the-largest-company', 'v2'],
    ] as const) {
      const market = await marketAt(person, slug)
      assert.equal(market.protocol, protocol)
      const cash = await cashOf(person)
      const { body: quote } = await person.call<Quote>('POST /predmkt/quote', {
        body: { outcome_id: outcomeOf(market), side: 'BUY', amount_usd: '4' },
      })
      const bought = await accept(person, '/predmkt/order', { ...buyTerms(market), quote_id: quote.quote_id })
      await waitsForMatch(person, bought)
      assert.equal(await cashOf(person), cash - micros('4'), 'its cash is held')
      const { outcome, result } = (await person.ended(bought.task_id)) as unknown as Ended
      assert.deepEqual(
        [outcome, result.order_status, result.settlement],
        ['executed', 'matched', 'confirmed'],
      )
      assert.deepEqual([result.settled_shares, result.total_usd], [quote.shares, quote.total_usd])
      assert.equal(await cashOf(person), cash - micros(quote.total_usd))

      // The book has moved away when the delay is over.
      const missed = await accept(person, '/predmkt/order', { ...buyTerms(market), worst_price: '0.45' })
      await waitsForMatch(person, missed)
      await venue('POST', '/price', { market: slug, price: 0.6 })
      const killed = await person.ended(missed.task_id)
      assert.deepEqual(
        [killed.outcome, killed.error?.code],
        ['not_executed', 'not_filled'],
        JSON.stringify(killed),
      )
      assert.equal(await cashOf(person), cash - micros(quote.total_usd), 'its cash is free again')

      // A limit order that crossed when it came rests once the delay is over.
      const limit = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.62', size: '5' }
      const resting = await accept(person, '/predmkt/order', limit)
      await waitsForMatch(person, resting)
      await venue('POST', '/price', { market: slug, price: 0.8 })
      const rested = (await person.ended(resting.task_id)) as unknown as Ended
      assert.deepEqual(
        [rested.outcome, rested.result.order_status, rested.result.filled_shares],
        ['executed', 'live', '0'],
        JSON.stringify(rested),
      )
      assert.deepEqual(
        (await openOrdersOf(person)).map(({ id }) => id),
        [rested.result.order_id],
      )
      await executed(person, '/predmkt/order/cancel', { order_id: rested.result.order_id })
    }
  })

  test('fundings that have used up the gas of the day leave what withdrawals need', async () => {
    const person = await newTrader('5')
    await world.fund(polygon, person.evm, 'USDC', '100')
    const fund = () => person.call<Ended>('POST /predmkt/fund-safe?wait=true', { body: { amount_usd: '5' } })
    let fundings = 0
    let refused = await fund()
    for (; refused.status === 200; refused = await fund()) fundings += 1
    const { status, body } = refused as { status: number; body: unknown }
    const { reason, budget, limit } = body as Record<string, string>
    assert.deepEqual(
      [status, reason, budget, limit],
      [429, 'sponsor_budget', 'sponsor_gas_per_day', '0.25'],
      JSON.stringify(body),
    )
    assert.ok(fundings > 1, `${fundings} fundings`)
    for (const amount of ['1', '1']) await executed(person, '/predmkt/withdraw', { amount_usdc: amount })
    const all = await cashOf(person)
    await executed(person, '/predmkt/withdraw', { amount_usdc: String(Number(all) / 1e6) })
    assert.equal(await cashOf(person), 0n)
  })

  test('a region that may only close, or not trade, cancels, redeems and withdraws, and sets up nobody new', async () => {
    const newcomer = await createFundedPerson(gateway.url)
    await newcomer.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    const person = await newTrader('60')
    const closing = await holdIn(person, ['fed-cuts-rates-in-december', 'new-phone-before-march'])
    const blocked = await holdIn(person, ['bitcoin-reaches-250k-this-year', 'recession-declared-next-year'])
    await venue('POST', '/realism', { preset: 'closeOnly' })
    await assertExits(person, closing, { sells: true, trading: 'blocked', code: 'geoblocked' })
    await withdraw(person, micros('3'))
    await venue('POST', '/realism', { preset: 'geoblocked' })
    await assertExits(person, blocked, { sells: false, trading: 'blocked', code: 'geoblocked' })
    await withdraw(person, await cashOf(person))
    assert.equal(await cashOf(person), 0n)

    await executed(person, '/predmkt/setup')
    const tasks = await newcomer.taskCount()
    const { status, body } = await newcomer.call('POST /predmkt/setup', { body: {} })
    assert.deepEqual([status, body.code], [403, 'venue_restricted'], JSON.stringify(body))
    assert.equal(await newcomer.taskCount(), tasks)
  })
})
