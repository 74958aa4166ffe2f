import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  assertMeasured,
  balancesOf,
  createFundedPerson,
  executed,
  native,
  type SwapBody,
  swapOf,
} from './swap-users.ts'
import { base, type World, worldOf } from './world.ts'

describe('a user swaps on one chain', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test('USDC becomes WETH without any gas, and the amounts are those of the chain', async () => {
    const person = await createFundedPerson(gateway.url)
    const weth = world.tokenOn(base, 'WETH')
    assert.equal(await world.nativeOf(person.evm), 0n)
    const held = await balancesOf(world, person)
    const done = await executed(person, {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'WETH',
      amount: '25000000',
    })
    assert.equal(done.kind, 'swap')
    assert.equal(done.result.amount_in, '25000000')
    assert.equal(BigInt(done.result.amount_out), await world.balance(base, person.evm, weth))
    assert.ok(BigInt(done.result.amount_out) >= BigInt(done.result.amount_out_min))
    assert.equal(await world.nativeOf(person.evm), 0n)
    await assertMeasured(world, person, held, [done])
    const polled = await person.task(done.task_id)
    assert.deepEqual(polled.result, done.result)
  })

  test('the native coin is bought, sold, wrapped and unwrapped', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const bought = await executed(person, {
      chain_id_in: 8453,
      token_in: 'USDC',
      token_out: native,
      amount_usd: '40',
    })
    const ether = await world.nativeOf(person.evm)
    assert.equal(BigInt(bought.result.amount_out), ether)
    const sold = await executed(person, {
      chain_id_in: 'base',
      token_in: 'ETH',
      token_out: 'DAI',
      amount: String(ether / 2n),
    })
    const wrapped = await executed(person, {
      chain_id_in: base,
      token_in: native,
      token_out: 'WETH',
      amount: String(ether / 4n),
    })
    assert.equal(wrapped.result.amount_out, String(ether / 4n))
    const unwrapped = await executed(person, {
      chain_id_in: base,
      token_in: 'WETH',
      token_out: 'ETH',
      amount: String(ether / 8n),
    })
    assert.equal(await world.nativeOf(person.evm), ether - ether / 2n - ether / 4n + ether / 8n)
    await assertMeasured(world, person, held, [bought, sold, wrapped, unwrapped])
  })

  test('a dry run makes no task, and its quote is executed once', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const tasks = await person.taskCount()
    const request = { chain_id_in: base, token_in: 'USDC', token_out: 'DAI', amount: 30_000_000 }
    const { status, body: dry } = await swapOf(person, { ...request, dryrun: true })
    assert.equal(status, 200, JSON.stringify(dry))
    const { task_id, outcome, dryrun, quote, policy } = dry
    assert.deepEqual([task_id, outcome, dryrun, policy.decision], [null, 'not_executed', true, 'allow'])
    assert.equal(await person.taskCount(), tasks)
    await assertMeasured(world, person, held, [])
    const paid = quote.fees.filter(({ paid_by }) => paid_by === 'gateway')
    assert.deepEqual(
      paid.map(({ type }) => type),
      ['sponsor'],
    )
    const done = await executed(person, { ...request, quote_id: quote.quote_id })
    assert.ok(BigInt(done.result.amount_out) >= BigInt(quote.amount_out_min))
    assert.equal(done.result.amount_out_min, quote.amount_out_min)
    const again = await swapOf(person, { ...request, quote_id: quote.quote_id })
    assert.deepEqual([again.status, again.body.code], [409, 'conflict'])
    await assertMeasured(world, person, held, [done])
  })

  test('a quote that has expired is refused, and moves nothing', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const request = { chain_id_in: base, token_in: 'USDC', token_out: 'DAI', amount: '30000000' }
    const { quote } = (await swapOf(person, { ...request, dryrun: true })).body
    const tasks = await person.taskCount()
    const database = new pg.Client({ connectionString: gateway.databaseUrl })
    await database.connect()
    await database
      .query(`update swap_quote set expires_at = now() - interval '1 millisecond' where id = $1`, [
        quote.quote_id,
      ])
      .finally(() => database.end())
    for (const body of [
      { ...request, quote_id: quote.quote_id },
      { ...request, quote_id: quote.quote_id, dryrun: true },
    ]) {
      const refused = await swapOf(person, body, { key: 'expired' })
      const { code, retryable, quote_id: named } = refused.body as unknown as Record<string, unknown>
      assert.deepEqual([refused.status, code, retryable, named], [409, 'quote_expired', true, quote.quote_id])
    }
    assert.equal(await person.taskCount(), tasks)
    await assertMeasured(world, person, held, [])
    // The key of a refused request is free: the same request without the quote is a swap.
    const { status, body: done } = await swapOf(person, request, { key: 'expired' })
    assert.deepEqual([status, done.outcome], [200, 'executed'], JSON.stringify(done))
    await assertMeasured(world, person, held, [done])
  })

  test('a quote is executed with the amount that was quoted, and with no other', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const aero = { chain_id_in: base, token_in: 'USDC', token_out: 'AERO', amount: '30000000' }
    const bought = await executed(person, aero)
    const request = { chain_id_in: base, token_in: 'AERO', token_out: 'USDC', amount_usd: '10' }
    const quoteOf = async (asker: typeof person) =>
      (await swapOf(asker, { ...request, dryrun: true })).body.quote
    const { quote_id: quoteId, amount_in: amountIn } = await quoteOf(person)
    for (const change of [{ amount_usd: '11' }, { amount_usd: undefined, amount: amountIn }]) {
      const { status, body } = await swapOf(person, { ...request, ...change, quote_id: quoteId })
      const [item] = body.detail as unknown as { loc: string[] }[]
      assert.deepEqual([status, item?.loc.at(-1)], [422, 'quote_id'], JSON.stringify(body))
    }
    // Another user, since so many quotes replace the oldest one of their user.
    const watcher = await createFundedPerson(gateway.url)
    await executed(watcher, aero)
    // Ten dollars become fewer units, and the quote stays what it was.
    await world.price({ symbol: 'AERO', price_usd: '1.23' })
    const done = await eventually(
      async () => ((await quoteOf(watcher)).amount_in === amountIn ? undefined : true),
      'the price has changed',
    )
      .then(() => executed(person, { ...request, quote_id: quoteId }))
      .finally(() => world.price({ symbol: 'AERO', price_usd: '1.2' }))
    assert.equal(done.result.amount_in, amountIn)
    await assertMeasured(world, person, held, [bought, done])
  })

  test('what cannot succeed is refused before a task exists, alike in a dry run and in earnest', async () => {
    const person = await createFundedPerson(gateway.url)
    const tasks = await person.taskCount()
    const request = { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '25000000' }
    const refused: [object, number, string][] = [
      [{ amount: '10000000001' }, 409, 'insufficient_balance'],
      [{ amount: '100' }, 422, 'below_minimum'],
      [{ amount: undefined }, 422, 'exactly_one_of'],
      [{ amount_usd: '5' }, 422, 'exactly_one_of'],
      [{ token_out: 'USDC' }, 422, 'unsupported_asset'],
      [{ token_out: 'NOPE' }, 422, 'unsupported_asset'],
      [{ token_out: `0x${'77'.repeat(20)}` }, 422, 'unsupported_asset'],
      [{ chain_id_in: 5 }, 422, 'unsupported_chain'],
      [{ chain_id_in: 'solana', token_in: 'SOL' }, 422, 'unsupported_asset'],
      [{ recipient: `0x${'77'.repeat(20)}` }, 422, 'value_error'],
      [{ slippage_bps: 1_001 }, 422, 'less_than_equal'],
      [{ quote_id: 'none' }, 404, 'not_found'],
      [{ stop_loss: {} }, 422, 'exactly_one_of'],
      [
        { amount: '9000000000', slippage_bps: 1, token_out: 'AERO', max_fee_bps: 0, chain_id_out: '1' },
        422,
        'unsupported_asset',
      ],
    ]
    for (const [change, status, code] of refused)
      for (const dryrun of [true, false]) {
        const { status: got, body } = await swapOf(person, { ...request, ...change, dryrun })
        const found = got === 422 ? (body.detail as unknown as { type: string }[])[0]!.type : body.code
        assert.deepEqual([got, found], [status, code], JSON.stringify([change, body]))
      }
    assert.equal(await person.taskCount(), tasks)
  })

  test('a token that the security check does not pass is not bought, in a dry run or in earnest', async () => {
    const person = await createFundedPerson(gateway.url)
    const tasks = await person.taskCount()
    const request = { chain_id_in: base, token_in: 'USDC', amount: '25000000' }
    // Taxed, without a pool, and behind a proxy.
    const launched = (last: number) => `0x70ce${String(last).padStart(36, '0')}`
    for (const last of [3, 6, 5])
      for (const dryrun of [true, false]) {
        const token_out = launched(last)
        const { status, body } = await swapOf(person, { ...request, token_out, dryrun })
        assert.deepEqual([status, body.code], [403, 'token_unsafe'], JSON.stringify(body))
        assert.ok((body as unknown as { reasons: object[] }).reasons.length > 0)
      }
    // Checks are shared by all users: none is made of a purchase that the wallet cannot pay.
    const unpaid = await swapOf(person, { ...request, amount: '10000000001', token_out: launched(3) })
    assert.deepEqual([unpaid.status, unpaid.body.code], [409, 'insufficient_balance'])
    assert.equal(await person.taskCount(), tasks)
    const { body: dry } = await swapOf(person, { ...request, token_out: 'WETH', dryrun: true })
    assert.deepEqual(
      (dry as unknown as { security: { status: string }[] }).security.map(({ status }) => status),
      ['passed'],
    )
  })

  test('one key is one swap, at once and again', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const request = { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '12000000' }
    const all = await Promise.all(Array.from({ length: 6 }, () => swapOf(person, request, { key: 'k1' })))
    const ids = new Set(all.map(({ body }) => body.task_id))
    assert.equal(ids.size, 1, JSON.stringify(all[0]))
    const { body: done } = await swapOf(person, request, { key: 'k1' })
    assert.equal(done.outcome, 'executed')
    const changed = await swapOf(person, { ...request, amount: '13000000' }, { key: 'k1' })
    assert.deepEqual([changed.status, changed.body.code], [409, 'idempotency_conflict'])
    await assertMeasured(world, person, held, [done])
  })

  test('parallel swaps never spend one balance twice', async () => {
    // A request may read a balance whose hold settles meanwhile, which only some rounds show.
    for (let round = 0; round < 4; round++) {
      const person = await createFundedPerson(gateway.url)
      const held = await balancesOf(world, person)
      const request = { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '3000000000' }
      const all = await Promise.all(Array.from({ length: 6 }, () => swapOf(person, request)))
      const done = all.filter(({ status }) => status === 200).map(({ body }) => body as SwapBody)
      for (const { status, body } of all)
        if (status !== 200)
          assert.deepEqual([status, body.code], [409, 'insufficient_balance'], JSON.stringify(body))
      assert.equal(done.length, 3)
      await assertMeasured(world, person, held, done)
    }
  })
})
