import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

type Setup = TaskAnswer & { api_wallet_expires_at: string; api_wallet_renews_at: string }
const dayMs = 86_400_000

describe('renewal of trading keys', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp()
    await app.price('BTC', 100_000)
    await app.price('@1', 40)
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  const status = async (user: User) => (await app.call('perp_setup_status', {}, user)) as Setup
  const expireAt = (user: User, at: Date) =>
    query(
      app.database.pool,
      'update agent_wallet set expires_at = $2 where user_id = $1 and retired_at is null',
      [user.id, at],
    )

  test('a key that expires within two weeks is replaced automatically, with an event', async () => {
    const [soon, late] = await Promise.all([app.trader(), app.trader()])
    const [before, other] = await Promise.all([status(soon), status(late)])
    assert.ok(new Date(before.api_wallet_renews_at) < new Date(before.api_wallet_expires_at))
    await expireAt(soon, new Date(Date.now() + 10 * dayMs))
    assert.equal(await app.main.renewal.sweep(), 1, 'the key of one user is due')
    const renewed = await eventually(async () => {
      const now = await status(soon)
      return now.api_wallet_address === before.api_wallet_address ? undefined : now
    }, 'a new key')
    assert.equal(renewed.setup_complete, true)
    assert.ok(Date.parse(renewed.api_wallet_expires_at) - Date.now() > 80 * dayMs)
    assert.equal((await status(late)).api_wallet_address, other.api_wallet_address)
    const events = await query<{ body: { api_wallet_address: string } }>(
      app.database.pool,
      `select body from user_event where user_id = $1 and type = 'venue.key_renewed'`,
      [soon.id],
    )
    assert.equal(events.length, 1)
    const opened = await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.001' }, soon)
    assert.equal(opened.outcome, 'executed', JSON.stringify(opened))
  })

  test('a stop that fires under an expired key gets a new key and sells', async () => {
    const user = await app.trader()
    await app.credit(user, '500', 'USDC')
    const bought = await app.call('spot_venue_buy', { asset: 'HYPE', size: '1', sl_price: '35' }, user)
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    const { api_wallet_address: address } = await status(user)
    await app.market.control('POST', '/agents/expire', { address })
    await expireAt(user, new Date(Date.now() - 1_000))
    await app.price('@1', 34)
    await eventually(
      async () => {
        const { spot } = await app.venueState(user)
        return Number(spot[2]?.total ?? '0') < 0.02 ? true : undefined
      },
      'the stop has sold',
      20_000,
    )
    assert.notEqual((await status(user)).api_wallet_address, address)
  })
})
