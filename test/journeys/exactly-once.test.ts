import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import { createFundedPerson } from './users.ts'
import { type World, worldOf } from './world.ts'

type Refusal = { code: string; task_id?: string }

describe('money moves once per key', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test('one key sent 50 times at once is one deposit, and 49 answers are marked as replays', async () => {
    const person = await createFundedPerson(gateway.url)
    const all = await Promise.all(
      Array.from({ length: 50 }, () => person.deposit('25', { key: 'fifty-at-once' })),
    )
    const replays = all.filter(({ headers }) => headers.get('idempotent-replayed') === 'true')
    assert.equal(replays.length, 49)
    const ids = new Set(all.map(({ body }) => body.task_id))
    assert.equal(ids.size, 1)
    for (const { status, headers, body } of all) {
      assert.deepEqual([status, body.status, body.outcome], [200, 'completed', 'executed'])
      assert.equal(headers.get('idempotency-key'), 'fifty-at-once')
    }
    assert.equal((await world.effects(person.evm)).length, 1)
    assert.equal(await world.usdcOf(person.evm), 9_975_000_000n)
  })

  test('a key used for another body or another operation is 409, names the first task and moves nothing', async () => {
    const person = await createFundedPerson(gateway.url)
    const first = (await person.deposit('25', { key: 'mine' })).body
    const { position_id } = first.result
    const others = await Promise.all([
      person.call<Refusal>('POST /v1/earn/deposit', { key: 'mine', body: { amount_usdc: '26' } }),
      person.call<Refusal>('POST /v1/earn/deposit', {
        key: 'mine',
        body: { amount_usdc: '25', position_id },
      }),
      person.call<Refusal>('POST /v1/earn/withdraw', { key: 'mine', body: { position_id } }),
      person.call<Refusal>('POST /v1/earn/enable', { key: 'mine', body: { amount_usdc: '25' } }),
    ])
    for (const { status, body } of others)
      assert.deepEqual([status, body.code, body.task_id], [409, 'idempotency_conflict', first.task_id])
    assert.equal((await world.effects(person.evm)).length, 1)
  })

  test('the same request is recognised in any spelling, with its key in header or body', async () => {
    const person = await createFundedPerson(gateway.url)
    const send = (body: unknown, key?: string) =>
      person.call<{ task_id: string }>('POST /v1/earn/deposit?wait=true', {
        body,
        ...(key !== undefined && { key }),
      })
    const first = await send({ amount_usdc: '12.5' }, 'k')
    const again = await Promise.all([
      send({ amount_usdc: '12.5', idempotency_key: 'k' }),
      send({ idempotency_key: 'k', amount_usdc: '12.5' }, 'k'),
      send('{ "amount_usdc" : 12.5 }', 'k'),
      send('{"amount_usdc":"12.500000"}', 'k'),
      send({ amount_usdc: '12.5', agent_id: 'ignored' }, 'k'),
    ])
    for (const { status, headers, body } of again) {
      assert.equal(status, 200, JSON.stringify(body))
      assert.equal(body.task_id, first.body.task_id)
      assert.equal(headers.get('idempotent-replayed'), 'true')
    }
    const torn = await send({ amount_usdc: '12.5', idempotency_key: 'one' }, 'two')
    assert.equal(torn.status, 422)
    assert.equal((await world.effects(person.evm)).length, 1)
  })

  test('a replay after everything was spent returns the task and no insufficient balance', async () => {
    const person = await createFundedPerson(gateway.url)
    const first = await person.deposit('10000', { key: 'all-of-it' })
    assert.equal(first.body.outcome, 'executed', JSON.stringify(first.body))
    assert.equal(await world.usdcOf(person.evm), 0n)
    const replay = await person.deposit('10000', { key: 'all-of-it' })
    assert.equal(replay.status, 200)
    assert.equal(replay.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(replay.body, first.body)
    const fresh = await person.deposit('10000', { key: 'once-more' })
    assert.equal(fresh.status, 409)
    const { position_id } = first.body.result
    const out = await person.withdraw({ position_id }, { key: 'out' })
    const outAgain = await person.withdraw({ position_id }, { key: 'out' })
    assert.equal(out.body.outcome, 'executed')
    assert.deepEqual(outAgain.body, out.body)
    assert.equal((await world.effects(person.evm)).length, 2)
  })

  test('a rejection stores nothing, so the key is still free afterwards', async () => {
    const person = await createFundedPerson(gateway.url)
    assert.equal((await person.deposit('10001', { key: 'k' })).status, 409)
    const small = await person.deposit('10', { key: 'k' })
    assert.equal(small.status, 200)
    assert.equal(small.headers.get('idempotent-replayed'), null)
  })

  test('the same key of two users is two keys', async () => {
    const [one, other] = await Promise.all([createFundedPerson(gateway.url), createFundedPerson(gateway.url)])
    const [mine, yours] = await Promise.all([
      one.deposit('10', { key: 'shared' }),
      other.deposit('20', { key: 'shared' }),
    ])
    assert.notEqual(mine.body.task_id, yours.body.task_id)
    for (const { headers, body } of [mine, yours]) {
      assert.equal(body.outcome, 'executed')
      assert.equal(headers.get('idempotent-replayed'), null)
    }
    assert.equal(mine.body.result.amount_usdc_decimal, '10')
    assert.equal(yours.body.result.amount_usdc_decimal, '20')
  })

  test('without a key the server creates one, returns it, and accepts it', async () => {
    const person = await createFundedPerson(gateway.url)
    const first = await person.deposit('10')
    const key = first.headers.get('idempotency-key')
    assert.equal(key, first.body.idempotency_key)
    const again = await person.deposit('10', { key: key! })
    assert.equal(again.body.task_id, first.body.task_id)
    assert.equal((await person.deposit('10')).body.task_id === first.body.task_id, false)
    assert.equal((await world.effects(person.evm)).length, 2)
  })
})
