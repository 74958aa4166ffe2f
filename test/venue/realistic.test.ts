import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { accountRecords, startReconciler } from './reconcilers.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** Reads lag and are blind at times, replies are lost, streams drop: every result agrees with the venue. */

const users = 4
const rounds = 4

describe('a venue with all deviations of the real one', () => {
  let app: VenueApp
  let its: ReturnType<typeof accountRecords>
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp({
      uncounted: 'a reconciler that polls every 400 ms spends a hundred times its budget',
    })
    its = accountRecords(app)
    parts.use(startReconciler(app, app.main, { settleMs: 3_000 }))
    for (const [coin, price] of Object.entries({ BTC: 100_000, ETH: 3_000 })) await app.price(coin, price)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const said: { user: User; end: TaskAnswer }[] = []
  const run = async (user: User, name: string, input: object): Promise<TaskAnswer> => {
    const begun = await app.call(name, input, user)
    const end = begun.completed_at
      ? begun
      : ((await app.waitForEnd(user, begun.task_id)) as unknown as TaskAnswer)
    said.push({ user, end })
    return end
  }
  const done = async (user: User, name: string, input: object): Promise<TaskAnswer> => {
    const end = await run(user, name, input)
    assert.equal(end.outcome, 'executed', `${name}: ${JSON.stringify(end)}`)
    return end
  }

  /**
   * A read may still show dollars that the previous purchase has spent: then the venue rejects, and nothing is
   * transferred.
   */
  const bought = async (user: User): Promise<TaskAnswer> => {
    for (let attempt = 1; ; attempt += 1) {
      const end = await run(user, 'spot_venue_buy', { asset: 'HYPE', notional_usdc: '30' })
      if (end.outcome === 'executed') return end
      const why = [end.outcome, end.error?.code]
      assert.deepEqual(why, ['not_executed', 'insufficient_balance'], JSON.stringify(end))
      assert.ok(attempt < 5, 'the dollars were not transferred')
    }
  }

  const trade = async (user: User): Promise<void> => {
    const bracket = { tp_price: '120000', sl_price: '80000' }
    for (let round = 0; round < rounds; round += 1) {
      const opened = await done(user, 'perp_open', { asset: 'BTC', side: 'long', size: '0.01', ...bracket })
      assert.deepEqual(
        opened.result.legs.map(({ role, status }) => [role, status]),
        [
          ['entry', 'filled'],
          ['tp', 'open'],
          ['sl', 'open'],
        ],
      )
      const limit = { order_type: 'limit', limit_price: '90000', size: '0.01', ...bracket }
      const resting = await done(user, 'perp_open', { asset: 'BTC', side: 'long', ...limit })
      assert.equal(resting.result.order_status, 'resting')
      const { order_id } = resting.result
      const cancelled = await done(user, 'perp_cancel', { order_id })
      assert.equal(cancelled.result.order_id, order_id)
      await bought(user)
    }
  }

  test('no bracket is destroyed, every outcome is true, and no account is frozen', async () => {
    const all = await Promise.all(Array.from({ length: users }, () => app.trader()))
    const lost = { effect: 'dropReply', endpoint: 'exchange', rate: 0.15, seed: 5 }
    await app.market.control('POST', '/faults', lost)
    await Promise.all(all.map(trade))
    await app.market.control('DELETE', '/faults', {})
    for (const user of all) {
      const { orders, fills, positions } = await app.venueState(user)
      const own = said.filter((each) => each.user === user).map(({ end }) => end)
      for (const { result } of own) {
        if (!result?.cloid) continue
        const found = orders.filter(({ cloid }) => cloid === result.cloid)
        // The venue may or may not list an order that it rejected.
        if (result.order_status === 'rejected') assert.ok(found.every(({ status }) => status !== 'open'))
        else assert.equal(found.length, 1, JSON.stringify(result))
        const filled = fills.filter(({ cloid }) => cloid === result.cloid)
        const sum = filled.reduce((total, { sz }) => total + Number(sz), 0)
        assert.ok(Math.abs(sum - Number(result.filled_size)) < 1e-9, JSON.stringify(result))
      }
      const openExits = orders.filter(({ status }) => status === 'open')
      assert.equal(openExits.length, 2 * rounds, 'every exit is open')
      assert.equal(positions.length, 1)
      const closed = await done(user, 'perp_close', { asset: 'BTC' })
      assert.equal(Number(closed.result.filled_size).toFixed(2), (0.01 * rounds).toFixed(2))
      await its.waitForMatch(user)
    }
    const flags = await its.sql(`select body from user_event where type = 'security.flagged'`)
    assert.deepEqual(flags, [])
    const { conservation } = await app.market.control<{ conservation: { perp: string } }>('GET', '/effects')
    assert.equal(conservation.perp, '0.0')
  })
})
