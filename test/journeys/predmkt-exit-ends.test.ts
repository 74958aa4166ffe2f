/** Exits that are cancelled, that lose their shares, their order or their key, and accounts that cannot be compared. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import {
  accept,
  atVenue,
  type Ended,
  executed,
  micros,
  moveOutcomeShares,
  outcomeOf,
  run,
  setUp,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import { always, type ExitApp, type InjectedFault, openExitApp, text, whole } from './predmkt-exit-app.ts'
import { createFundedPerson, type Person } from './users.ts'
import { polygon } from './world.ts'

describe('ends of exits of purchases', () => {
  let app: ExitApp
  before(async () => {
    app = await openExitApp()
  })
  afterEach(() => app.calm())
  after(() => app?.[Symbol.asyncDispose]())

  test('a take-profit that its user has cancelled stays cancelled, although the reply was lost', async () => {
    const { ada, buy, countOf, eventsOf, exitWith, exitsOf, marketAt, noExits, userOf, venue } = app
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
      const found = (await venue<InjectedFault[]>('GET', '/faults')).find(
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

  test('a cancel of everything reaches an order that waits to be sent, and the exits of a purchase that settles', async () => {
    const { ada, countOf, dial, marketAt, noExits, userOf, venue } = app
    const [market, user] = [await marketAt('harbor-city-vs-river-town'), await userOf(ada)]
    const outcome_id = outcomeOf(market)
    const open = `select count(*) from prediction_exit where user_id = $1 and market_id = $2
      and state in ('waiting', 'resting', 'watched', 'executing')`
    for (const scope of [{ cancel_all: true }, { condition_id: market.condition_id }]) {
      await venue('POST', '/mode', { mode: 'restarting', forMs: 6_000 })
      const bid = { outcome_id, side: 'BUY', price: '0.05', size: '10', take_profit_price: '0.9' }
      const waits = await accept(ada, '/predmkt/order', bid)
      const shown = await eventually(async () => {
        const { body } = await ada.call<Ended>(`GET /v1/tasks/${waits.task_id}`)
        return /venue_restarting/.test(JSON.stringify(body)) ? body : undefined
      }, 'the order waits')
      assert.equal(shown.cancellable, false)
      await executed(ada, '/predmkt/order/cancel', scope)
      const ended = await ada.ended(waits.task_id)
      assert.deepEqual(
        [ended.outcome, ended.error?.code],
        ['not_executed', 'cancelled'],
        JSON.stringify(ended),
      )

      await dial({ settleDelay: always(6_000) })
      const purchase = { outcome_id, side: 'BUY', order_type: 'FOK', amount_usd: '8' }
      const exits = { take_profit_price: '0.6', stop_loss_price: '0.2' }
      const bought = await accept(ada, '/predmkt/order', { ...purchase, ...exits })
      const matched = `select count(*) from prediction_fill f join prediction_order o using (order_id)
        where o.task_id = $1 and o.ended_at is not null`
      await eventually(
        async () => (await countOf(matched, [bought.task_id])) > 0 || undefined,
        'it has matched',
      )
      const { result } = await executed(ada, '/predmkt/order/cancel', scope)
      assert.equal((result.canceled as unknown as string[]).length, 2, JSON.stringify(result))
      const settled = (await ada.ended(bought.task_id)) as unknown as Ended
      assert.equal(settled.outcome, 'executed', JSON.stringify(settled))
      const { take_profit_state: profit, stop_loss_state: stop } = settled.result
      assert.deepEqual([profit, stop], ['none', 'none'])
      assert.equal(await countOf(open, [user, market.condition_id]), 0)
      await noExits(ada, market)
      await dial({ preset: 'quiet' })
    }
    const { safe_address: wallet } = await statusOf(ada)
    const { orders } = await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)
    const bids = orders.filter((each) => each.conditionId === market.condition_id && each.size === '10')
    assert.deepEqual(bids, [], 'the orders were not sent')
  })

  test('an order whose reply was lost as everything was cancelled is cancelled once it is found', async () => {
    const { ada, marketAt, venue } = app
    const market = await marketAt('harbor-city-vs-river-town')
    const bid = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.06', size: '11' }
    const slow = { effect: 'latency', latencyMs: 4_000, endpoint: 'clob', type: '/order', count: 1 }
    await venue('POST', '/faults', slow)
    const { task_id: id } = await accept(ada, '/predmkt/order', bid)
    await eventually(
      async () =>
        (await venue<InjectedFault[]>('GET', '/faults')).some(({ struck }) => struck > 0) || undefined,
      'the order is on its way',
    )
    await executed(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
    const ended = await ada.ended(id)
    assert.deepEqual([ended.outcome, ended.error?.code], ['not_executed', 'cancelled'], JSON.stringify(ended))
    const { safe_address: wallet } = await statusOf(ada)
    const { orders } = await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)
    assert.deepEqual(
      orders.filter(({ size }) => size === '11').map(({ status }) => status),
      ['CANCELED'],
    )
  })

  test('an order that no exit stands for any more is cancelled, and a wipe beside a fall of the price sells once', async () => {
    const { ada, buy, database, exitWith, exitsOf, marketAt, noExits, salesOf, sharesOf, userOf, venue } = app
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

  test('accounts that cannot be compared stop nobody, and a user has a bounded number of exits and orders', async () => {
    const { ada, buy, database, exitWith, gateway, marketAt, noExits, userOf, venue } = app
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

    const bid = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.01', size: '10' }
    await database.query(
      `insert into prediction_order (order_id, user_id, venue, task_id, leg, market_id, outcome_id, outcome, title,
         protocol, neg_risk, side, order_type, price, size, making, taking, status, at, followed)
       select 'none ' || n, $1, 'polymarket', gen_random_uuid(), 'order', 'none', '1', '', '', 'v1', false, 'buy',
         'gtc', 10000, 1, 0, 0, 'live', now(), false from generate_series(1, 199 - (select count(*)::integer
           from prediction_order where user_id = $1 and leg = 'order' and ended_at is null)) n`,
      [user],
    )
    await executed(ada, '/predmkt/order', bid)
    const beyond = await ada.call('POST /predmkt/order', { body: bid })
    assert.deepEqual([beyond.status, beyond.body.code], [409, 'conflict'], JSON.stringify(beyond.body))
    assert.match(JSON.stringify(beyond.body), /200 open orders/)
    await executed(ada, '/predmkt/order', order)
    await database.query(`delete from prediction_order where user_id = $1 and market_id = 'none'`, [user])
    // The purchase has matched, and its row may be open for a moment more: then the cancel names it.
    const { result } = await run(ada, '/predmkt/order/cancel', { cancel_all: true })
    assert.ok(Object.keys(result.not_canceled ?? {}).length <= 1, JSON.stringify(result))
  })

  test('an exit whose shares have left the wallet ends', async () => {
    const {
      ada,
      bob,
      buy,
      countOf,
      database,
      exitWith,
      exitsOf,
      marketAt,
      noExits,
      sharesOf,
      userOf,
      world,
    } = app
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
    const { ada, bob, buy, countOf, exitWith, gateway, marketAt, salesOf, userOf, venue } = app
    const slug = 'ada-winter-wins-the-mayoral-race'
    const market = await marketAt(slug)
    const earlier = (await salesOf(ada, market)).length
    const bought = await buy(ada, market, { take_profit_price: '0.6', stop_loss_price: '0.3' })
    await exitWith(ada, market, 'tp', 'live')
    const loseKeys = async (person: Person) => venue('POST', '/lose-keys', { owner: person.evm })
    await loseKeys(ada)
    const missing = async () => (await statusOf(ada)).steps.filter(({ done }) => !done).map(({ key }) => key)
    // What people are shown may be some seconds old.
    await eventually(async () => (await missing()).length > 0 || undefined, 'a step is missing')
    assert.deepEqual(await missing(), ['key'])
    assert.equal((await statusOf(ada)).setup_complete, false)
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
    // The audit at the end reads the wallets of all users.
    await operator.act('came back', 'users', 'unfreeze', bob.agentId)
  })
  test('shares that came from elsewhere and are sold by hand leave the exits of a purchase alone', async () => {
    const { ada, buy, database, exitWith, marketAt, sharesOf, userOf, world } = app
    const slug = 'beta-is-the-largest-company'
    const market = await marketAt(slug)
    const donor = await app.newTrader('50')
    const units = whole(await buy(donor, market))
    await buy(ada, market, { stop_loss_price: '0.1' })
    const exit = await exitWith(ada, market, 'sl', 'watched')
    const before = await sharesOf(ada, market)
    const [from, to] = await Promise.all(
      [donor, ada].map(async (person) => (await statusOf(person)).safe_address),
    )
    await moveOutcomeShares(world, { from: from!, to: to!, market, outcomeId: outcomeOf(market), units })
    const sale = {
      outcome_id: outcomeOf(market),
      side: 'SELL',
      order_type: 'FAK',
      amount_shares: text(units),
    }
    await executed(ada, '/predmkt/order', sale)
    assert.equal(await sharesOf(ada, market), before)
    const sold = await database.query<{ released: string }>(
      `select o.released::text from prediction_order o join prediction_exit e on e.entry_order_id = o.order_id
         where o.user_id = $1 and e.id = $2`,
      [await userOf(ada), exit.id],
    )
    assert.deepEqual(sold.rows, [{ released: '0' }])
    await exitWith(ada, market, 'sl', 'watched')
  })

  test('a user who is frozen while an order is on its way keeps the key until the order has ended', async () => {
    const { countOf, gateway, marketAt, userOf, venue } = app
    const cleo = await app.newTrader('50')
    const market = await marketAt('beta-is-the-largest-company')
    const user = await userOf(cleo)
    const keys = 'select count(*) from prediction_key where user_id = $1 and revoked_at is null'
    await venue('POST', '/faults', {
      effect: 'latency',
      latencyMs: 12_000,
      endpoint: 'clob',
      type: '/order',
      count: 1,
    })
    const order = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: '8' }
    const task = await accept(cleo, '/predmkt/order', order)
    await eventually(
      async () =>
        (await venue<InjectedFault[]>('GET', '/faults')).some(({ struck }) => struck > 0) || undefined,
      'the order is on its way',
    )
    using folder = dataFolder()
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
    await operator.act('left', 'users', 'freeze', cleo.agentId)
    const stateOf = async () =>
      (
        await app.database.query<{ outcome: string | null }>('select outcome from task where id = $1', [
          task.task_id,
        ])
      ).rows[0]!.outcome
    await eventually(async () => (await stateOf()) === 'executed' || undefined, 'the order has executed')
    await eventually(async () => (await countOf(keys, [user])) === 0 || undefined, 'the key is revoked')
    await operator.act('came back', 'users', 'unfreeze', cleo.agentId)
  })

  test('an order whose match is more than its trades by rounding is followed for minutes, and not for ever', async () => {
    const { ada, buy, countOf, database, marketAt, userOf } = app
    const market = await marketAt('bitcoin-up-or-down-today', 0.5)
    await buy(ada, market)
    const user = await userOf(ada)
    const own = 'user_id = $1 and market_id = $2'
    const values = [user, market.condition_id]
    await database.query(
      `update prediction_order set matched = matched + 1, followed = true, ended_at = now() where ${own}`,
      values,
    )
    const compare = async () => {
      await database.query(`update prediction_account set sync_at = '2020-01-01' where user_id = $1`, [user])
      const due = `select count(*) from prediction_account where user_id = $1
        and (sync_at is null or (sync_at > '2020-01-01' and sync_at < now() + interval '30 seconds'))`
      await eventually(async () => (await countOf(due, [user])) === 1 || undefined, 'the account is compared')
    }
    const followed = () => countOf(`select count(*) from prediction_order where ${own} and followed`, values)
    await compare()
    assert.equal(await followed(), 1)
    await database.query(
      `update prediction_order set ended_at = ended_at - interval '10 minutes' where ${own}`,
      values,
    )
    await eventually(async () => {
      await compare()
      return (await followed()) === 0 || undefined
    }, 'the order is followed no more')
  })

  test('a stop-loss signs no sale of shares that a sale by hand has taken since they were read', async () => {
    const { ada, buy, countOf, exitWith, marketAt, userOf, venue } = app
    const slug = 'new-phone-before-march'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { stop_loss_price: '0.3' })
    await exitWith(ada, market, 'sl', 'watched')
    const slow = { effect: 'latency', latencyMs: 6_000, endpoint: 'clob', type: '/book', count: 1 }
    await venue('POST', '/faults', slow)
    await venue('POST', '/price', { market: slug, price: 0.2 })
    const isStruck = async () =>
      (await venue<InjectedFault[]>('GET', '/faults')).some(({ struck }) => struck > 0) || undefined
    await eventually(isStruck, 'the stop-loss has read its shares')
    const sale = { outcome_id: outcomeOf(market), side: 'SELL', price: '0.9', size: text(whole(bought)) }
    await executed(ada, '/predmkt/order', sale)
    const values = [await userOf(ada), market.condition_id]
    const ended = `select count(*) from task where user_id = $1 and kind = 'predmkt_exit' and status = 'failed'
      and id in (select exit_task_id from prediction_exit where market_id = $2)`
    await eventually(async () => (await countOf(ended, values)) > 0 || undefined, 'its task has ended')
    const signed = `select count(*) from prediction_order where user_id = $1 and market_id = $2 and leg = 'sl'`
    assert.equal(await countOf(signed, values), 0)
    await executed(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
  })
})
