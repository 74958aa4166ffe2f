import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { accountRecords, startReconciler } from './reconcilers.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** Lists with records of other clients and of unknown forms, and numbers with the error of a float. */

type Row = Record<string, unknown>
const stranger = `0x${'9'.repeat(40)}`

/** An answer of the real venue: a transfer without a nonce. */
const strangeTransfer = (user: string) => ({
  time: 1_760_000_000_000,
  hash: `0x${'7'.repeat(64)}`,
  delta: {
    type: 'spotTransfer',
    token: 'JEFF',
    amount: '0.0',
    usdcValue: '0.0',
    user: stranger,
    fee: '0.0',
    destination: user,
    nativeTokenFee: '0.0',
    nonce: null,
    feeToken: '',
  },
})
const strangers: Readonly<Record<string, Row[]>> = {
  userNonFundingLedgerUpdates: [
    { time: 1_760_000_000_001, hash: `0x${'8'.repeat(64)}`, delta: { type: 'gossipPriorityBid', usdc: 7 } },
    { time: 'yesterday', delta: null },
  ],
  userFillsByTime: [{ coin: 'BTC', px: 'much', sz: '1' }],
  userFills: [{ coin: 'BTC', px: null }],
  frontendOpenOrders: [{ coin: 'BTC', children: [{}], oid: 'seven' }],
  userFunding: [{ time: 1_760_000_000_002, delta: { coin: 'BTC' } }],
  extraAgents: [{ address: stranger }],
}
const positions = [{ position: { coin: 'xyz:GOLD', szi: 'one' } }]
const balances = [{ coin: 'JEFF', total: null }]

const asFloat = (text: string): string => {
  const printed = String(Number(text) * (1 + 2 ** -52))
  return printed.includes('e') ? text : printed
}

const disturbed = (type: string, answer: unknown): unknown => {
  if (type === 'clearinghouseState') {
    const { assetPositions, ...rest } = answer as Row & { assetPositions: Row[] }
    return { ...rest, assetPositions: [...positions, ...assetPositions] }
  }
  if (type === 'spotClearinghouseState')
    return { balances: [...balances, ...(answer as { balances: Row[] }).balances] }
  if (type === 'allMids') return { ...(answer as Row), 'xyz:GOLD': null }
  const more = strangers[type]
  if (!more) return answer
  const list = [...more, ...(answer as Row[])]
  if (type !== 'userNonFundingLedgerUpdates') return list
  return [strangeTransfer(stranger), ...list].map((record) => {
    const delta = record.delta as Row | null
    return typeof delta?.usdc === 'string'
      ? { ...record, delta: { ...delta, usdc: asFloat(delta.usdc) } }
      : record
  })
}

describe('unknown records', () => {
  let app: VenueApp
  let its: ReturnType<typeof accountRecords>
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp({ quiet: 'each test rewrites the answers of the venue itself', lagging: true })
    its = accountRecords(app)
    parts.use(startReconciler(app, app.main))
  })
  beforeEach(async () => {
    app.lag.set({ rewrite: disturbed })
    await app.price('BTC', 100_000)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const open = (user: User, more: object = {}): Promise<TaskAnswer> =>
    app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01', ...more }, user)

  test('funding, trading, a purchase and a withdrawal work beside them, and the account stays open', async () => {
    const user = await app.addUser()
    await app.fundWallet(user, '5000')
    const steps: [string, object][] = [
      ['perp_fund', { amount: '3000000001' }],
      ['perp_setup', {}],
      ['perp_open', { asset: 'BTC', side: 'long', size: '0.01', tp_price: '120000', sl_price: '80000' }],
      ['spot_venue_buy', { asset: 'HYPE', notional_usdc: '50' }],
      ['perp_close', { asset: 'BTC' }],
      ['perp_withdraw', { amount_usd: '100' }],
    ]
    for (const [name, input] of steps) {
      const done = await app.call(name, input, user)
      assert.equal(done.outcome, 'executed', `${name}: ${JSON.stringify(done)}`)
    }
    await its.waitForMatch(user)
    const { orders, positions: held } = await app.call('perp_orders', {}, user)
    assert.deepEqual([orders, held], [[], []])
    // Oldest first, or a truncated page would lose the oldest fills.
    assert.equal(app.lag.latest('userFillsByTime')?.reversed, false)
  })

  test('an account that never funded through this gateway is read from its beginning', async () => {
    const user = await app.trader()
    assert.equal((await open(user)).outcome, 'executed')
    await its.waitForBaseline(user)
    await its.waitForMatch(user)
    const filled = await eventually(async () => {
      const found = await its.events(user, 'order.filled')
      return found.length > 0 ? found : undefined
    }, 'the fill before the baseline')
    assert.equal(filled[0]?.leg, 'entry')
  })

  describe('of an account itself', () => {
    const later = { code: 'unavailable' }
    /** Sizes of a position or a balance with these names cannot be parsed. */
    const illegible =
      (names: readonly string[]) =>
      (type: string, answer: unknown): unknown => {
        if (type === 'clearinghouseState') {
          const { assetPositions, ...rest } = answer as Row & { assetPositions: { position: Row }[] }
          const hidden = assetPositions.map(({ position }) => ({
            position: names.includes(String(position.coin)) ? { ...position, szi: null } : position,
          }))
          return { ...rest, assetPositions: hidden }
        }
        if (type !== 'spotClearinghouseState') return answer
        const shown = (answer as { balances: Row[] }).balances
        return {
          balances: shown.map((each) => (names.includes(String(each.coin)) ? { ...each, total: {} } : each)),
        }
      }

    test('a position of unknown size is neither zero nor closed', async () => {
      const user = await app.trader()
      await open(user)
      await its.waitForMatch(user)
      app.lag.set({ rewrite: illegible(['BTC']) })
      await assert.rejects(app.call('perp_close', { asset: 'BTC' }, user), later)
      await assert.rejects(open(user, { side: 'short', reduce_only: true }), later)
      await assert.rejects(app.call('perp_close', { asset: 'ETH' }, user), { code: 'no_position' })
      await its.waitForMatch(user)
      app.lag.set({})
      assert.equal((await app.call('perp_close', { asset: 'BTC' }, user)).outcome, 'executed')
      await its.waitForMatch(user)
    })

    test('a balance of unknown size is neither zero nor missing', async () => {
      const user = await app.trader()
      const bought = await app.call('spot_venue_buy', { asset: 'HYPE', notional_usdc: '50' }, user)
      assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
      await its.waitForMatch(user)
      app.lag.set({ rewrite: illegible(['HYPE', 'USDC']) })
      await assert.rejects(app.call('spot_venue_sell', { asset: 'HYPE' }, user), later)
      await assert.rejects(app.call('spot_venue_buy', { asset: 'HYPE', notional_usdc: '20' }, user), later)
      await its.waitForMatch(user)
      app.lag.set({})
      assert.equal((await app.call('spot_venue_sell', { asset: 'HYPE' }, user)).outcome, 'executed')
      await its.waitForMatch(user)
    })
  })
})
