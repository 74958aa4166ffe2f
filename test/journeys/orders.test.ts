/** Hooks and limit orders over HTTP, while prices and pools of the world move. */
import assert from 'node:assert/strict'
import { before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import {
  aero,
  firesWithinMs,
  type Order,
  type OrderUsers,
  orderUsers,
  type Refusal,
  startPrice,
} from './order-users.ts'
import { executed } from './swap-users.ts'
import type { Person } from './users.ts'
import { base } from './world.ts'

const purchase = {
  chain_id_in: base,
  token_in: 'USDC',
  token_out: 'AERO',
  amount: '30000000',
  price_usd_trigger: '1.05',
  condition: 'lte',
}

describe('orders that wait for a price', () => {
  let users: OrderUsers
  before(async () => {
    users = await orderUsers()
  })
  beforeEach(async () => {
    await users.world.heal()
    await users.pool.move(startPrice)
  })

  test('a stop-loss counted from the entry sells once, and ends its take-profit', async () => {
    const person = await users.holder()
    const units = await users.held(person)
    const [stop, profit] = await users.leave(person, {
      stop_losses: [{ price_percentage: '0.1' }],
      take_profits: [{ price_percentage: '0.5' }],
    })
    assert.ok(Math.abs(Number(stop!.reference_price_usd) - startPrice) < 0.01, JSON.stringify(stop))
    assert.equal((await users.outstanding(person)).length, 2)
    await users.pool.move(1.0)
    const sold = await users.firedTask(person, 'hook_execute')
    assert.deepEqual([sold.status, sold.outcome], ['completed', 'executed'], JSON.stringify(sold))
    assert.equal(await users.held(person), 0n)
    assert.ok(units > 0n)
    assert.deepEqual(await users.outstanding(person), [])
    assert.equal((await users.tasksOfKind(person, 'hook_execute')).length, 1)
    const reported = (await users.events(person, 'hook.')).map(({ type, data }) => [type, data.id])
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
    const person = await users.holder()
    const units = await users.held(person)
    await users.leave(person, {
      take_profits: [{ price_percentage: '0.2', sell_percentage: '0.25' }],
      stop_losses: [{ price_percentage: '0.2' }],
      reference: 'mark',
    })
    await users.pool.move(1.6)
    const sold = await users.firedTask(person, 'hook_execute')
    assert.equal(sold.outcome, 'executed', JSON.stringify(sold))
    assert.equal(await users.held(person), units - units / 4n)
    const [left] = await users.outstanding(person)
    assert.deepEqual([left?.type, left?.status], ['stop_loss', 'active'])
  })

  test('a price of a pool, or a displayed one, alone fires nothing', async () => {
    const person = await users.holder()
    await users.leave(person, { stop_losses: [{ price_usd: '1.1' }] })
    await users.pool.setPool(0.8)
    await outlasts(person)
    await users.pool.setPool(startPrice)
    await users.pool.display(0.8)
    await outlasts(person)
    await users.pool.setPool(0.8)
    assert.equal((await users.firedTask(person, 'hook_execute')).outcome, 'executed')
  })
  /** The watch has looked at the market several times since. */
  const outlasts = async (person: Person) => {
    const startedAt = Date.now()
    await eventually(async () => (Date.now() - startedAt > 7_000 ? true : undefined), 'some looks', 10_000)
    assert.deepEqual(await users.tasksOfKind(person, 'hook_execute'), [])
    const [hook] = await users.outstanding(person)
    assert.equal(hook?.status, 'active')
  }

  test('a trailing stop follows the price up, and sells below its highest', async () => {
    const person = await users.holder()
    const [trailing] = await users.leave(person, { trailing_percentage: '0.1' })
    assert.equal(trailing?.type, 'trailing')
    await users.pool.move(1.5)
    await eventually(
      async () => {
        const [hook] = await users.outstanding(person)
        return Number(hook?.trigger_price_usd) > 1.34 ? true : undefined
      },
      'the stop has followed',
      firesWithinMs,
    )
    await users.pool.move(1.3)
    assert.equal((await users.firedTask(person, 'hook_execute')).outcome, 'executed')
    assert.equal(await users.held(person), 0n)
  })

  test('a limit order buys at its price, and is not cancellable then', async () => {
    const person = await users.newPerson()
    const made = await person.call<{ result: { order: Order } }>('POST /v1/limit-orders?wait=true', {
      body: purchase,
    })
    const { limit_order_id: id, status } = made.body.result.order
    assert.equal(status, 'active', JSON.stringify(made.body))
    await users.pool.move(1.0)
    const bought = await users.firedTask(person, 'limit_order_execute')
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    const { body: order } = await person.call<Order>(`GET /v1/limit-orders/${id}`)
    assert.deepEqual([order.status, order.task_id], ['executed', bought.task_id])
    assert.equal(BigInt(order.amount_out!), await users.held(person))
    assert.ok(Number(order.avg_price_usd) <= 1.05, JSON.stringify(order))
    const cancel = await person.call<Refusal>(`DELETE /v1/limit-orders/${id}`)
    assert.deepEqual([cancel.status, cancel.body.code], [409, 'order_not_cancellable'])
    const reported = (await users.events(person, 'limit_order.')).map(({ type }) => type)
    assert.deepEqual(reported, ['limit_order.created', 'limit_order.triggered', 'limit_order.executed'])
  })

  test('a limit order that fired and could not be sent yet is cancelled with its task', async () => {
    const person = await users.newPerson()
    const made = await person.call<{ result: { order: Order } }>('POST /v1/limit-orders?wait=true', {
      body: purchase,
    })
    const { limit_order_id: id } = made.body.result.order
    await users.pool.move(1.0)
    // Two quotes have to agree before it fires.
    await users.world.fault(`evm:${base}`, { status: 503, methods: ['eth_call'] })
    await eventually(
      async () => (await users.tasksOfKind(person, 'limit_order_execute')).length > 0 || undefined,
      'the order has fired',
      firesWithinMs,
    )
    const cancel = await person.call<Order>(`DELETE /v1/limit-orders/${id}`)
    await users.world.heal()
    assert.deepEqual([cancel.status, cancel.body.status], [200, 'cancelled'], JSON.stringify(cancel.body))
    const task = await users.firedTask(person, 'limit_order_execute')
    assert.deepEqual([task.status, task.outcome], ['cancelled', 'not_executed'])
    const again = await person.call<Order>(`DELETE /v1/limit-orders/${id}`)
    assert.deepEqual([again.status, again.body.status], [200, 'cancelled'])
    assert.equal(await users.held(person), 0n)
    const reported = (await users.events(person, 'limit_order.')).map(({ type }) => type)
    assert.deepEqual(reported, ['limit_order.created', 'limit_order.triggered', 'limit_order.cancelled'])
  })

  test('a cancel of the task of a hook or limit order that fired is one of the order, and its group waits again', async () => {
    const person = await users.holder()
    const [profit, stop] = await users
      .leave(person, {
        take_profits: [{ price_usd: '5' }],
        stop_losses: [{ price_usd: '1.1' }],
      })
      .then((hooks) => hooks.toSorted((one, other) => (one.type < other.type ? 1 : -1)))
    const made = await person.call<{ result: { order: Order } }>('POST /v1/limit-orders?wait=true', {
      body: purchase,
    })
    const { limit_order_id: id } = made.body.result.order
    await users.pool.move(1.0)
    await users.world.fault(`evm:${base}`, { status: 503, methods: ['eth_call'] })
    const cancelFired = async (kind: string) => {
      const [task] = await eventually(
        async () => {
          const tasks = await users.tasksOfKind(person, kind)
          return tasks.length > 0 ? tasks : undefined
        },
        `the order of ${kind} has fired`,
        firesWithinMs,
      )
      for (let n = 0; n < 2; n++) {
        const { status, body } = await person.call(`POST /v1/tasks/${task!.task_id}/cancel`)
        assert.equal(status, 200, JSON.stringify(body))
      }
    }
    await cancelFired('hook_execute')
    await cancelFired('limit_order_execute')
    const open = await users.outstanding(person)
    await users.world.heal()
    assert.deepEqual(
      open.map((each) => [each.id, each.status]),
      [[profit!.id, 'active']],
    )
    const { body: order } = await person.call<Order>(`GET /v1/limit-orders/${id}`)
    assert.equal(order.status, 'cancelled')
    const reported = (await users.events(person, 'hook.')).map(({ type, data }) => `${type} ${data.id}`)
    assert.deepEqual(
      reported.toSorted(),
      [
        `hook.created ${profit!.id}`,
        `hook.created ${stop!.id}`,
        `hook.triggered ${stop!.id}`,
        `hook.cancelled ${profit!.id}`,
        `hook.cancelled ${stop!.id}`,
        `hook.created ${profit!.id}`,
      ].toSorted(),
    )
    const ofOrder = (await users.events(person, 'limit_order.')).map(({ type }) => type)
    assert.deepEqual(ofOrder, ['limit_order.created', 'limit_order.triggered', 'limit_order.cancelled'])
  })

  test('orders are cancelled one by one and all together, and again without an error', async () => {
    const person = await users.holder()
    const [one, two] = await users.leave(person, {
      stop_losses: [{ price_usd: '0.5' }, { price_usd: '0.4' }],
    })
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
    assert.equal((await users.outstanding(person)).length, 3)
    const cancelled = await person.call<Order>(`DELETE /v1/limit-orders/${id}`)
    assert.deepEqual([cancelled.status, cancelled.body.status], [200, 'cancelled'])
    const again = await person.call<Order>(`DELETE /v1/limit-orders/${id}`)
    assert.deepEqual([again.status, again.body.status], [200, 'cancelled'])
    const unknown = '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11'
    const query = `outstanding_order_ids=${one!.id}&outstanding_order_ids=${unknown}`
    const ids = await person.call<Record<string, unknown>>(`DELETE /wallet/outstanding-orders?${query}`)
    assert.deepEqual(ids.body, { cancelled: [one!.id], not_found: [unknown], not_cancellable: [] })
    const all = await person.call<Record<string, unknown>>('DELETE /wallet/outstanding-orders')
    assert.deepEqual(all.body, { cancelled: [two!.id], not_found: [], not_cancellable: [] })
    assert.deepEqual(await users.outstanding(person), [])
    const { body: list } = await person.call<Order[]>('GET /v1/limit-orders?status=cancelled')
    assert.deepEqual(
      list.map(({ limit_order_id }) => limit_order_id),
      [id],
    )
    const page = await person.call('GET /v1/limit-orders?status=cancelled&limit=1&agent_id=x')
    const next = `</v1/limit-orders?status=cancelled&limit=1&agent_id=x&after=${id}>; rel="next"`
    assert.equal(page.headers.get('link'), next)
    const last = await person.call<Order[]>(`GET /v1/limit-orders?status=cancelled&limit=1&after=${id}`)
    assert.deepEqual([last.body, last.headers.get('link')], [[], null])
  })

  test('a hook whose balance is gone says so, and one on nothing is refused', async () => {
    const person = await users.holder()
    await users.leave(person, { stop_losses: [{ price_usd: '1.1' }] })
    const units = await users.held(person)
    await executed(person, { chain_id_in: base, token_in: 'AERO', token_out: 'USDC', amount: String(units) })
    const refused = await person.call<Refusal>('POST /v1/hooks', {
      body: { ...aero, stop_losses: [{ price_usd: '1.1' }] },
    })
    assert.deepEqual([refused.status, refused.body.code], [409, 'insufficient_balance'])
    await users.pool.move(1.0)
    const sale = await users.firedTask(person, 'hook_execute')
    assert.deepEqual(
      [sale.status, sale.outcome, sale.error?.code],
      ['failed', 'not_executed', 'insufficient_balance'],
    )
    const reported = (await users.events(person, 'hook.failed')).map(({ data }) => [
      data.status,
      data.failure_reason,
    ])
    assert.deepEqual(reported, [['failed', 'insufficient_balance']])
  })

  test('requests that cannot succeed are refused with their reason', async () => {
    const person = await users.holder()
    const codeOf = async (route: string, body: object) => {
      const { status, body: reply } = await person.call<Refusal>(route, { body })
      return status === 422 ? reply.detail[0]!.type : reply.code
    }
    const hook = (body: object) => codeOf('POST /v1/hooks', { ...aero, ...body })
    assert.equal(await hook({ stop_losses: [{ price_percentage: '5' }] }), 'fraction_expected')
    assert.equal(await hook({ take_profits: [{ price_percentage: '11' }] }), 'fraction_expected')
    assert.equal(await hook({ stop_losses: [{ price_usd: '2' }] }), 'less_than')
    assert.equal(await hook({}), 'missing')
    await users.world.fund(base, person.evm, 'DAI', '10')
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
    assert.equal((await users.tasksOfKind(person, 'limit_order_create')).length, 0)
  })
})
