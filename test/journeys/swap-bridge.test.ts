import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import {
  assertMeasured,
  balancesOf,
  createFundedPerson,
  executed,
  native,
  swapOf,
  usdcToPolygon,
} from './swap-users.ts'
import { base, polygon, type World, worldOf } from './world.ts'

describe('a user bridges between EVM chains', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway(
      { LIFI_URL: 'off' },
      { ownWorld: 'the solver refuses, refunds and goes away' },
    )
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test('USDC arrives on another chain, in the amount that the chain shows', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const done = await executed(person, usdcToPolygon)
    const usdc = world.tokenOn(polygon, 'USDC')
    const arrived =
      (await world.balance(polygon, person.evm, usdc)) - held.get(`${polygon} ${usdc.toLowerCase()}`)!
    assert.equal(done.result.amount_out, String(arrived))
    assert.deepEqual(
      done.transactions.map(({ status }) => status),
      ['finalized', 'finalized'],
    )
    await assertMeasured(world, person, held, [done])
  })

  test('native coins go out and arrive', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const first = await executed(person, { ...usdcToPolygon, token_out: native })
    const pol = await world.balance(polygon, person.evm)
    assert.equal(first.result.amount_out, String(pol))
    const back = await executed(person, {
      chain_id_in: polygon,
      chain_id_out: '42161',
      token_in: 'POL',
      token_out: 'ETH',
      amount: String(pol / 2n),
    })
    assert.equal(back.result.amount_out, String(await world.balance('42161', person.evm)))
    await assertMeasured(world, person, held, [first, back])
  })

  test('a deposit that cannot be filled is refunded, and the result says so', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.solver('/force', { failReason: 'SLIPPAGE' })
    const { body: done } = await swapOf(person, usdcToPolygon)
    assert.deepEqual(
      [done.status, done.error?.code, done.result.failure_reason],
      ['failed', 'refunded', 'slippage'],
      JSON.stringify(done),
    )
    const { refunded } = done.result
    assert.equal(refunded?.chain_id, base)
    const lost = BigInt(usdcToPolygon.amount) - BigInt(refunded!.amount)
    assert.equal(done.outcome, lost === 0n ? 'not_executed' : 'partial')
    assert.equal(await world.usdcOf(person.evm), 10_000_000_000n - lost)
    await assertMeasured(world, person, held, [done])
  })

  test('a native deposit is refunded as well', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const bought = await executed(person, {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'ETH',
      amount: '100000000',
    })
    await world.solver('/force', { failReason: 'SOLVER_CAPACITY_EXCEEDED' })
    const { body: done } = await swapOf(person, {
      ...usdcToPolygon,
      token_in: 'ETH',
      amount: bought.result.amount_out,
    })
    assert.deepEqual(
      [done.error?.code, done.result.failure_reason],
      ['refunded', 'solver_capacity'],
      JSON.stringify(done),
    )
    await assertMeasured(world, person, held, [bought, done])
  })

  test('a refund that costs more than the deposit is a failure that says where the money is', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.solver('/force', { failReason: 'SLIPPAGE', refundFailReason: 'AMOUNT_TOO_LOW_TO_REFUND' })
    const { body: done } = await swapOf(person, usdcToPolygon)
    assert.deepEqual(
      [done.status, done.outcome, done.result.failure_reason],
      ['failed', 'partial', 'too_low_to_refund'],
      JSON.stringify(done),
    )
    await assertMeasured(world, person, held, [done])
  })

  test('errors of the solver are those of our catalogue, and no task exists', async () => {
    const person = await createFundedPerson(gateway.url)
    const tasks = await person.taskCount()
    const refused: [string, number, string][] = [
      ['NO_SWAP_ROUTES_FOUND', 409, 'no_route'],
      ['INSUFFICIENT_LIQUIDITY', 409, 'insufficient_liquidity'],
      ['AMOUNT_TOO_LOW', 422, 'below_minimum'],
      ['SANCTIONED_WALLET_ADDRESS', 403, 'policy_denied'],
      ['CHAIN_DISABLED', 503, 'unavailable'],
    ]
    for (const [errorCode, status, code] of refused) {
      await world.solver('/quote-error', { errorCode, status: 400 })
      const { status: got, body } = await swapOf(person, usdcToPolygon)
      const found = got === 422 ? (body.detail as unknown as { type: string }[])[0]!.type : body.code
      assert.deepEqual([got, found], [status, code], JSON.stringify(body))
    }
    await world.solver('/quote-error', { errorCode: 'AMOUNT_TOO_LOW', status: 400 })
    const { amount: _units, ...inDollars } = usdcToPolygon
    const { body: refusal } = await swapOf(person, { ...inDollars, amount_usd: '50' })
    const [issue] = refusal.detail as unknown as { loc: string[] }[]
    assert.deepEqual(issue?.loc, ['body', 'amount_usd'], JSON.stringify(refusal))
    // Retried within the request, and answered where it does not last.
    await world.solver('/quote-error', { errorCode: 'SERVICE_UNAVAILABLE', status: 503, count: 2 })
    assert.equal((await swapOf(person, { ...usdcToPolygon, dryrun: true })).status, 200)
    await world.solver('/quote-error', { errorCode: 'SERVICE_UNAVAILABLE', status: 503, count: 3 })
    const away = await swapOf(person, usdcToPolygon)
    assert.deepEqual([away.status, away.body.code], [503, 'unavailable'])
    for (const realism of [{ busy: 1 }, { html: 1 }]) {
      await world.solver('/realism', realism)
      const { status, body } = await swapOf(person, usdcToPolygon)
      assert.deepEqual([status, body.code], [503, 'unavailable'], JSON.stringify([realism, body]))
      await world.solver('/realism', { preset: 'quiet' })
    }
    assert.equal(await person.taskCount(), tasks)
  })

  test('a swap goes on where it was when the solver was away after the deposit', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.solver('/realism', { fillLag: 1_500 })
    const { body: accepted } = await swapOf(person, usdcToPolygon, { query: '' })
    await world.chain('solver', 'stop')
    const early = await person.task(accepted.task_id)
    assert.ok(['pending', 'running'].includes(early.status), JSON.stringify(early))
    await world.chain('solver', 'start')
    const done = await person.ended(accepted.task_id, 60_000)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    await assertMeasured(world, person, held, [done as never])
  })

  test('a realistic solver lags, goes back and retracts, and the amounts are still those of the chains', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.solver('/realism', {
      preset: 'realistic',
      retracted: 0.4,
      quotesPerMinute: 0,
      readsPerMinute: 0,
    })
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        swapOf(person, { ...usdcToPolygon, amount: String(20_000_000 + at) }),
      ),
    )
    await world.solver('/realism', { preset: 'quiet' })
    const ended = await Promise.all(
      all.flatMap(({ status, body }) => (status === 200 ? [person.ended(body.task_id, 60_000)] : [])),
    )
    assert.ok(ended.length >= 4, JSON.stringify(all.map(({ body }) => body)))
    for (const each of ended)
      assert.ok(each.outcome === 'executed' || each.error?.code === 'refunded', JSON.stringify(each))
    await assertMeasured(world, person, held, ended as never)
  })
})
