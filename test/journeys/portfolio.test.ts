/** The sum of what a user has: each part, by chain and by asset, in flight, and with parts that cannot be read. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { creditAtVenue, venueControl } from '../harness/venue-gateway.ts'
import { accept, executed, micros, setUp } from './predmkt-calls.ts'
import { type Person, personOf } from './users.ts'
import { base, polygon, type World, worldOf } from './world.ts'

type Sum = { value_usd: string; share: string | null }
type Portfolio = {
  total_usd: string
  complete: boolean
  as_of: string
  parts: { place: string; value_usd: string | null; as_of: string | null }[]
  by_chain: (Sum & { chain_id: string | null; name: string })[]
  by_asset: (Sum & { symbol: string; amount: string | null })[]
  other_assets_usd: string
  unread: { place: string; chain_id: string | null; message: string }[]
  unpriced: string[]
  pending: { task_id: string; kind: string; value_usd: string | null }[]
}

describe('what a user has everywhere', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let person: Person
  before(async () => {
    gateway = await freshGateway(
      { FAUCET_URL: 'off', LIFI_URL: 'off' },
      { ownWorld: 'the solver lags, and the venue and the prices go away' },
    )
    world = await worldOf(gateway.world)
    person = await personOf(gateway.url, await newAgent(gateway.url))
    const venue = venueControl(gateway.world)
    await venue('POST', '/settings', { walking: false })
    await Promise.all([
      world.fund(base, person.evm, 'USDC', '1000'),
      world.fund(polygon, person.evm, 'USDC', '100'),
      creditAtVenue(venue, { evm: person.evm, amount: '500' }),
      creditAtVenue(venue, { evm: person.evm, coin: 'HYPE', amount: '2' }),
    ])
  })
  afterEach(() => world.heal())
  after(() => gateway?.[Symbol.asyncDispose]())

  const read = async (of = person): Promise<Portfolio> => {
    const { status, body } = await of.call<Portfolio>('GET /portfolio')
    assert.equal(status, 200, JSON.stringify(body))
    const sum = (values: (string | null)[]) => values.reduce((all, each) => all + micros(each ?? '0'), 0n)
    const total = micros(body.total_usd)
    assert.equal(sum(body.parts.map(({ value_usd }) => value_usd)), total)
    assert.equal(sum(body.by_chain.map(({ value_usd }) => value_usd)), total)
    assert.equal(sum([...body.by_asset.map(({ value_usd }) => value_usd), body.other_assets_usd]), total)
    return body
  }
  const partOf = ({ parts }: Portfolio, name: string) =>
    Number(parts.find(({ place }) => place === name)?.value_usd)
  const near = (found: number, wanted: number, by = 0.01) =>
    assert.ok(Math.abs(found - wanted) <= by, `${found}, not ${wanted}`)

  test('wallets, vault, perps, spot and predictions are one sum, by chain and by asset', async () => {
    const deposited = await person.deposit('400')
    assert.equal(deposited.body.outcome, 'executed', JSON.stringify(deposited.body))
    await setUp(person)
    await executed(person, '/predmkt/fund-safe', { amount_usd: '30' })
    const portfolio = await read()
    assert.equal(portfolio.complete, true, JSON.stringify(portfolio))
    near(partOf(portfolio, 'wallets'), 670)
    near(partOf(portfolio, 'vault'), 400)
    near(partOf(portfolio, 'perp'), 500)
    near(partOf(portfolio, 'spot'), 2 * 38.6, 0.5)
    near(partOf(portfolio, 'predictions'), 30)
    near(partOf(portfolio, 'in_flight'), 0, 0)
    const places = new Map(portfolio.by_chain.map(({ name, value_usd }) => [name, Number(value_usd)]))
    near(places.get('Base')!, 1_000)
    near(places.get('Polygon')!, 100)
    near(places.get('Hyperliquid')!, 500 + 2 * 38.6, 0.5)
    const hype = portfolio.by_asset.find(({ symbol }) => symbol === 'HYPE')
    assert.equal(hype?.amount, '2')
    const usdc = portfolio.by_asset[0]!
    assert.equal(usdc.symbol, 'USDC')
    near(Number(usdc.amount), 670 + 500)
    near(Number(usdc.share), 1_170 / Number(portfolio.total_usd), 0.001)
    assert.ok(Date.now() - Date.parse(portfolio.as_of) < 60_000, portfolio.as_of)
  })

  test('money that has left one chain and not arrived on another is in flight', async () => {
    await world.solver('/realism', { fillLag: 6_000 })
    const before = await read()
    const { task_id } = await accept(person, '/v1/swap', {
      chain_id_in: base,
      chain_id_out: polygon,
      token_in: 'USDC',
      token_out: 'USDC',
      amount: '50000000',
    })
    const during = await eventually(async () => {
      const now = await read()
      return partOf(now, 'in_flight') > 0 ? now : undefined
    }, 'money is in flight')
    near(partOf(during, 'in_flight'), 50, 0.001)
    near(Number(during.total_usd), Number(before.total_usd), 0.5)
    assert.deepEqual(
      during.pending.map(({ task_id: id, kind }) => [id, kind]),
      [[task_id, 'swap']],
    )
    assert.ok(during.by_chain.some(({ chain_id, name }) => chain_id === null && name === 'In flight'))
    await person.ended(task_id)
    await world.solver('/realism', { preset: 'quiet' })
    const arrived = await read()
    assert.deepEqual([partOf(arrived, 'in_flight'), arrived.pending], [0, []])
  })

  test('a part that does not answer is named, and the others are summed', async () => {
    // What the venue has streamed for a user is shown while the venue is away, so this user has not been read before.
    const other = await personOf(gateway.url, await newAgent(gateway.url))
    await world.fund(base, other.evm, 'USDC', '10')
    await world.fault('hyperliquid', { status: 503 })
    const without = await read(other)
    assert.equal(without.complete, false)
    assert.deepEqual(
      without.unread.map(({ place }) => place),
      ['perp', 'spot'],
    )
    assert.deepEqual(
      without.parts.filter(({ value_usd }) => value_usd === null).map(({ place }) => place),
      ['perp', 'spot'],
    )
    near(partOf(without, 'wallets'), 10)
  })

  test('what has no price counts as nothing and is named', async () => {
    await world.fault('prices', { status: 503 })
    const without = await eventually(async () => {
      const now = await read()
      return now.unpriced.length > 0 ? now : undefined
    }, 'prices are missing')
    assert.equal(without.complete, false)
    assert.ok(without.unpriced.includes('USDC'), JSON.stringify(without.unpriced))
    assert.ok(partOf(without, 'perp') > 0)
  })
})
