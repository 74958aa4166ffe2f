import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** Failures around an exit held by the gateway, and their consequences. */

const codeOf = async (asking: Promise<unknown>): Promise<string | undefined> =>
  asking.then(
    () => undefined,
    (fault: unknown) => {
      if (fault instanceof Fault) return fault.issues[0]?.type ?? fault.code
      throw fault
    },
  )

const taskTimeoutMs = 60_000

describe('spot under failures', () => {
  let app: VenueApp
  let user: User
  before(async () => {
    app = await createVenueApp({
      uncounted: 'two hundred exits and a storm of orders spend more than the weight of a minute',
    })
  })
  beforeEach(async () => {
    await app.market.control('DELETE', '/faults', {})
    await app.price('@1', 40)
    await app.price('ETH', 3_000)
    user = await app.trader('1000')
  })
  after(() => app?.[Symbol.asyncDispose]())

  const call = (name: string, input: object, who = user): Promise<TaskAnswer> =>
    app.call(`spot_venue_${name}`, input, who, { timeoutMs: taskTimeoutMs })
  const fault = (what: object) => app.market.control<{ id: number }>('POST', '/faults', what)
  const salesOf = async (who = user) =>
    (await app.main.taskEngine.tasks.list(who.id, { skip: 0, limit: 50, kind: 'spot_trigger' })).tasks
  /** The end of the first sale: a trigger that is armed again may have sold before it is seen. */
  const saleOf = (who = user) =>
    eventually(async () => {
      const first = (await salesOf(who)).at(-1)
      return first?.completed_at ? first : undefined
    }, 'the first sale of the trigger has ended')
  const bought = async (who: User, body: object): Promise<TaskAnswer> => {
    const done = await call('buy', { asset: 'HYPE', ...body }, who)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    return done
  }

  // First in the file: stops that other tests leave armed fire at this price too.
  test('a stop whose order finds no buyer, because the price falls meanwhile, sells at the next price', async () => {
    await bought(user, { size: '1', sl_price: '35' })
    // The order does not arrive before the price has fallen again.
    await fault({ endpoint: 'exchange', type: 'order', effect: 'status', status: 503 })
    await app.price('@1', 34)
    await eventually(async () => {
      const faults = await app.market.control<{ struck: number }[]>('GET', '/faults')
      return faults.some(({ struck }) => struck > 0) || undefined
    }, 'the order of the stop is sent')
    await app.price('@1', 25)
    await app.market.control('DELETE', '/faults', {})
    const sales = await eventually(async () => {
      const found = await salesOf()
      return found.some(({ outcome }) => outcome === 'executed') ? found : undefined
    }, 'the stop has sold at the next price')
    const first = sales.at(-1)
    assert.deepEqual(
      [first?.outcome, first?.error?.code],
      ['not_executed', 'slippage'],
      JSON.stringify(first),
    )
  })

  test('an order of one section is not found by the cancel of the other, and stays open', async () => {
    const limit = { order_type: 'limit', limit_price: '30' }
    const spot = await bought(user, { size: '1', ...limit })
    const perp = await app.call(
      'perp_open',
      { asset: 'ETH', side: 'long', size: '0.01', order_type: 'limit', limit_price: '2500' },
      user,
    )
    assert.equal(await codeOf(app.call('perp_cancel', { order_id: spot.result.order_id }, user)), 'not_found')
    assert.equal(await codeOf(call('cancel', { order_id: perp.result.order_id })), 'not_found')
    assert.equal((await call('orders', {})).orders.length, 1)
  })

  test('a stop sells a holding worth the minimum, however far its price may slip', async () => {
    await bought(user, { size: '0.32', sl_price: '35' })
    await app.price('@1', 34)
    const sale = await saleOf()
    // 0.31 * 34 is above 10 USDC, and 10 % less is not.
    assert.deepEqual([sale.outcome, sale.error], ['executed', null], JSON.stringify(sale))
  })

  test('a bracket with an exit that the venue would reject is rejected before the purchase', async () => {
    const body = { asset: 'HYPE', size: '0.3', sl_price: '30' }
    assert.equal(await codeOf(call('buy', body)), 'below_minimum')
    assert.equal(
      (await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 9, kind: 'spot_buy' })).total,
      0,
    )
  })

  test('a stop sells while the entries of other triggers cannot be looked up', async () => {
    const other = await app.trader('500')
    const limit = { order_type: 'limit', limit_price: '20', sl_price: '15' }
    await bought(other, { size: '1', ...limit })
    await bought(user, { size: '1', sl_price: '35' })
    await fault({ endpoint: 'info', type: 'orderStatus', effect: 'status', status: 503, count: 40 })
    await app.price('@1', 34)
    await eventually(async () => {
      const { fills } = await app.venueState(user)
      return new Set(fills.map(({ oid }) => oid)).size === 2 ? true : undefined
    }, 'the stop has sold')
    await app.market.control('DELETE', '/faults', {})
    assert.equal((await saleOf()).outcome, 'executed')
  })

  test('a sale that never arrived at the venue leaves its exit armed, which then sells', async () => {
    const { result } = await bought(user, { size: '1', sl_price: '35' })
    await fault({ endpoint: 'exchange', type: 'order', effect: 'status', status: 503 })
    await app.price('@1', 34)
    await eventually(async () => {
      const [sale] = await salesOf()
      return sale?.state === 'reconciling' ? true : undefined
    }, 'the outcome of the sale is unknown')
    await app.market.control('POST', '/advance', { ms: 60_000 })
    const lost = await saleOf()
    assert.deepEqual([lost.outcome, lost.error?.code], ['not_executed', 'expired'], JSON.stringify(lost))
    assert.equal(lost.result?.trigger_order_id, result.sl_oids[0])
    await app.market.control('DELETE', '/faults', {})
    const again = await eventually(
      async () => (await salesOf()).find(({ outcome }) => outcome === 'executed'),
      'the exit has sold',
    )
    assert.deepEqual([again.result?.trigger_order_id], (lost.result as TaskAnswer['result']).sl_oids)
    assert.equal((await app.venueState(user)).orders.length, 2)
  })

  test('a stop that is armed again has its take-profit again, and one still ends the other', async () => {
    const { result } = await bought(user, { size: '1', sl_price: '35', tp_price: '50' })
    const pair = [...result.tp_oids, ...result.sl_oids].sort()
    const openExits = async () => (await call('orders', {})).orders.map(({ order_id }) => order_id).sort()
    await fault({ endpoint: 'exchange', type: 'order', effect: 'status', status: 503 })
    await app.price('@1', 34)
    await eventually(async () => {
      const [sale] = await salesOf()
      return sale?.state === 'reconciling' ? true : undefined
    }, 'the outcome of the sale is unknown')
    assert.deepEqual(await openExits(), [])
    await app.price('@1', 40)
    await app.market.control('POST', '/advance', { ms: 60_000 })
    assert.equal((await saleOf()).outcome, 'not_executed')
    assert.deepEqual(await openExits(), pair)
    await app.market.control('DELETE', '/faults', {})
    await app.price('@1', 51)
    const sold = await eventually(
      async () => (await salesOf()).find(({ outcome }) => outcome === 'executed'),
      'the take-profit has sold',
    )
    assert.deepEqual([sold.result?.trigger_order_id], result.tp_oids)
    assert.deepEqual(await openExits(), [])
  })

  test('an exit whose trading key was revoked waits for the next key, and sells', async () => {
    await bought(user, { size: '1', sl_price: '35' })
    const { api_wallet_address: address } = await app.call('perp_setup_status', {}, user)
    await app.market.control('POST', '/agents/expire', { address })
    await app.price('@1', 34)
    const refused = await saleOf()
    assert.deepEqual([refused.outcome, refused.error?.code], ['not_executed', 'setup_incomplete'])
    const [waiting] = (refused.result as TaskAnswer['result']).sl_oids
    const again = await app.call('perp_setup', {}, user)
    assert.equal(again.outcome, 'executed', JSON.stringify(again))
    const sold = await eventually(
      async () => (await salesOf()).find(({ outcome }) => outcome === 'executed'),
      'the exit has sold under the new key',
    )
    assert.equal(sold.result?.trigger_order_id, waiting)
  })

  test('the exits of a cancelled limit order sell the part that it filled before', async () => {
    // Between the two sides of the market maker, so that no other account takes it.
    const limit = { order_type: 'limit', limit_price: '40' }
    const seller = await app.trader('500')
    await bought(seller, { size: '2' })
    await call('sell', { asset: 'HYPE', size: '1', ...limit }, seller)
    const resting = await bought(user, { size: '3', ...limit, sl_price: '30' })
    const { order_status, order_id } = resting.result
    assert.equal(order_status, 'resting', JSON.stringify(resting))
    const exits = async () => (await call('orders', {})).orders.filter(({ is_trigger }) => is_trigger)
    assert.deepEqual(
      (await exits()).map(({ size }) => size),
      ['3'],
    )
    await call('cancel', { order_id })
    await eventually(async () => ((await exits())[0]?.size === '1' ? true : undefined), 'the exit is armed')
    await app.price('@1', 29)
    const sale = await saleOf()
    // The fee of the purchase was paid in the bought token.
    assert.deepEqual([sale.outcome, (sale.result as TaskAnswer['result']).filled_size], ['executed', '0.99'])
  })

  test('a price drop fires every exit at once, one of them finds the holding, and none sells too much', async () => {
    await bought(user, { size: '1' })
    const set = () => call('tp_sl', { asset: 'HYPE', sl_price: '35' })
    for (let made = 0; made < 198; made += 33) await Promise.all(Array.from({ length: 33 }, set))
    await set()
    assert.equal(await codeOf(set()), 'conflict')
    await app.price('@1', 34)
    await eventually(
      async () => {
        const { rows } = await app.database.pool.query(
          `select 1 from trigger_order where user_id = $1 and status = 'armed'
           union all select 1 from task where user_id = $1 and completed_at is null limit 1`,
          [user.id],
        )
        return rows.length === 0 || undefined
      },
      'every exit has ended',
      180_000,
    )
    const ended = { skip: 0, limit: 100, kind: 'spot_trigger', status: 'completed' } as const
    const { tasks } = await app.main.taskEngine.tasks.list(user.id, ended)
    assert.deepEqual(
      tasks.map(({ outcome }) => outcome),
      ['executed'],
    )
    assert.equal(new Set((await app.venueState(user)).fills.map(({ oid }) => oid)).size, 2)
    assert.deepEqual((await call('orders', {})).orders, [])
  })

  test('of a concurrent cancel and trigger one wins, and the answer names it', async () => {
    const users = await Promise.all(Array.from({ length: 8 }, () => app.trader('100')))
    const set = await Promise.all(users.map((who) => bought(who, { size: '1', sl_price: '35' })))
    await app.price('@1', 34)
    const cancels = await Promise.all(
      users.map((who, at) =>
        call('cancel', { order_id: set[at]!.result.sl_oids[0] }, who).then(
          ({ outcome, error }) => (outcome === 'executed' ? 'cancelled' : error!.code),
          (refusal: Fault) => refusal.code,
        ),
      ),
    )
    for (const [at, said] of cancels.entries()) {
      const who = users[at]!
      assert.ok(['cancelled', 'order_not_cancellable'].includes(said), said)
      const sales = said === 'cancelled' ? await salesOf(who) : [await saleOf(who)]
      assert.equal(sales.length, said === 'cancelled' ? 0 : 1)
      const orders = new Set((await app.venueState(who)).fills.map(({ oid }) => oid))
      assert.equal(orders.size, said === 'cancelled' ? 1 : 2)
    }
  })

  test('dollars are transferred once although the reply was lost, and two purchases do not spend them twice', async () => {
    const transfer = { endpoint: 'exchange', type: 'usdClassTransfer' }
    await fault({ ...transfer, effect: 'dropReply' })
    // Both are admitted before the dollars of one of them arrive.
    const { id } = await fault({ ...transfer, effect: 'status', status: 503 })
    const begun = await Promise.all(
      ['8', '8'].map((size) =>
        app
          .call('spot_venue_buy', { asset: 'HYPE', size }, user, { wait: false })
          .catch((refusal: Fault) => refusal),
      ),
    )
    await app.market.control('DELETE', '/faults', { id })
    const done = await Promise.all(
      begun.map((each) => (each instanceof Fault ? each : app.waitForEnd(user, each.task_id))),
    )
    const truth = await app.venueState(user)
    const moves = truth.ledger.filter(({ delta }) => delta.type === 'accountClassTransfer')
    const filled = done.filter((each) => !(each instanceof Fault) && each.outcome === 'executed')
    assert.equal(moves.length, 2)
    assert.equal(filled.length, 2, JSON.stringify(done))
    assert.equal(truth.orders.length, 2)
  })

  test('in a storm of thirty orders every outcome agrees with the venue', async () => {
    const users = await Promise.all(Array.from({ length: 3 }, () => app.trader('3000')))
    for (const who of users) await bought(who, { size: '20' })
    await fault({ endpoint: 'exchange', effect: 'dropReply', rate: 0.25, seed: 21 })
    await fault({ endpoint: 'exchange', effect: 'reset', rate: 0.15, seed: 22 })
    await fault({ effect: 'status', status: 429, rate: 0.1, seed: 23 })
    const ways = [
      ['buy', { size: '0.5' }],
      ['sell', { size: '0.5' }],
      ['buy', { size: '0.5', order_type: 'limit', limit_price: '30' }],
    ] as const
    const tasks = await Promise.all(
      Array.from({ length: 30 }, async (_, at) => {
        const who = users[at % users.length]!
        const [name, body] = ways[Math.floor(at / users.length) % ways.length]!
        for (let attempt = 0; ; attempt++)
          try {
            const options = { wait: false, key: `spot-storm-${at}` }
            const begun = await app.call(`spot_venue_${name}`, { asset: 'HYPE', ...body }, who, options)
            return { who, taskId: begun.task_id }
          } catch (error) {
            if (attempt > 20) throw error
          }
      }),
    )
    const ends = await Promise.all(
      tasks.map(async ({ who, taskId }) => ({ who, end: await app.waitForEnd(who, taskId) })),
    )
    await app.market.control('DELETE', '/faults', {})
    for (const who of users) {
      const { orders } = await app.venueState(who)
      const own = ends.filter((each) => each.who === who).map(({ end }) => end)
      for (const end of own)
        assert.ok(['executed', 'not_executed'].includes(String(end.outcome)), JSON.stringify(end))
      const cloidsOf = (outcome: string) =>
        own
          .filter((end) => end.outcome === outcome)
          .map(({ result }) => (result as TaskAnswer['result'])?.cloid)
      // Concurrent purchases see the same dollars: the venue decides, and the record shows its decision.
      const [rejected, taken] = [true, false].map((is) =>
        orders.filter(({ status }) => /Rejected$/.test(status) === is).map(({ cloid }) => cloid),
      ) as [string[], string[]]
      const executed = cloidsOf('executed')
      // One more: the purchase before the storm.
      assert.equal(taken.length, executed.length + 1)
      assert.ok(executed.every((cloid) => taken.includes(String(cloid))))
      assert.ok(rejected.every((cloid) => cloidsOf('not_executed').includes(cloid)))
    }
    assert.ok(ends.filter(({ end }) => end.outcome === 'executed').length >= 20)
  })
})
