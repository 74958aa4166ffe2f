/** Credits for the native coin of a chain: paid once, credited once, and nothing that is sent is lost. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { assertExecuted, purchased, recharge } from './recharge-calls.ts'
import { createFundedPerson } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

type Refusal = { code: string; detail: unknown; available?: string; reason?: string }
const till = '0x7111000000000000000000000000000000000001'
const solanaTill = 'DZchFr2n6SCURi4pT6zVZ2w7pi4xLtrx6nj5PdhdFYLN'
const _solanaUsdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const _someone = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const word = (hex: string) => hex.replaceAll('-', '').padStart(64, '0')
const _payData = (taskId: string) => `0x${paySelector}${word(taskId)}`
/** `pay(bytes32)`. */
const paySelector = '8609cad1'

describe('credits for a native coin', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({}, { ownWorld: 'prices change' })
    world = await worldOf(gateway.world)
  })
  afterEach(async () => {
    await world.heal()
    await world.price({ symbol: 'ETH', price_usd: '3500', spot_usd: '3500', listed: true, confidence: 0.99 })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const solPayer = async (native = '1') => {
    const person = await createFundedPerson(gateway.url)
    await world.fund(solana, person.solana, 'native', native)
    return person
  }
  const payer = async (native = '0.1', chainId = base) => {
    const person = await createFundedPerson(gateway.url)
    await world.fund(chainId, person.evm, 'native', native)
    return person
  }

  for (const [pack, credits, paid] of [
    ['5', 300, 1_428_571_428_571_429n],
    ['10', 650, 2_857_142_857_142_858n],
    ['20', 1400, 5_714_285_714_285_715n],
  ] as const)
    test(`the pack of ${pack} dollars is paid from the wallet and gives ${credits} credits`, async () => {
      const person = await payer()
      const [before, tillBefore] = [await world.nativeOf(person.evm), await world.nativeOf(till)]
      const done = await recharge(person, { chain_id: base, pack_id: pack })
      assertExecuted(done)
      const { result, balance_changes } = done.body
      assert.deepEqual(
        [result.pack_id, result.credits, result.chain_id, result.paid, result.native_price_usd],
        [pack, credits, base, String(paid), '3500'],
      )
      assert.deepEqual(
        balance_changes.map(({ symbol, amount }) => [symbol, amount]),
        [['ETH', String(-paid)]],
      )
      assert.equal(before - (await world.nativeOf(person.evm)), paid)
      assert.equal((await world.nativeOf(till)) - tillBefore, paid)
      assert.equal(await purchased(person), credits)
    })

  test('the chains are listed, and each takes its own coin, named by chain, dollars and token or not', async () => {
    const person = await payer('30', polygon)
    const { body } = await person.call<{
      chains: { chain_id: string; confirmations: number; token: { symbol: string; decimals: number } }[]
    }>('GET /credits/recharge-chains')
    assert.deepEqual(
      body.chains.map(({ chain_id, token: { symbol, decimals } }) => [chain_id, symbol, decimals]),
      [
        ['1', 'ETH', 18],
        ['8453', 'ETH', 18],
        ['42161', 'ETH', 18],
        ['137', 'POL', 18],
        ['7565164', 'SOL', 9],
      ],
    )
    const done = await recharge(person, {
      chain_id: 'polygon',
      amount_usd: '5.00',
      token_address: '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE',
    })
    assertExecuted(done)
    assert.equal(done.body.result.paid, '20000000000000000000')
    assert.equal(await purchased(person), 300)
  })

  for (const [pack, credits, paid] of [
    ['5', 300, 27_777_778n],
    ['10', 650, 55_555_556n],
    ['20', 1400, 111_111_112n],
  ] as const)
    test(`the pack of ${pack} dollars is paid in SOL and gives ${credits} credits`, async () => {
      const person = await solPayer()
      const [before, tillBefore] = [await world.solOf(person.solana), await world.solOf(solanaTill)]
      const done = await recharge(person, { chain_id: solana, pack_id: pack, token_address: 'SOL' })
      assertExecuted(done)
      const { result, balance_changes, task_id } = done.body
      assert.deepEqual(
        [result.pack_id, result.credits, result.chain_id, result.paid, result.native_price_usd],
        [pack, credits, solana, String(paid), '180'],
      )
      assert.deepEqual(
        balance_changes.map(({ symbol, amount }) => [symbol, amount]),
        [['SOL', String(-paid)]],
      )
      assert.deepEqual([done.body.task_ids, done.body.credits_pending], [[task_id], 0])
      assert.equal(before - (await world.solOf(person.solana)), paid)
      assert.equal((await world.solOf(solanaTill)) - tillBefore, paid)
      assert.equal(await purchased(person), credits)
    })

  test('the answer names its task, and the credits that are still to come', async () => {
    const person = await solPayer()
    for (const chainId of [solana, base]) {
      await world.fund(base, person.evm, 'native', '0.1')
      const { body } = await recharge(person, { chain_id: chainId, pack_id: '10' }, { wait: false })
      assert.deepEqual(Object.keys(body).sort(), [
        'credits_pending',
        'idempotency_key',
        'message',
        'poll_url',
        'status',
        'task_id',
        'task_ids',
      ])
      assert.deepEqual([body.task_ids, body.credits_pending], [[body.task_id], 650])
      await person.ended(body.task_id)
    }
    assert.equal(await purchased(person), 1_300)
  })

  test('one key sent 16 times at once pays once in SOL, also where the replies of the node are lost', async () => {
    const person = await solPayer()
    const before = await world.solOf(person.solana)
    await world.fault('solana', { drop_reply: true, methods: ['sendTransaction'], count: 3 })
    const body = { chain_id: 'solana', amount_usd: '10' }
    const all = await Promise.all(
      Array.from({ length: 16 }, () => recharge(person, body, { key: 'sixteen' })),
    )
    for (const each of all) assertExecuted(each)
    assert.equal(new Set(all.map(({ body: { task_id } }) => task_id)).size, 1)
    assert.equal(before - (await world.solOf(person.solana)), 55_555_556n)
    assert.equal(await purchased(person), 650)
  })

  test('a request that cannot succeed makes no task', async () => {
    const person = await payer('0.001')
    const tasks = await person.taskCount()
    const bodies: [object, number, string][] = [
      [{ chain_id: base }, 422, 'exactly_one_of'],
      [{ chain_id: base, pack_id: '5', amount_usd: '5' }, 422, 'exactly_one_of'],
      [{ chain_id: base, pack_id: '7' }, 422, 'unknown_pack'],
      [{ chain_id: base, amount_usd: '6' }, 422, 'unknown_pack'],
      [{ chain_id: '56', pack_id: '5' }, 422, 'unsupported_chain'],
      [{ chain_id: base, pack_id: '5', token_address: world.usdc }, 422, 'unsupported_asset'],
      [{ chain_id: base, pack_id: '5' }, 409, 'insufficient_balance'],
    ]
    for (const [body, status, what] of bodies) {
      const refused = await recharge<Refusal>(person, body)
      assert.equal(refused.status, status, JSON.stringify(refused.body))
      assert.match(JSON.stringify(refused.body), new RegExp(what))
    }
    const short = await recharge<Refusal>(person, { chain_id: base, pack_id: '5' })
    assert.equal(short.body.available, '0.001')
    assert.equal(await person.taskCount(), tasks)
  })

  test('one key sent 64 times at once pays once and credits once', async () => {
    const person = await payer()
    const before = await world.nativeOf(person.evm)
    const body = { chain_id: base, pack_id: '10' }
    const all = await Promise.all(
      Array.from({ length: 64 }, () => recharge(person, body, { key: 'sixty-four' })),
    )
    for (const each of all) assertExecuted(each)
    assert.equal(new Set(all.map(({ body: { task_id } }) => task_id)).size, 1)
    const other = await recharge<Refusal>(person, { ...body, pack_id: '5' }, { key: 'sixty-four' })
    assert.deepEqual([other.status, other.body.code], [409, 'idempotency_conflict'])
    assert.deepEqual((await recharge(person, body, { key: 'sixty-four' })).body, all[0]!.body)
    assert.equal(before - (await world.nativeOf(person.evm)), 2_857_142_857_142_858n)
    assert.equal(await purchased(person), 650)
  })

  test('a payment that the chain loses the reply to is credited once', async () => {
    const person = await payer()
    await world.fault(`evm:${base}`, { drop_reply: true, methods: ['eth_sendRawTransaction'], count: 3 })
    assertExecuted(await recharge(person, { chain_id: base, pack_id: '5' }))
    assert.equal(await purchased(person), 300)
  })

  test('the switch and the limits of the policy apply to payments', async () => {
    const person = await payer()
    const limits = { per_transaction_usd: '9' }
    assert.equal((await person.call('PUT /v1/policy', { body: limits })).status, 200)
    const refused = await recharge<Refusal>(person, { chain_id: base, pack_id: '10' })
    assert.deepEqual([refused.status, refused.body.code], [403, 'policy_denied'])
    assertExecuted(await recharge(person, { chain_id: base, pack_id: '5' }))
  })

  test('without two prices that agree nothing is sold', async () => {
    const person = await payer()
    const ask = async () => (await recharge<Refusal>(person, { chain_id: base, pack_id: '5' })).body.code
    const refusedFor = async (change: object) => {
      await world.price({ symbol: 'ETH', ...change })
      // Prices are fresh for ten seconds.
      await eventually(
        async () => ((await ask()) === 'unavailable' ? true : undefined),
        JSON.stringify(change),
        15_000,
      )
    }
    await refusedFor({ spot_usd: '3536' })
    assert.equal(await purchased(person), 300 * ((await person.taskCount()) - 1))
    await refusedFor({ spot_usd: '3500', confidence: 0.5 })
    await refusedFor({ confidence: 0.99, listed: false })
  })
})
