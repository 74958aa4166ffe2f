import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { creditAtVenue } from '../harness/venue-gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** Every read of an account has a fixed lag: the recent tasks of the user count all the same. */

const lagMs = 800
/** Longer than any test. */
const forEver = 600_000

describe('requests right after an order', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ quiet: 'each test sets the lag of each read itself' })
  })
  beforeEach(async () => {
    await lags(0)
    await app.market.control('DELETE', '/faults', {})
    for (const [coin, price] of Object.entries({ BTC: 100_000, '@1': 40 })) await app.price(coin, price)
  })
  after(() => app?.[Symbol.asyncDispose]())

  const lags = (ms: number) =>
    app.market.control('POST', '/realism', { preset: 'quiet', clearinghouseLag: ms, spotLag: ms })
  const open = async (user: User, size = '0.01', more: object = {}): Promise<TaskAnswer> => {
    const done = await app.call('perp_open', { asset: 'BTC', side: 'long', size, leverage: 5, ...more }, user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    return done
  }

  test('a close covers all of a position that was just opened and enlarged', async () => {
    const user = await app.trader()
    await lags(lagMs)
    await open(user)
    await open(user)
    const closed = await app.call('perp_close', { asset: 'BTC' }, user)
    assert.deepEqual(
      [closed.outcome, closed.result?.filled_size],
      ['executed', '0.02'],
      JSON.stringify(closed),
    )
    assert.deepEqual((await app.venueState(user)).positions, [])
  })

  test('a second close finds no position', async () => {
    const user = await app.trader()
    await lags(lagMs)
    await open(user)
    await app.call('perp_close', { asset: 'BTC' }, user)
    await assert.rejects(app.call('perp_close', { asset: 'BTC' }, user), { code: 'no_position' })
    assert.equal((await app.venueState(user)).orders.length, 2)
  })

  test('exits are set on a position that was just opened', async () => {
    const user = await app.trader()
    await lags(lagMs)
    await open(user)
    const set = await app.call('perp_tp_sl', { asset: 'BTC', sl_price: '90000' }, user)
    assert.equal(set.outcome, 'executed', JSON.stringify(set))
  })

  test('a position that no read shows yet is temporarily unavailable, and never missing', async () => {
    const user = await app.trader()
    await lags(forEver)
    await open(user)
    const later = { code: 'unavailable', extras: { retry_after: 1 } }
    await assert.rejects(app.call('perp_close', { asset: 'BTC' }, user), later)
    await assert.rejects(app.call('perp_tp_sl', { asset: 'BTC', sl_price: '90000' }, user), later)
    const less = { asset: 'BTC', side: 'short', size: '0.01', reduce_only: true }
    await assert.rejects(app.call('perp_open', less, user), later)
  })

  test('a position that its stop has closed since is missing', async () => {
    const user = await app.trader()
    await open(user, '0.01', { sl_price: '95000' })
    await app.price('BTC', 94_000)
    await eventually(
      async () => ((await app.venueState(user)).positions.length === 0 ? true : undefined),
      'the stop has closed the position',
    )
    await assert.rejects(app.call('perp_close', { asset: 'BTC' }, user), { code: 'no_position' })
  })

  test('margin that a close has freed opens the next position', async () => {
    const user = await app.trader('250')
    await open(user)
    await lags(lagMs)
    await app.call('perp_close', { asset: 'BTC' }, user)
    await open(user)
  })

  test('a holding that was just bought is sold, and gets its exits', async () => {
    const user = await app.trader()
    await app.credit(user, '200', 'USDC')
    await lags(lagMs)
    const bought = await app.call('spot_venue_buy', { asset: 'HYPE', size: '2' }, user)
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    const set = await app.call('spot_venue_tp_sl', { asset: 'HYPE', size: '1.99', sl_price: '30' }, user)
    assert.equal(set.outcome, 'executed', JSON.stringify(set))
    const sold = await app.call('spot_venue_sell', { asset: 'HYPE', size: '1.99' }, user)
    assert.equal(sold.outcome, 'executed', JSON.stringify(sold))
  })

  describe('money that a task has just spent', () => {
    const buy = (user: User, size: string, more: object = {}) =>
      app.call('spot_venue_buy', { asset: 'HYPE', size, ...more }, user)
    const bought = async (user: User, size: string, more: object = {}): Promise<TaskAnswer> => {
      const done = await buy(user, size, more)
      assert.equal(done.outcome, 'executed', JSON.stringify(done))
      return done
    }
    /** Nearly all dollars are on the spot side. */
    const spotTrader = async (amount: string) => {
      const user = await app.trader('1')
      await app.credit(user, amount, 'USDC')
      return user
    }
    const later = { code: 'unavailable', extras: { retry_after: 1 } }

    test('is not available for the next purchase', async () => {
      const user = await spotTrader('100')
      await lags(lagMs)
      await bought(user, '1.5')
      await assert.rejects(buy(user, '1.5'), { code: 'insufficient_balance' })
      await bought(user, '0.5')
    })

    test('makes a purchase temporarily unavailable where no read shows the previous one', async () => {
      const user = await spotTrader('100')
      await lags(forEver)
      await bought(user, '1.5')
      await assert.rejects(buy(user, '1.5'), later)
      await bought(user, '0.5')
    })

    test('makes a purchase temporarily unavailable where an open order holds it', async () => {
      const user = await spotTrader('100')
      await lags(forEver)
      await bought(user, '1.5', { order_type: 'limit', limit_price: '38' })
      await assert.rejects(buy(user, '1.5'), later)
    })

    test('is transferred from the perpetual side', async () => {
      const user = await app.trader('150')
      await lags(lagMs)
      await bought(user, '1')
      const again = await bought(user, '1')
      assert.ok(Number(again.result.moved_from_perp_usd) > 39, JSON.stringify(again.result))
    })

    test('is not transferred to the other side', async () => {
      const user = await app.trader('100')
      await lags(forEver)
      await bought(user, '1.5')
      await assert.rejects(open(user, '0.004'), later)
      // A withdrawal is never rejected for spends that a read may not show: the venue rejects an excessive amount.
      const home = await app.call('perp_withdraw', { amount_usd: '90' }, user)
      assert.deepEqual([home.status, home.outcome], ['failed', 'not_executed'], JSON.stringify(home))
    })

    test('is not sold twice', async () => {
      const user = await spotTrader('200')
      await bought(user, '2')
      await app.catchUp()
      await lags(lagMs)
      const sell = (size?: string) =>
        app.call('spot_venue_sell', { asset: 'HYPE', ...(size && { size }) }, user)
      assert.equal((await sell('1')).outcome, 'executed')
      await assert.rejects(sell('1.5'), { code: 'insufficient_balance' })
      const rest = await sell()
      assert.deepEqual([rest.outcome, rest.result?.filled_size], ['executed', '0.99'], JSON.stringify(rest))
    })
  })

  describe('a stop whose price is reached before any balance shows', () => {
    const executedSale = (user: User) =>
      eventually(
        async () => {
          const listed = { skip: 0, limit: 50, kind: 'spot_trigger' }
          const { tasks } = await app.main.taskEngine.tasks.list(user.id, listed)
          return tasks.find(({ outcome }) => outcome === 'executed')?.result as TaskAnswer['result']
        },
        'the stop has sold',
        20_000,
      )
    const spot = async (user: User, name: string, input: object): Promise<TaskAnswer> => {
      const done = await app.call(`spot_venue_${name}`, input, user)
      assert.equal(done.outcome, 'executed', JSON.stringify(done))
      return done
    }
    const holder = async () => {
      const user = await app.trader()
      await app.credit(user, '2', 'HYPE')
      return user
    }

    test('the purchase still sells', async () => {
      const user = await app.trader()
      await app.credit(user, '200', 'USDC')
      await lags(2_500)
      await spot(user, 'buy', { asset: 'HYPE', size: '2', sl_price: '35' })
      await app.price('@1', 34)
      await executedSale(user)
    })

    test('a sale sells what the sale has left', async () => {
      const user = await holder()
      await spot(user, 'tp_sl', { asset: 'HYPE', size: '2', sl_price: '35' })
      await lags(2_500)
      await spot(user, 'sell', { asset: 'HYPE', size: '0.5' })
      await app.price('@1', 34)
      assert.equal((await executedSale(user)).filled_size, '1.5')
    })

    test('a sale is not refused for the size that the balance had before', async () => {
      const user = await holder()
      await spot(user, 'tp_sl', { asset: 'HYPE', size: '2', sl_price: '35' })
      await lags(lagMs)
      await spot(user, 'sell', { asset: 'HYPE', size: '0.5' })
      await app.price('@1', 34)
      assert.equal((await executedSale(user)).filled_size, '1.5')
      const { orders } = await app.venueState(user)
      assert.deepEqual(
        orders.map(({ status }) => status),
        ['filled', 'filled'],
      )
    })

    for (const size of [undefined, '2'])
      for (const resting of ['1', '2'])
        test(`the end of a resting sale of ${resting} sells what that has held, of ${size ?? 'all'}`, async () => {
          const user = await holder()
          await spot(user, 'tp_sl', { asset: 'HYPE', ...(size && { size }), sl_price: '35' })
          const limit = { asset: 'HYPE', size: resting, order_type: 'limit', limit_price: '50' }
          const { result } = await spot(user, 'sell', limit)
          await app.catchUp()
          await lags(2_500)
          await spot(user, 'cancel', { order_id: result.order_id })
          await app.price('@1', 34)
          assert.equal((await executedSale(user)).filled_size, '2')
        })

    test('a purchase sells that too, where all is to be sold', async () => {
      const user = await holder()
      await app.credit(user, '200', 'USDC')
      await spot(user, 'tp_sl', { asset: 'HYPE', sl_price: '35' })
      await lags(2_500)
      await spot(user, 'buy', { asset: 'HYPE', size: '1' })
      await app.price('@1', 34)
      assert.equal((await executedSale(user)).filled_size, '2.99')
    })
  })

  test('a set-up right after a credit approves the key', async () => {
    const user = await app.addUser()
    await lags(lagMs)
    await creditAtVenue(app.market.control, { evm: user.evm, amount: '100' })
    const done = await app.call('perp_setup', {}, user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
  })

  test('a set-up waits until the venue answers again', async () => {
    const user = await app.addUser()
    await app.credit(user, '100', 'USDC')
    // Requested by the task, and not by its admission.
    const fault = { endpoint: 'info', type: 'spotClearinghouseState', effect: 'status', status: 429 }
    await app.market.control('POST', '/faults', { ...fault, count: 9 })
    const { task_id } = await app.call('perp_setup', {}, user, { wait: false })
    const end = await eventually(
      async () => {
        const task = await app.main.taskEngine.tasks.find(user.id, task_id)
        return task.completed_at ? task : undefined
      },
      'the end of the set-up',
      60_000,
    )
    assert.equal(end.outcome, 'executed', JSON.stringify(end.error))
  })
})
