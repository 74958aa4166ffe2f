/** Two providers of routes: the better one serves, and the other one where it is away. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import { assertMeasured, balancesOf, createFundedPerson, executed, swapOf } from './swap-users.ts'
import { base, type World, worldOf } from './world.ts'

const arbitrum = '42161'
const swapped = { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '25000000' }
const bridged = {
  chain_id_in: base,
  chain_id_out: arbitrum,
  token_in: 'USDC',
  token_out: 'USDC',
  amount: '50000000',
}

describe('two providers of routes', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway(
      { RELAY_QUOTES_PER_MINUTE: '100', LIFI_QUOTES_PER_TWO_HOURS: '200' },
      { ownWorld: 'providers stop' },
    )
    world = await worldOf(gateway.world)
  })
  afterEach(async () => {
    await world.heal()
    await world.lifi('/pricing', { serviceBps: 25 })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test('a user who asks without end uses up the own share of quotes, and neither sales nor others wait for it', async () => {
    const [busy, other] = [await createFundedPerson(gateway.url), await createFundedPerson(gateway.url)]
    await executed(busy, swapped)
    const look = { ...swapped, amount: '3000000', dryrun: true }
    const answers = []
    for (let count = 0; count < 60 && answers.at(-1)?.status !== 503; count += 1)
      answers.push(await swapOf(busy, look))
    const refused = answers.at(-1)!
    assert.deepEqual([refused.status, refused.body.code], [503, 'unavailable'], JSON.stringify(refused.body))
    assert.match(refused.body.detail, /none is left in the share of this account for orders and dry runs/)
    const { status, body } = await swapOf(other, look)
    assert.equal(status, 200, JSON.stringify(body))
    await executed(busy, {
      chain_id_in: base,
      token_in: 'WETH',
      token_out: 'USDC',
      amount: '2000000000000000',
    })
  })

  test('the higher minimum wins, whichever provider it comes from, unless it promises far too much', async () => {
    const person = await createFundedPerson(gateway.url)
    const providerAt = async (serviceBps: number) => {
      await world.lifi('/pricing', { serviceBps })
      const { status, body } = await swapOf(person, { ...bridged, dryrun: true })
      assert.equal(status, 200, JSON.stringify(body))
      return body.quote.provider
    }
    assert.equal(await providerAt(0), 'lifi')
    assert.equal(await providerAt(100), 'relay')
    assert.equal(await providerAt(-2_000), 'relay', 'nobody gives a fifth more than the amount is worth')
  })

  test('the second provider swaps and bridges where it is better or alone, and the amounts are those of the chains', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.lifi('/pricing', { serviceBps: 0 })
    const better = await executed(person, bridged)
    assert.ok(BigInt(better.result.amount_out) >= BigInt(better.result.amount_out_min))
    await world.fault('solver', { refuse: true })
    const swap = await executed(person, swapped)
    const alone = await executed(person, bridged)
    for (const { quote } of [better, swap, alone]) assert.equal(quote.provider, 'lifi')
    await assertMeasured(world, person, held, [better, swap, alone])
    assert.equal(await world.nativeOf(person.evm), 0n)
  })

  test('the first provider serves while the second one is away, limits its quotes or answers with pages', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.lifi('/pricing', { serviceBps: 0 })
    for (const fault of [{ refuse: true }, { status: 429 }, { html: true, status: 200 }]) {
      await world.heal()
      await world.fault('lifi', fault)
      const { status, body } = await swapOf(person, { ...bridged, dryrun: true })
      assert.deepEqual([status, body.quote?.provider], [200, 'relay'], JSON.stringify(body))
    }
    await executed(person, swapped)
  })

  test('with both away the answer is 503, and no task exists', async () => {
    const person = await createFundedPerson(gateway.url)
    const tasks = await person.taskCount()
    await world.fault('solver', { refuse: true })
    await world.fault('lifi', { refuse: true })
    for (const request of [swapped, bridged]) {
      const { status, body } = await swapOf(person, request)
      assert.deepEqual([status, body.code], [503, 'unavailable'], JSON.stringify(body))
    }
    assert.equal(await person.taskCount(), tasks)
  })

  test('a deposit that the second provider refunds is reported with its refund, and only that provider is asked', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.lifi('/pricing', { serviceBps: 0 })
    await world.lifi('/force', { failReason: 'SLIPPAGE' })
    const { status, body } = await swapOf(person, bridged)
    assert.deepEqual(
      [status, body.status, body.error?.code],
      [200, 'failed', 'refunded'],
      JSON.stringify(body),
    )
    assert.equal(body.result.refunded?.chain_id, base)
    await assertMeasured(world, person, held, [body])
  })
})
