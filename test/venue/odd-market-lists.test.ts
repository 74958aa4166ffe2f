import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

/** A reply with the list of markets whose records do not parse. */

const asText = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asText)
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, asText(each)]))
}
const listTypes = ['metaAndAssetCtxs', 'spotMetaAndAssetCtxs']

describe('market lists that do not parse', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ quiet: 'the test rewrites the lists of markets itself', lagging: true })
    await app.price('BTC', 100_000)
    await app.price('@1', 40)
  })
  after(() => app?.[Symbol.asyncDispose]())

  /** Views ask for prices of a few seconds, so that the lists are read again. */
  const readListsAgain = async (user: User) => {
    const earlier = listTypes.map((type) => app.lag.asked(type))
    await eventually(async () => {
      await app.call('perp_markets', {}, user).catch(() => undefined)
      await app.call('spot_venue_markets', {}, user).catch(() => undefined)
      return listTypes.every((type, at) => app.lag.asked(type) > earlier[at]!) || undefined
    }, 'both lists are read again')
  }

  for (const [what, rewrite] of [
    ['numbers are texts', (answer: unknown) => asText(answer)],
    ['the whole reply is another object', () => ({ error: 'internal' })],
    ['the lists are empty', () => [{ universe: [], tokens: [] }, []]],
  ] as const)
    test(`where ${what}, exits and held stops go on at once, and opens are refused for a while`, async () => {
      app.lag.set({})
      await app.price('@1', 40)
      const user = await app.trader()
      await app.credit(user, '1000', 'USDC')
      const opened = await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
      assert.equal(opened.outcome, 'executed', JSON.stringify(opened))
      const stop = { asset: 'HYPE', notional_usdc: '100', sl_price: '35' }
      const bought = await app.call('spot_venue_buy', stop, user)
      assert.equal(bought.outcome, 'executed', JSON.stringify(bought))

      app.lag.set({ rewrite: (type, answer) => (listTypes.includes(type) ? rewrite(answer) : answer) })
      await readListsAgain(user)
      const assertOpensRefused = () =>
        assert.rejects(
          app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user),
          (fault: { code?: string; retryable?: boolean }) => fault.retryable === true,
        )
      await assertOpensRefused()
      const closed = await app.call('perp_close', { asset: 'BTC' }, user)
      assert.equal(closed.outcome, 'executed', JSON.stringify(closed))
      await app.price('@1', 30)
      await eventually(async () => {
        const { rows } = await app.database.pool.query<{ status: string }>(
          'select status from trigger_order where user_id = $1',
          [user.id],
        )
        return rows.every(({ status }) => status !== 'armed') || undefined
      }, 'the stop fires')
      await eventually(async () => {
        const { spot } = await app.venueState(user)
        return Number(spot.HYPE?.total ?? 0) < 0.1 || undefined
      }, 'the stop sells')
      // The lists were unreadable all the time.
      await assertOpensRefused()

      app.lag.set({})
      await app.price('@1', 40)
      const isAccepted = (name: string, body: object) => () =>
        app.call(name, body, user).then(
          ({ outcome }) => outcome === 'executed' || undefined,
          () => undefined,
        )
      const again = { asset: 'BTC', side: 'long', size: '0.01' }
      await eventually(isAccepted('perp_open', again), 'the perp list is readable again', 20_000)
      const bid = { asset: 'HYPE', notional_usdc: '20' }
      await eventually(isAccepted('spot_venue_buy', bid), 'the spot list is readable again', 20_000)
    })

  test('a market that may be hidden by a skipped record is not called unknown', async () => {
    app.lag.set({ rewrite: (type, answer) => (listTypes.includes(type) ? asText(answer) : answer) })
    await using instance = await app.instance()
    const user = await app.trader()
    await assert.rejects(
      instance.call('perp_close', { asset: 'BTC' }, user),
      (fault: { code?: string; retryable?: boolean }) =>
        fault.code === 'unavailable' && fault.retryable === true,
    )
    app.lag.set({})
  })
})
