import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { createVenueApp, type VenueApp } from './venue-app.ts'

const actions = 1_000
const abreast = 48

/** Runs `abreast` at once, and the next one as soon as one ends. */
async function each<T>(count: number, run: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async () => {
    for (let at = next++; at < count; at = next++) results[at] = await run(at)
  }
  await Promise.all(Array.from({ length: abreast }, worker))
  return results
}

describe('nonces of one signer', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({
      uncounted: 'a thousand orders in a minute exceed the request limit of an address',
    })
  })
  after(() => app?.[Symbol.asyncDispose]())

  test('a thousand actions of one signer over two instances have a thousand nonces, and none is rejected', async () => {
    const user = await app.trader('100000')
    const other = await app.instance()
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
    // At least one more, for the leverage set by the first task.
    assert.ok(rows.length >= actions)
    assert.equal(new Set(rows.map(({ nonce }) => nonce)).size, rows.length)
    assert.equal(new Set(rows.map(({ signer }) => signer)).size, 1)
    const { orders } = await app.venueState(user)
    assert.equal(orders.length, actions)
    assert.equal(new Set(orders.map(({ cloid }) => cloid)).size, actions)
  })

  test('a nonce is never behind the clock, even if the counter is, and never used twice where the counter is ahead', async () => {
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
