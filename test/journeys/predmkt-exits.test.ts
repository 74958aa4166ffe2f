/** Take-profits and stop-losses while the venue lags, matches in parts and fails trades, and while shares leave otherwise. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import pg from 'pg'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, freshGateway } from '../harness/gateway.ts'
import {
  atVenue,
  cashOf,
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  type Order,
  openOrdersOf,
  predictionVenue,
  setUp,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'
import { polygon, type World, worldOf } from './world.ts'

type Fault = { fault: { type?: string }; struck: number }
type Events = { events: { type: string; data: { order_id?: string; leg?: string; reason?: string } }[] }

describe('exits of purchases at the prediction market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let venue: ReturnType<typeof predictionVenue>
  let database: pg.Pool
  let ada: Person
  let bob: Person
  let early: { market: Market; id: string }
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0' },
      { ownWorld: 'its venue lags and fails, and its prices stay where they are put' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    ;[ada, bob] = await Promise.all([newTrader('400'), newTrader('400')])
    const market = await marketAt('cal-autumn-wins-the-mayoral-race')
    const order = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
    early = { market, id: (await executed(ada, '/predmkt/order', order)).result.order_id! }
  })
  afterEach(async () => {
    await dial({ preset: 'quiet' })
    await venue('DELETE', '/faults')
  })
  after(async () => {
    await database?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const dial = (settings: object) => venue('POST', '/realism', settings)
  const always = (ms: number) => ({ rate: 1, minMs: ms, maxMs: ms })
  const newTrader = async (usd: string): Promise<Person> => {
    const person = await createFundedPerson(gateway.url)
    await setUp(person)
    await world.fund(polygon, person.evm, 'USDC', usd)
    await executed(person, '/predmkt/fund-safe', { amount_usd: usd })
    return person
  }
  /** The market, whose price stays where it is put. */
  const marketAt = async (slug: string, price = 0.4): Promise<Market> => {
    await venue('POST', '/price', { market: slug, price })
    return marketBy(bob, slug)
  }
  const outcomeOf = ({ outcomes }: Market) => outcomes[0]!.outcome_id
  const buy = async (person: Person, market: Market, more: object = {}, usd = '8') => {
    const order = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: usd }
    const { result } = await executed(person, '/predmkt/order', { ...order, ...more })
    return micros(result.settled_shares!)
  }
  const sharesOf = async (person: Person, market: Market): Promise<bigint> => {
    const [id, { safe_address: wallet }] = [outcomeOf(market), await statusOf(person)]
    const path = `/balances?wallet=${wallet}&tokens=${id}`
    return micros((await venue<{ shares: Record<string, string> }>('GET', path)).shares[id]!)
  }
  /** The venue takes sales of whole hundredths of a share. */
  const whole = (units: bigint): bigint => (units / 10_000n) * 10_000n
  const text = (units: bigint): string => String(Number(units) / 1e6)
  const exitsOf = async (person: Person, market: Market) =>
    (await openOrdersOf(person)).filter(
      (order) =>
        (order as Order & { market: string }).market === market.condition_id && order.leg !== 'order',
    )
  const exitWith = (person: Person, market: Market, leg: string, status: string) =>
    eventually(
      async () => (await exitsOf(person, market)).find((each) => each.leg === leg && each.status === status),
      `the ${leg} is ${status}`,
    )
  const noExits = (person: Person, market: Market) =>
    eventually(
      async () => ((await exitsOf(person, market)).length === 0 ? true : undefined),
      'no exit is left',
    )
  const countOf = async (sql: string, values: unknown[] = []): Promise<number> =>
    Number((await database.query<{ count: string }>(sql, values)).rows[0]!.count)
  const userOf = async (person: Person): Promise<string> =>
    (await database.query<{ id: string }>('select id from app_user where agent_id = $1', [person.agentId]))
      .rows[0]!.id
  const salesOf = async (person: Person, market: Market) => {
    const { safe_address: wallet } = await statusOf(person)
    return (await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)).orders.filter(
      (each) => each.side === 'SELL' && each.conditionId === market.condition_id,
    )
  }
  const eventsOf = async (person: Person, type: string) =>
    (await person.call<Events>(`GET /v1/notifications?types=${type}&limit=100`)).body.events.filter(
      (each) => each.type === type,
    )

  test('a stop-loss that the book fills in part sells the rest, too', async () => {
    const slug = 'alpha-is-the-largest-company'
    // The market maker bids 0.01 for 400 shares, and nothing below.
    const market = await marketAt(slug, 0.02)
    const bought = await buy(ada, market, { take_profit_price: '0.9', stop_loss_price: '0.01' }, '20')
    assert.ok(bought > micros('500'), text(bought))
    const soldUnits = async () =>
      (await salesOf(ada, market)).reduce((sum, { matched }) => sum + micros(matched), 0n)
    await eventually(async () => ((await soldUnits()) > 0n ? true : undefined), 'a part was sold')
    await eventually(async () => {
      await venue('POST', '/price', { market: slug, price: 0.02 })
      return (await soldUnits()) === whole(bought) ? true : undefined
    }, 'the rest was sold')
    await noExits(ada, market)
  })

  test('exits of a purchase that rested are armed for all of it, where its trades are listed late', async () => {
    const slug = 'ben-summer-wins-the-mayoral-race'
    const market = await marketAt(slug)
    const held = await buy(bob, market)
    const outcome_id = outcomeOf(market)
    const bid = { outcome_id, side: 'BUY', price: '0.38', size: '10', take_profit_price: '0.9' }
    const entry = await executed(ada, '/predmkt/order', bid)
    assert.equal(entry.result.order_status, 'live')
    await dial({ tradesLag: always(6_000) })
    await venue('POST', '/price', { market: slug, price: 0.3 })
    assert.ok(held > micros('10'))
    await executed(bob, '/predmkt/order', { outcome_id, side: 'SELL', price: '0.38', size: '10' })
    const exit = await exitWith(ada, market, 'tp', 'live')
    assert.equal((exit as Order & { original_size: string }).original_size, '10')
    await executed(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
    await noExits(ada, market)
  })

  test('an order that the venue does not list for a while stays open, with the cash that it locks', async () => {
    const cash = await cashOf(ada)
    const wiped = await eventsOf(ada, 'predmkt.order.cancelled_by_venue')
    await dial({ ordersLag: always(600_000) })
    await venue('POST', '/faults', {
      effect: 'latency',
      latencyMs: 1,
      endpoint: 'clob',
      type: '/data/orders',
    })
    await eventually(async () => {
      const [found] = await venue<Fault[]>('GET', '/faults')
      return (found?.struck ?? 0) >= 3 ? true : undefined
    }, 'the venue was asked three times')
    assert.equal(await cashOf(ada), cash)
    await dial({ preset: 'quiet' })
    assert.deepEqual(await eventsOf(ada, 'predmkt.order.cancelled_by_venue'), wiped)
    const cancelled = await executed(ada, '/predmkt/order/cancel', { order_id: early.id })
    assert.deepEqual(cancelled.result, { canceled: [early.id], not_canceled: {} })
    assert.equal(await cashOf(ada), cash + micros('0.5'))
  })

  test('a take-profit whose settlement fails is placed anew, and the stop-loss stays', async () => {
    const slug = 'beta-is-the-largest-company'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { take_profit_price: '0.45', stop_loss_price: '0.2' })
    const first = await exitWith(ada, market, 'tp', 'live')
    await venue('POST', '/price', { market: slug, price: 0.5 })
    await dial({ failRate: 1, settleDelay: always(3_000) })
    const taken = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.45', size: text(whole(bought)) }
    const { body: task } = await bob.call<Ended>('POST /predmkt/order', { body: taken })
    await eventually(
      async () =>
        (await salesOf(ada, market)).some(({ status }) => status === 'MATCHED') ? true : undefined,
      'the take-profit has matched',
    )
    await dial({ preset: 'quiet' })
    // The order that is placed again rests.
    await venue('POST', '/price', { market: slug, price: 0.4 })
    const failed = await bob.ended(task.task_id)
    assert.equal(failed.error?.code, 'settlement_failed', JSON.stringify(failed))
    const again = await exitWith(ada, market, 'tp', 'live')
    assert.notEqual(again.id, first.id)
    assert.equal((again as Order & { original_size: string }).original_size, text(whole(bought)))
    await exitWith(ada, market, 'sl', 'watched')
    await executed(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
    await noExits(ada, market)
  })

  test('a stop-loss whose shares were sold by hand ends, and does not sell what is bought later', async () => {
    const slug = 'new-phone-before-march'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { stop_loss_price: '0.3' })
    await exitWith(ada, market, 'sl', 'watched')
    const byHand = { outcome_id: outcomeOf(market), side: 'SELL', order_type: 'FAK' }
    await executed(ada, '/predmkt/order', { ...byHand, amount_shares: text(whole(bought)) })
    const later = await buy(ada, market)
    await noExits(ada, market)
    const rest = bought - whole(bought)
    assert.equal(await sharesOf(ada, market), later + rest)
    const [ended] = await eventsOf(ada, 'predmkt.exit.cancelled')
    assert.equal(ended?.data.leg, 'sl')
    // Of two purchases with a stop-loss, the earlier one is sold first.
    await buy(ada, market, { stop_loss_price: '0.3' })
    const last = await buy(ada, market, { stop_loss_price: '0.25' })
    const all = await sharesOf(ada, market)
    await executed(ada, '/predmkt/order', { ...byHand, amount_shares: text(whole(all - last)) })
    await eventually(
      async () => ((await exitsOf(ada, market)).length === 1 ? true : undefined),
      'the earlier stop-loss has ended',
    )
    const [left] = await exitsOf(ada, market)
    assert.equal(left?.price, '0.25')
    await venue('POST', '/price', { market: slug, price: 0.2 })
    await noExits(ada, market)
  })

  test('a stop-loss sells only what the take-profit has left, although its fills are listed late', async () => {
    const slug = 'fed-cuts-rates-in-december'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { take_profit_price: '0.45', stop_loss_price: '0.3' })
    await exitWith(ada, market, 'tp', 'live')
    const unprotected = await buy(ada, market)
    await dial({ ordersLag: always(8_000), tradesLag: always(8_000) })
    await venue('POST', '/price', { market: slug, price: 0.5 })
    const part = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.45', size: '12' }
    const reply = await bob.call<Ended>('POST /predmkt/order', { body: part })
    assert.ok(reply.status < 300, JSON.stringify(reply.body))
    await eventually(
      async () => ((await salesOf(ada, market)).some(({ matched }) => matched === '12') ? true : undefined),
      'a part of the take-profit was filled',
    )
    await venue('POST', '/price', { market: slug, price: 0.25 })
    const soldUnits = async () =>
      (await salesOf(ada, market)).reduce((sum, { matched }) => sum + micros(matched), 0n)
    await eventually(async () => ((await soldUnits()) >= whole(bought) ? true : undefined), 'it is sold')
    await dial({ preset: 'quiet' })
    await noExits(ada, market)
    assert.equal(await soldUnits(), whole(bought))
    const rest = bought - whole(bought)
    await eventually(
      async () => ((await sharesOf(ada, market)) === unprotected + rest ? true : undefined),
      'the other shares are still there',
    )
  })

  test('a take-profit that its user has cancelled stays cancelled, although the reply was lost', async () => {
    const market = await marketAt('ada-winter-wins-the-mayoral-race')
    await buy(ada, market, { take_profit_price: '0.6', stop_loss_price: '0.2' })
    const exit = await exitWith(ada, market, 'tp', 'live')
    const wiped = await eventsOf(ada, 'predmkt.order.cancelled_by_venue')
    await venue('POST', '/faults', { effect: 'dropReply', endpoint: 'clob', type: '/order', count: 1 })
    const { result } = await executed(ada, '/predmkt/order/cancel', { order_id: exit.id })
    assert.deepEqual(result, { canceled: [exit.id], not_canceled: {} })
    const user = await userOf(ada)
    const open = `select count(*) from prediction_exit where user_id = $1 and market_id = $2 and leg = 'tp'
      and state in ('waiting', 'resting', 'watched', 'executing')`
    const synced = `select count(*) from prediction_order where order_id = $1 and ended_at is not null`
    await eventually(
      async () => ((await countOf(synced, [exit.id])) === 1 ? true : undefined),
      'the order has ended',
    )
    assert.equal(await countOf(open, [user, market.condition_id]), 0)
    // The stop-loss is compared again and again with the same state that would place a take-profit.
    await venue('POST', '/faults', {
      effect: 'latency',
      latencyMs: 1,
      endpoint: 'clob',
      type: '/data/trades',
    })
    await eventually(async () => {
      const found = (await venue<Fault[]>('GET', '/faults')).find(
        ({ fault }) => fault.type === '/data/trades',
      )
      return (found?.struck ?? 0) >= 3 ? true : undefined
    }, 'the account was compared three times')
    assert.deepEqual(
      (await exitsOf(ada, market)).map(({ leg, status }) => [leg, status]),
      [['sl', 'watched']],
    )
    assert.deepEqual(await eventsOf(ada, 'predmkt.order.cancelled_by_venue'), wiped)
    const all = await executed(ada, '/predmkt/order/cancel', { cancel_all: true })
    assert.equal((all.result.canceled as unknown as string[]).length, 1)
    await noExits(ada, market)
  })

  test('an order that no exit stands for any more is cancelled, and a wipe beside a fall of the price sells once', async () => {
    const slug = 'gamma-is-the-largest-company'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { take_profit_price: '0.6', stop_loss_price: '0.3' })
    const first = await exitWith(ada, market, 'tp', 'live')
    const ended = `update prediction_exit set state = 'cancelled' where user_id = $1 and market_id = $2 and leg = 'tp'`
    await database.query(ended, [await userOf(ada), market.condition_id])
    await eventually(
      async () =>
        (await salesOf(ada, market)).some(({ id, status }) => id === first.id && status === 'CANCELED') ||
        undefined,
      'the order is cancelled',
    )
    const armed = ended.replace('cancelled', 'waiting')
    await database.query(armed, [await userOf(ada), market.condition_id])
    await exitWith(ada, market, 'tp', 'live')
    for (const type of ['/book', '/books'])
      await venue('POST', '/faults', { effect: 'status', status: 503, endpoint: 'clob', type })
    await venue('POST', '/restart', { forMs: 500, nextMs: 500, wipe: true })
    await venue('POST', '/price', { market: slug, price: 0.2 })
    await eventually(
      async () =>
        (await exitsOf(ada, market)).some(({ leg, status }) => leg === 'tp' && status === 'waiting') ||
        undefined,
      'the take-profit waits',
    )
    await venue('DELETE', '/faults')
    await eventually(
      async () => (await sharesOf(ada, market)) < micros('0.01') || undefined,
      'the stop-loss has sold',
    )
    await noExits(ada, market)
    const sales = await salesOf(ada, market)
    assert.equal(
      sales.reduce((sum, { matched }) => sum + micros(matched), 0n),
      whole(bought),
    )
    assert.ok(sales.every(({ status }) => status !== 'LIVE'))
  })

  test('accounts that cannot be compared stop nobody, and a user has a bounded number of exits', async () => {
    const slug = 'recession-declared-next-year'
    const market = await marketAt(slug)
    const strangers = await Promise.all([1, 2, 3].map(() => createFundedPerson(gateway.url)))
    for (const person of strangers) {
      await setUp(person)
      // Their keys cannot be opened any more, and their accounts are always due first.
      await database.query(
        `update prediction_key set id = gen_random_uuid(), wrapped_dek = '\\x00' where user_id = $1`,
        [await userOf(person)],
      )
      await database.query(`update prediction_account set sync_at = '2020-01-01' where user_id = $1`, [
        await userOf(person),
      ])
    }
    await buy(ada, market, { stop_loss_price: '0.3' })
    await exitWith(ada, market, 'sl', 'watched')
    await venue('POST', '/price', { market: slug, price: 0.2 })
    await noExits(ada, market)

    const user = await userOf(ada)
    await database.query(
      `insert into prediction_exit (id, user_id, venue, entry_task_id, entry_order_id, leg, market_id, outcome_id,
         trigger_price, state, created_at, updated_at)
       select gen_random_uuid(), $1, 'polymarket', gen_random_uuid(), 'none ' || n, 'sl', 'none', '1', 10000,
         'waiting', now(), now() from generate_series(1, 200) n`,
      [user],
    )
    const order = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: '4' }
    const { status, body } = await ada.call('POST /predmkt/order', {
      body: { ...order, stop_loss_price: '0.1' },
    })
    assert.deepEqual([status, body.code], [409, 'conflict'], JSON.stringify(body))
    assert.match(JSON.stringify(body), /200 exits/)
    await executed(ada, '/predmkt/order', order)
    await database.query(`delete from prediction_exit where user_id = $1 and market_id = 'none'`, [user])
  })

  test('an exit whose shares have left the wallet ends', async () => {
    const slug = 'ben-summer-wins-the-mayoral-race'
    const market = await marketAt(slug)
    await buy(ada, market, { stop_loss_price: '0.2' })
    await exitWith(ada, market, 'sl', 'watched')
    const [from, to] = await Promise.all([statusOf(ada), statusOf(bob)])
    const moved = (await atVenue(ada)).find(({ outcome_id: id }) => id === outcomeOf(market))!
    const url = world.manifest.urls.evm[polygon]
    const word = (hex: string) => hex.replace('0x', '').toLowerCase().padStart(64, '0')
    const number = (value: string | number) => word(BigInt(value).toString(16))
    const data = `0xf242432a${word(from.safe_address)}${word(to.safe_address)}${number(moved.outcome_id!)}${number(moved.amount)}${number(160)}${number(0)}`
    await world.rpc('anvil_setBalance', [from.safe_address, '0xde0b6b3a7640000'], url)
    await world.rpc('anvil_impersonateAccount', [from.safe_address], url)
    await world.rpc('eth_sendTransaction', [{ from: from.safe_address, to: moved.token_address, data }], url)
    await eventually(async () => ((await sharesOf(ada, market)) === 0n ? true : undefined), 'they have left')
    const user = await userOf(ada)
    const short = 'select count(*) from prediction_order where user_id = $1 and short_since is not null'
    const readAgain = () =>
      database.query('update prediction_account set shares_read_at = null where user_id = $1', [user])
    await eventually(async () => {
      await readAgain()
      return (await countOf(short, [user])) > 0 ? true : undefined
    }, 'the shares are missed')
    assert.equal((await exitsOf(ada, market)).length, 1, 'one reading ends no exit')
    await database.query(
      `update prediction_order set short_since = short_since - interval '10 minutes' where user_id = $1`,
      [user],
    )
    await readAgain()
    await noExits(ada, market)
  })

  test('a key that the venue has lost is missing in the status, and the next set-up replaces it', async () => {
    const slug = 'ada-winter-wins-the-mayoral-race'
    const market = await marketAt(slug)
    const earlier = (await salesOf(ada, market)).length
    const bought = await buy(ada, market, { take_profit_price: '0.6', stop_loss_price: '0.3' })
    await exitWith(ada, market, 'tp', 'live')
    const loseKeys = async (person: Person) => venue('POST', '/lose-keys', { owner: person.evm })
    await loseKeys(ada)
    const status = await statusOf(ada)
    assert.deepEqual(
      [status.setup_complete, status.steps.filter(({ done }) => !done).map(({ key }) => key)],
      [false, ['key']],
    )
    await venue('POST', '/price', { market: slug, price: 0.2 })
    await executed(ada, '/predmkt/setup')
    assert.equal((await statusOf(ada)).setup_complete, true)
    await eventually(
      async () =>
        (await salesOf(ada, market))
          .slice(earlier)
          .some(({ matched }) => micros(matched) === whole(bought)) || undefined,
      'the stop-loss has sold',
    )

    await buy(bob, market, { stop_loss_price: '0.1' })
    await exitWith(bob, market, 'sl', 'watched')
    await loseKeys(bob)
    using folder = dataFolder()
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
    await operator.act('left', 'users', 'freeze', bob.agentId)
    const keys = 'select count(*) from prediction_key where user_id = $1 and revoked_at is null'
    const user = await userOf(bob)
    await eventually(async () => ((await countOf(keys, [user])) === 0 ? true : undefined), 'it is revoked')
  })
})
