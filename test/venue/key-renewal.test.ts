import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

type Setup = TaskAnswer & { api_wallet_expires_at: string; api_wallet_renews_at: string }
const dayMs = 86_400_000
/** Renewals per round. */
const batchMax = 50

describe('renewal of trading keys', () => {
  let app: VenueApp
  before(async () => {
    // On a busy machine the reply to an approval can be lost: it has no expiry, and is looked up for so long.
    app = await createVenueApp({ graceMs: 2_000 })
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
    await eventually(async () => {
      const { spot } = await app.venueState(user)
      return Number(spot[2]?.total ?? '0') < 0.02 ? true : undefined
    }, 'the stop has sold')
    assert.notEqual((await status(user)).api_wallet_address, address)
  })

  test('accounts without funds, whose keys the venue does not approve, delay no renewal', async () => {
    const user = await app.trader()
    const before = await status(user)
    await expireAt(user, new Date(Date.now() + 10 * dayMs))
    const withoutFunds = await Promise.all(Array.from({ length: batchMax }, () => app.addUser()))
    for (const { id } of withoutFunds)
      await query(
        app.database.pool,
        `insert into agent_wallet (id, user_id, venue, address, ciphertext, wrapped_dek, kek_id, version, created_at,
           approved_at, expires_at, is_registered)
         select gen_random_uuid(), $2::uuid, venue, '0x' || substr(md5(gen_random_uuid()::text) || md5(gen_random_uuid()::text), 1, 40), ciphertext, wrapped_dek, kek_id, version,
           created_at, key.approved_at, key.expires_at, true
         from agent_wallet cross join lateral (values (created_at, $3::timestamptz), (null, null)) as key (approved_at, expires_at)
         where user_id = $1 and retired_at is null`,
        [user.id, id, new Date(Date.now() - dayMs)],
      )
    await app.main.renewal.sweep()
    await eventually(
      async () => (await status(user)).api_wallet_address !== before.api_wallet_address || undefined,
      'a new key',
    )
    const tried = await eventually(
      async () => {
        const rows = await query<{ outcome: string; ended: boolean }>(
          app.database.pool,
          `select outcome, completed_at is not null as ended from task where kind = 'venue_key_renewal' and user_id = any($1)`,
          [withoutFunds.map(({ id }) => id)],
        )
        return rows.length > 0 && rows.every(({ ended }) => ended) ? rows : undefined
      },
      'the other renewals end',
      180_000,
    )
    assert.deepEqual([...new Set(tried.map(({ outcome }) => outcome))], ['partial'])
    const events = await query<{ user_id: string }>(
      app.database.pool,
      `select user_id from user_event where type = 'venue.key_renewed' and user_id = any($1)`,
      [withoutFunds.map(({ id }) => id)],
    )
    assert.deepEqual(events, [], 'no key is reported as renewed that is not')
  })
})
