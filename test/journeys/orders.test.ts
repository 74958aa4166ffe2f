/** Hooks and limit orders over HTTP, while prices and pools of the world move. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { poolOf } from './pools.ts'
import { createFundedPerson, executed } from './swap-users.ts'
import type { Person } from './users.ts'
import { base, type World, worldOf } from './world.ts'

type Hook = {
  id: string
  type: string
  status: string
  trigger_price_usd: string
  reference_price_usd: string | null
  task_id: string | null
  oco_group: string | null
  attempts: number
  failure_reason: string | null
}
type Order = {
  limit_order_id: string
  status: string
  amount: string
  amount_out: string | null
  avg_price_usd: string | null
  task_id: string | null
}
type Outstanding = { outstanding_orders: (Hook & { order_kind: string })[]; total: number }
type Refusal = { code: string; detail: { type: string; loc: string[] }[] }

const price = 1.2
const firesWithinMs = 30_000

describe('orders that wait for a price', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let pool: ReturnType<typeof poolOf>
  before(async () => {
    gateway = await freshGateway(
      { ORDER_QUOTES_PER_MINUTE: '6000' },
      { ownWorld: 'it moves prices and pools' },
    )
    world = await worldOf(gateway.world)
    pool = poolOf(world, 'AERO')
  })
  beforeEach(() => pool.move(price))
  after(() => gateway?.[Symbol.asyncDispose]())

  const aero = { chain_id: base, token_address: 'AERO' }
  const holder = async (dollars = '100'): Promise<Person> => {
    const person = await createFundedPerson(gateway.url)
    await executed(person, { chain_id_in: base, token_in: 'USDC', token_out: 'AERO', amount_usd: dollars })
    return person
  }
  const held = (person: Person) => world.balance(base, person.evm, pool.token)
  const leave = async (person: Person, body: object) => {
    const reply = await person.call<{ hooks: Hook[] }>('POST /v1/hooks', { body: { ...aero, ...body } })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body.hooks
  }
  const outstanding = async (person: Person) =>
    (await person.call<Outstanding>('GET /wallet/outstanding-orders')).body.outstanding_orders
  const events = async (person: Person, prefix: string) => {
    const { body } = await person.call<{ events: { type: string; data: Hook }[] }>(
      'GET /v1/notifications?limit=100&after=0',
    )
    return body.events.filter(({ type }) => type.startsWith(prefix))
  }
  const tasksOfKind = async (person: Person, kind: string) =>
    (
      await person.call<{ items: { task_id: string; status: string; outcome: string }[] }>(
        `GET /v1/tasks?kind=${kind}`,
      )
    ).body.items
  const firedTask = (person: Person, kind: string) =>
    eventually(
      async () => {
        const [task] = await tasksOfKind(person, kind)
        return task && task.status !== 'pending' && task.status !== 'running'
          ? person.task(task.task_id)
          : undefined
      },
      `the ${kind} has ended`,
      firesWithinMs,
    )

  test('a stop-loss counted from the entry sells once, and ends its take-profit', async () => {
    const person = await holder()
    const units = await held(person)
    const [stop, profit] = await leave(person, {
      stop_losses: [{ price_percentage: '0.1' }],
      take_profits: [{ price_percentage: '0.5' }],
    })
    assert.ok(Math.abs(Number(stop!.reference_price_usd) - price) < 0.01, JSON.stringify(stop))
    assert.equal((await outstanding(person)).length, 2)
    await pool.move(1.0)
    const sold = await firedTask(person, 'hook_execute')
    assert.deepEqual([sold.status, sold.outcome], ['completed', 'executed'], JSON.stringify(sold))
    assert.equal(await held(person), 0n)
    assert.ok(units > 0n)
    assert.deepEqual(await outstanding(person), [])
    assert.equal((await tasksOfKind(person, 'hook_execute')).length, 1)
    const reported = (await events(person, 'hook.')).map(({ type, data }) => [type, data.id])
    assert.deepEqual(
      reported.sort(),
      [
        ['hook.created', profit!.id],
        ['hook.created', stop!.id],
        ['hook.triggered', stop!.id],
        ['hook.cancelled', profit!.id],
        ['hook.filled', stop!.id],
      ].sort(),
    )
  })

  test('a take-profit of a part leaves the stop for the rest', async () => {
    const person = await holder()
    const units = await held(person)
    await leave(person, {
      take_profits: [{ price_percentage: '0.2', sell_percentage: '0.25' }],
      stop_losses: [{ price_percentage: '0.2' }],
      reference: 'mark',
    })
    await pool.move(1.6)
    const sold = await firedTask(person, 'hook_execute')
    assert.equal(sold.outcome, 'executed', JSON.stringify(sold))
    assert.equal(await held(person), units - units / 4n)
    const [left] = await outstanding(person)
    assert.deepEqual([left?.type, left?.status], ['stop_loss', 'active'])
  })

  test('a price of a pool, or a displayed one, alone fires nothing', async () => {
    const person = await holder()
    await leave(person, { stop_losses: [{ price_usd: '1.1' }] })
    await pool.setPool(0.8)
    await outlasts(person)
    await pool.setPool(price)
    await pool.display(0.8)
    await outlasts(person)
    await pool.setPool(0.8)
    assert.equal((await firedTask(person, 'hook_execute')).outcome, 'executed')
  })
  /** The watch has looked at the market several times since. */
  const outlasts = async (person: Person) => {
    const startedAt = Date.now()
    await eventually(async () => (Date.now() - startedAt > 7_000 ? true : undefined), 'some looks', 10_000)
    assert.deepEqual(await tasksOfKind(person, 'hook_execute'), [])
    const [hook] = await outstanding(person)
    assert.equal(hook?.status, 'active')
  }

  test('a trailing stop follows the price up, and sells below its highest', async () => {
    const person = await holder()
    const [trailing] = await leave(person, { trailing_percentage: '0.1' })
    assert.equal(trailing?.type, 'trailing')
    await pool.move(1.5)
    await eventually(
      async () => {
        const [hook] = await outstanding(person)
        return Number(hook?.trigger_price_usd) > 1.34 ? true : undefined
      },
      'the stop has followed',
      firesWithinMs,
    )
    await pool.move(1.3)
    assert.equal((await firedTask(person, 'hook_execute')).outcome, 'executed')
    assert.equal(await held(person), 0n)
  })

  test('a limit order buys at its price, and is not cancellable then', async () => {
    const person = await createFundedPerson(gateway.url)
    const body = {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'AERO',
      amount: '30000000',
      price_usd_trigger: '1.05',
      condition: 'lte',
    }
    const made = await person.call<{ result: { order: Order } }>('POST /v1/limit-orders?wait=true', { body })
    const { limit_order_id: id, status } = made.body.result.order
    assert.equal(status, 'active', JSON.stringify(made.body))
    await pool.move(1.0)
    const bought = await firedTask(person, 'limit_order_execute')
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    const { body: order } = await person.call<Order>(`GET /v1/limit-orders/${id}`)
    assert.deepEqual([order.status, order.task_id], ['executed', bought.task_id])
    assert.equal(BigInt(order.amount_out!), await held(person))
    assert.ok(Number(order.avg_price_usd) <= 1.05, JSON.stringify(order))
    const cancel = await person.call<Refusal>(`DELETE /v1/limit-orders/${id}`)
    assert.deepEqual([cancel.status, cancel.body.code], [409, 'order_not_cancellable'])
    const reported = (await events(person, 'limit_order.')).map(({ type }) => type)
    assert.deepEqual(reported, ['limit_order.created', 'limit_order.triggered', 'limit_order.executed'])
  })

  test('orders are cancelled one by one and all together, and again without an error', async () => {
    const person = await holder()
    const [one, two] = await leave(person, { stop_losses: [{ price_usd: '0.5' }, { price_usd: '0.4' }] })
    const order = {
      chain_id_in: base,
      token_in: 'AERO',
      token_out: 'USDC',
      trigger_token_address: 'AERO',
      amount_usd: '20',
      price_usd_trigger: '9',
      condition: 'gte',
    }
    const made = await person.call<{ result: { order: Order } }>('POST /v1/limit-orders?wait=true', {
      body: order,
    })
    const id = made.body.result.order.limit_order_id
    assert.equal((await outstanding(person)).length, 3)
    const cancelled = await person.call<Order>(`DELETE /v1/limit-orders/${id}`)
    assert.deepEqual([cancelled.status, cancelled.body.status], [200, 'cancelled'])
    const again = await person.call<Order>(`DELETE /v1/limit-orders/${id}`)
    assert.deepEqual([again.status, again.body.status], [200, 'cancelled'])
    const unknown = '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11'
    const ids = await person.call<Record<string, unknown>>('DELETE /wallet/outstanding-orders', {
      body: { outstanding_order_ids: [one!.id, unknown] },
    })
    assert.deepEqual(ids.body, { cancelled: [one!.id], not_found: [unknown], not_cancellable: [] })
    const all = await person.call<Record<string, unknown>>('DELETE /wallet/outstanding-orders', {
      body: { all: true },
    })
    assert.deepEqual(all.body, { cancelled: [two!.id], not_found: [], not_cancellable: [] })
    assert.deepEqual(await outstanding(person), [])
    const { body: list } = await person.call<Order[]>('GET /v1/limit-orders?status=cancelled')
    assert.deepEqual(
      list.map(({ limit_order_id }) => limit_order_id),
      [id],
    )
  })

  test('a hook whose balance is gone says so, and one on nothing is refused', async () => {
    const person = await holder()
    await leave(person, { stop_losses: [{ price_usd: '1.1' }] })
    const units = await held(person)
    await executed(person, { chain_id_in: base, token_in: 'AERO', token_out: 'USDC', amount: String(units) })
    const refused = await person.call<Refusal>('POST /v1/hooks', {
      body: { ...aero, stop_losses: [{ price_usd: '1.1' }] },
    })
    assert.deepEqual([refused.status, refused.body.code], [409, 'insufficient_balance'])
    await pool.move(1.0)
    const sale = await firedTask(person, 'hook_execute')
    assert.deepEqual(
      [sale.status, sale.outcome, sale.error?.code],
      ['failed', 'not_executed', 'insufficient_balance'],
    )
    const reported = (await events(person, 'hook.failed')).map(({ data }) => [
      data.status,
      data.failure_reason,
    ])
    assert.deepEqual(reported, [['failed', 'insufficient_balance']])
  })

  test('requests that cannot succeed are refused with their reason', async () => {
    const person = await holder()
    const codeOf = async (route: string, body: object) => {
      const { status, body: reply } = await person.call<Refusal>(route, { body })
      return status === 422 ? reply.detail[0]!.type : reply.code
    }
    const hook = (body: object) => codeOf('POST /v1/hooks', { ...aero, ...body })
    assert.equal(await hook({ stop_losses: [{ price_percentage: '5' }] }), 'fraction_expected')
    assert.equal(await hook({ take_profits: [{ price_percentage: '11' }] }), 'fraction_expected')
    assert.equal(await hook({ stop_losses: [{ price_usd: '2' }] }), 'less_than')
    assert.equal(await hook({}), 'missing')
    await world.fund(base, person.evm, 'DAI', '10')
    const unknown = { ...aero, token_address: 'DAI', stop_losses: [{ price_percentage: '0.1' }] }
    assert.equal(await codeOf('POST /v1/hooks', unknown), 'entry_unknown')
    const order = {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'AERO',
      price_usd_trigger: '1',
      condition: 'lte',
    }
    assert.equal(
      await codeOf('POST /v1/limit-orders', { ...order, amount_usd: '1000000' }),
      'insufficient_balance',
    )
    assert.equal(
      await codeOf('POST /v1/limit-orders', { ...order, amount: '1', amount_usd: '1' }),
      'exactly_one_of',
    )
    const inDollars = { ...order, token_in: 'AERO', token_out: 'USDC', amount_usd: '5' }
    assert.equal(await codeOf('POST /v1/limit-orders', inDollars), 'unsupported_asset')
    assert.equal((await tasksOfKind(person, 'limit_order_create')).length, 0)
  })
})
