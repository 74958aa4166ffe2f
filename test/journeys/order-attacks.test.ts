/** Orders whose pool somebody moves, whose balance grows, or whose price nobody quotes. */
import assert from 'node:assert/strict'
import { before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { aero, firesWithinMs, type OrderUsers, orderUsers, type Refusal, startPrice } from './order-users.ts'
import { signedInPerson } from './signed-in.ts'
import { executed, swapOf } from './swap-users.ts'
import { base } from './world.ts'

describe('orders under attack', () => {
  let users: OrderUsers
  before(async () => {
    users = await orderUsers()
  })
  beforeEach(() => users.pool.move(startPrice))

  /** A person who has just signed in, and may accept any loss. */
  const freshHolder = async () => {
    const person = await signedInPerson(users.gateway)
    await users.world.fund(base, person.evm, 'USDC', '200')
    return users.holder('100', person)
  }

  test('a take-profit whose balance has grown fires once in vain, and then at its size', async () => {
    const person = await users.holder('20')
    await users.leave(person, { take_profits: [{ price_usd: '1.4952' }], slippage_bps: 1 })
    await executed(person, { chain_id_in: base, token_in: 'USDC', token_out: 'AERO', amount_usd: '9000' })
    await users.pool.move(1.5)
    const first = await users.firedTask(person, 'hook_execute')
    assert.deepEqual([first.outcome, first.error?.code], ['not_executed', 'price_moved_back'])
    const failures = (await users.events(person, 'hook.')).filter(({ type }) => type.includes('failed'))
    assert.deepEqual(
      failures.map(({ type, data }) => [type, data.status, data.failure_reason]),
      [['hook.attempt_failed', 'failed_retrying', 'price_moved_back']],
    )
    const startedAt = Date.now()
    await eventually(async () => (Date.now() - startedAt > 7_000 ? true : undefined), 'some looks', 10_000)
    assert.equal((await users.tasksOfKind(person, 'hook_execute')).length, 1)
    await users.pool.move(1.8)
    await eventually(
      async () => ((await users.held(person)) === 0n ? true : undefined),
      'the whole balance is sold',
      firesWithinMs,
    )
  })

  test('a pool that somebody moved far away gets no tokens, from a swap or from a stop', async () => {
    const person = await users.holder()
    const units = await users.held(person)
    await users.leave(person, { stop_losses: [{ price_usd: '1.19' }] })
    await users.pool.setPool(0.6)
    const swap = { chain_id_in: base, token_in: 'AERO', token_out: 'USDC', amount: String(units) }
    for (const dryrun of [true, false]) {
      const refused = await swapOf(person, { ...swap, dryrun })
      const { code, limit_bps, impact_bps } = refused.body as unknown as Record<string, unknown>
      assert.deepEqual(
        [refused.status, code, limit_bps, Number(impact_bps) > 4_000],
        [409, 'insufficient_liquidity', 2_500, true],
        JSON.stringify(refused.body),
      )
    }
    await eventually(
      async () => ((await users.outstanding(person))[0]?.task_id ? true : undefined),
      'the stop has fired',
      firesWithinMs,
    )
    assert.equal(await users.held(person), units)
    await users.pool.move(1.1)
    assert.equal((await users.firedTask(person, 'hook_execute')).outcome, 'executed')
    assert.equal(await users.held(person), 0n)
  })

  test('who accepts the loss can leave a pool that somebody moved far away, by a swap and by a stop', async () => {
    const [seller, owner, agent] = [await freshHolder(), await freshHolder(), await users.holder()]
    const units = await users.held(seller)
    const accepted = { max_price_impact_bps: 10_000 }
    await users.leave(owner, { stop_losses: [{ price_usd: '1.19' }], ...accepted })
    await users.pool.setPool(0.6)
    const swap = { chain_id_in: base, token_in: 'AERO', token_out: 'USDC', amount: String(units) }
    assert.equal((await swapOf(seller, { ...swap, max_price_impact_bps: 3_000 })).status, 409)
    for (const dryrun of [true, false]) {
      const refused = await swapOf(agent, { ...swap, ...accepted, amount: String(units / 2n), dryrun })
      assert.deepEqual(
        [refused.status, refused.body.code],
        [403, 'approval_required'],
        JSON.stringify(refused.body),
      )
    }
    const hook = { ...aero, stop_losses: [{ price_usd: '0.3' }], ...accepted }
    const left = await agent.call<Refusal>('POST /v1/hooks', { body: hook })
    assert.deepEqual([left.status, left.body.code], [403, 'approval_required'], JSON.stringify(left.body))
    await executed(seller, { ...swap, ...accepted })
    assert.equal((await users.firedTask(owner, 'hook_execute')).outcome, 'executed')
    assert.deepEqual([await users.held(seller), await users.held(owner)], [0n, 0n])
  })

  test('beyond spent caps a stop sells with the default loss, and not with a larger one', async () => {
    const [owner, victim] = [await users.holder(), await freshHolder()]
    const units = await users.held(victim)
    await users.leave(owner, { stop_losses: [{ price_usd: '1.19' }], max_price_impact_bps: 2_500 })
    await users.leave(victim, { stop_losses: [{ price_usd: '1.19' }], max_price_impact_bps: 2_501 })
    for (const person of [owner, victim])
      assert.equal((await person.call('PUT /v1/policy', { body: { per_day_usd: '0' } })).status, 200)
    await users.pool.move(1.1)
    assert.equal((await users.firedTask(owner, 'hook_execute')).outcome, 'executed')
    const refused = await users.firedTask(victim, 'hook_execute')
    assert.deepEqual([refused.outcome, refused.error?.code], ['not_executed', 'policy_denied'])
    assert.deepEqual([await users.held(owner), await users.held(victim)], [0n, units])
  })

  test('a stop with a larger loss is refused where its sale would be: while trading is paused, or beside the tokens', async () => {
    const [paused, limited] = [await users.holder('20'), await users.holder('20')]
    const usdc = users.world.manifest.tokens[base]!.find(({ symbol }) => symbol === 'USDC')
    assert.equal((await paused.call('POST /v1/kill', { body: { on: true } })).status, 200)
    const tokens = [{ chain_id: base, address: usdc!.address! }]
    assert.equal((await limited.call('PUT /v1/policy', { body: { tokens } })).status, 200)
    const stop = { chain_id: base, token_address: aero.token_address, stop_losses: [{ price_usd: '0.5' }] }
    for (const [person, code] of [
      [paused, 'trading_paused'],
      [limited, 'policy_denied'],
    ] as const) {
      const refused = await person.call<Refusal>('POST /v1/hooks', {
        body: { ...stop, max_price_impact_bps: 10_000 },
      })
      assert.deepEqual([refused.status, refused.body.code], [403, code], JSON.stringify(refused.body))
      const left = await person.call('POST /v1/hooks', { body: stop })
      assert.equal(left.status, 200, JSON.stringify(left.body))
    }
  })

  test('an order whose trigger token nobody quotes is refused', async () => {
    const person = await users.holder('20')
    const { status, body } = await person.call<Refusal>('POST /v1/limit-orders', {
      body: {
        chain_id_in: base,
        token_in: 'USDC',
        token_out: aero.token_address,
        amount_usd: '5',
        trigger_token_address: 'WETH',
        price_usd_trigger: '1000000000000',
        condition: 'lte',
      },
    })
    assert.deepEqual([status, body.detail[0]?.type], [422, 'value_error'], JSON.stringify(body))
  })
})
