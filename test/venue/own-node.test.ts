import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

/** The operator's own node answers reads of accounts; where it fails, exits go on with the venue's service. */

type Row = Record<string, unknown>

describe('an own node', () => {
  let app: VenueApp
  let user: User
  before(async () => {
    app = await createVenueApp({ ownNode: true, quiet: 'the test decides which of the two services answers' })
    await app.price('BTC', 100_000)
    user = await app.trader()
  })
  beforeEach(() => app.lag.set({}))
  after(() => app?.[Symbol.asyncDispose]())

  const openAndClose = async (failing: () => void) => {
    const opened = await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
    assert.equal(opened.outcome, 'executed', JSON.stringify(opened))
    failing()
    const closed = await app.call('perp_close', { asset: 'BTC' }, user)
    assert.equal(closed.outcome, 'executed', JSON.stringify(closed))
    assert.deepEqual((await app.venueState(user)).positions, [])
  }

  test('a node that follows the venue answers reads of the account', async () => {
    await openAndClose(() => {})
    assert.ok(app.lag.asked('clearinghouseState') > 0)
  })

  test('a position is closed while the node answers with a page', () =>
    openAndClose(() => app.lag.set({ body: () => '<html><h1>Just a moment</h1></html>' })))

  test('a position is closed while the node stands still in a state before it', () =>
    openAndClose(() =>
      app.lag.set({
        rewrite(type, answer) {
          if (type !== 'clearinghouseState') return answer
          const { time, ...state } = answer as Row
          return { ...state, assetPositions: [], time: Number(time) - 60_000 }
        },
      }),
    ))
})
