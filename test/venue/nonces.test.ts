import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { createVenueApp, type VenueApp } from './venue-app.ts'

const actions = 1_000
const abreast = 48

/** As many at once as `abreast`, each as soon as one before it is done. */
async function each<T>(count: number, run: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async () => {
    for (let at = next++; at < count; at = next++) results[at] = await run(at)
  }
  await Promise.all(Array.from({ length: abreast }, worker))
  return results
}

describe('numbers of one signer', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({
      uncounted: 'a thousand orders in a minute are more than an address may place',
    })
  })
  after(() => app?.[Symbol.asyncDispose]())

  test('a thousand actions of one signer over two instances carry a thousand numbers, and none is refused', async () => {
    const user = await app.trader('100000')
    const other = app.instance()
    await app.price('ETH', 3_000)
    const order = { asset: 'ETH', side: 'long', size: '0.01', order_type: 'limit', limit_price: '1500' }
    const ends = await each(actions, async (at) => {
      const instance = at % 2 === 0 ? app.main : other
      return instance.call('perp_open', order, user, { timeoutMs: 60_000 })
    })
    assert.deepEqual(
      ends.filter(({ outcome }) => outcome !== 'executed').map(({ error, state }) => error ?? state),
      [],
    )
    const rows = await query<{ nonce: bigint; signer: string }>(
      app.database.pool,
      `select c.nonce, c.signer from tx_attempt c join effect e on e.id = c.effect_id join task t on t.id = e.task_id
       where t.user_id = $1 and t.kind = 'perp_open' order by c.nonce`,
      [user.id],
    )
    // One more for the leverage of whichever task came first, at least.
    assert.ok(rows.length >= actions)
    assert.equal(new Set(rows.map(({ nonce }) => nonce)).size, rows.length)
    assert.equal(new Set(rows.map(({ signer }) => signer)).size, 1)
    const { orders } = await app.venueState(user)
    assert.equal(orders.length, actions)
    assert.equal(new Set(orders.map(({ cloid }) => cloid)).size, actions)
  })

  test('a number is never behind the clock, also where the counter is, and never taken twice where it is ahead', async () => {
    const user = await app.trader()
    const { api_wallet_address: agent } = await app.call('perp_setup_status', {}, user)
    const next = async () => {
      const rows = await query<{ next: bigint }>(
        app.database.pool,
        `select next from nonce_sequence where kind = 'hyperliquid' and signer = $1`,
        [agent!.toLowerCase()],
      )
      return rows[0]!.next
    }
    const set = (value: number) =>
      query(
        app.database.pool,
        `update nonce_sequence set next = $2 where kind = 'hyperliquid' and signer = $1`,
        [agent!.toLowerCase(), value],
      )
    const buy = () => app.call('perp_open', { asset: 'ETH', side: 'long', notional_usd: '20' }, user)
    const beganMs = Date.now()
    await buy()
    assert.ok(Number(await next()) > beganMs)
    await set(5)
    assert.equal((await buy()).outcome, 'executed')
    assert.ok(Number(await next()) > beganMs)
    const aheadMs = Date.now() + 600_000
    await set(aheadMs)
    assert.equal((await buy()).outcome, 'executed')
    assert.equal(Number(await next()), aheadMs + 1)
  })
})
