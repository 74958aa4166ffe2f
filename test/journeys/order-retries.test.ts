/** Orders that fire while another task reserves their token, or while a node refuses calls. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import {
  aero,
  createOrderUsers,
  firesWithinMs,
  type OrderUsers,
  orderUsers,
  startPrice,
} from './order-users.ts'
import { swapOf } from './swap-users.ts'
import type { Person } from './users.ts'
import { base } from './world.ts'

/** Of the provider of routes: while a stop is quoted, another task can reserve the token. */
const quoteMs = 2_000

describe('stops that cannot sell for a moment', () => {
  let users: OrderUsers
  before(async () => {
    users = await orderUsers()
  })
  beforeEach(async () => {
    await users.world.heal()
    await users.pool.move(startPrice)
  })

  after(() => users?.world.heal())

  const hasFired = (person: Person) =>
    eventually(
      async () => (await users.tasksOfKind(person, 'hook_execute'))[0],
      'the stop has fired',
      firesWithinMs,
    )

  test('a stop whose token another task reserves while it is quoted sells what is left, once', async () => {
    const person = await users.holder()
    const units = await users.held(person)
    await users.leave(person, { stop_losses: [{ price_usd: '1.1' }] })
    for (const target of ['solver', 'lifi']) await users.world.fault(target, { latency_ms: quoteMs })
    await users.pool.move(1.0)
    const half = {
      chain_id_in: base,
      token_in: aero.token_address,
      token_out: 'USDC',
      amount: String(units / 2n),
    }
    const { body: quoted } = await swapOf(person, { ...half, dryrun: true })
    await hasFired(person)
    const { body: sold } = await swapOf(person, { ...half, quote_id: quoted.quote.quote_id })
    assert.equal(sold.outcome, 'executed', JSON.stringify(sold))
    await users.world.heal()
    const stop = await users.firedTask(person, 'hook_execute')
    assert.deepEqual([stop.status, stop.outcome], ['completed', 'executed'], JSON.stringify(stop))
    assert.equal(await users.held(person), 0n)
    assert.equal((await users.tasksOfKind(person, 'hook_execute')).length, 1)
    assert.deepEqual(
      (await users.events(person, 'hook.')).map(({ type }) => type),
      ['hook.created', 'hook.triggered', 'hook.filled'],
    )
  })

  for (const rpc_code of [-32_601, -32_602])
    test(`a stop whose node refuses calls with ${rpc_code} goes on, and sells once the node answers`, async () => {
      const person = await users.holder()
      await users.leave(person, { stop_losses: [{ price_usd: '1.1' }] })
      const node = `evm:${base}`
      await users.pool.move(1.0)
      await users.world.fault(node, { rpc_code, methods: ['eth_call'] })
      const { task_id: taskId } = await hasFired(person)
      const before = await users.world.faultHits(node)
      await eventually(
        async () => ((await users.world.faultHits(node)) > before + 2 ? true : undefined),
        'the node has refused calls of the stop',
        firesWithinMs,
      )
      const [hook] = await users.outstanding(person)
      assert.ok(['triggered', 'executing'].includes(hook?.status ?? ''), JSON.stringify(hook))
      await users.world.heal()
      const stop = await person.ended(taskId, firesWithinMs)
      assert.deepEqual([stop.status, stop.outcome], ['completed', 'executed'], JSON.stringify(stop))
      assert.equal(await users.held(person), 0n)
    })
})

test('an order whose payment the provider gave back is armed again, and its next attempt is one of its own', async () => {
  await using users = await createOrderUsers({ LIFI_URL: 'off', RELAY_API_KEY: 'any' })
  const person = await users.newPerson()
  await users.world.solver('/force', { failReason: 'SLIPPAGE', count: 1 })
  const order = {
    chain_id_in: base,
    chain_id_out: '137',
    token_in: 'USDC',
    token_out: 'POL',
    amount_usd: '900',
    price_usd_trigger: '1000',
    condition: 'lte',
  }
  const made = await person.call('POST /v1/limit-orders?wait=true', { body: order })
  assert.equal(made.status, 200, JSON.stringify(made.body))
  const ended = await eventually(
    async () => {
      const tasks = await users.tasksOfKind(person, 'limit_order_execute')
      const whole = await Promise.all(tasks.map(({ task_id: id }) => person.task(id)))
      return whole.length === 2 && whole.every(({ outcome }) => outcome) ? whole : undefined
    },
    'both attempts have ended',
    firesWithinMs,
  )
  assert.deepEqual(
    ended.map(({ outcome, error }) => [outcome, error?.code ?? null]).toSorted(),
    [
      ['executed', null],
      ['partial', 'refunded'],
    ],
    JSON.stringify(ended),
  )
  const hashes = ended.flatMap(({ transactions }) => transactions?.map(({ tx_hash }) => tx_hash) ?? [])
  assert.equal(new Set(hashes).size, hashes.length)
})
