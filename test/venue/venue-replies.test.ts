import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { testFunding } from '../harness/conservation.ts'
import { eventually } from '../harness/gateway.ts'
import { accountRecords, startReconciler } from './reconcilers.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** Answers that the real venue gives, or may give at any time, and that the local one does not give by itself. */

type Row = Record<string, unknown>
const usdcToken = 'USDC:0x6d1e7cde53ba9467b783cb7c530ce054'
type Status = { status: string; order?: { order: Row; status: string } }

const orderOf = (answer: unknown): Row | undefined => (answer as Status).order?.order

describe('answers of the real venue', () => {
  let app: VenueApp
  let its: ReturnType<typeof accountRecords>
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp({ quiet: 'each test rewrites the answers of the venue itself', lagging: true })
    its = accountRecords(app)
  })
  beforeEach(async () => {
    app.lag.set({})
    await app.market.control('DELETE', '/faults', {})
    await app.price('BTC', 100_000)
    await app.price('HYPE', 40)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const finished = async (user: User, begun: TaskAnswer): Promise<TaskAnswer> =>
    begun.completed_at ? begun : ((await app.waitForEnd(user, begun.task_id)) as unknown as TaskAnswer)
  const positionOf = async (user: User) => (await app.call('perp_orders', {}, user)).positions[0]
  /** More than the best level of the book holds, at the price of that level. */
  const tooLarge = async () => {
    const { px, sz } = (await app.book('HYPE')).levels[1]![0]!
    const size = String(Math.ceil(Number(sz)) + 20)
    return { asset: 'HYPE', side: 'long', size, order_type: 'limit', limit_price: px, leverage: 5 }
  }

  describe('the status of an order keeps the size of its opening', () => {
    const asOpened = (type: string, answer: unknown): unknown => {
      const order = type === 'orderStatus' ? orderOf(answer) : undefined
      if (order) order.sz = order.origSz
      return answer
    }

    test('a partially filled and then cancelled order is reported with its fills, although its reply was lost', async () => {
      const user = await app.trader('400000')
      const order = await tooLarge()
      app.lag.set({ rewrite: asOpened })
      await app.market.control('POST', '/faults', {
        endpoint: 'exchange',
        type: 'order',
        effect: 'dropReply',
        count: 1,
      })
      const done = await finished(user, await app.call('perp_open', { ...order, tif: 'ioc' }, user))
      assert.deepEqual([done.status, done.outcome], ['completed', 'partial'], JSON.stringify(done))
      assert.equal((await positionOf(user))?.size, done.result.filled_size)
    })
  })

  test('an order whose reply contains only the filled part still rests with the remainder', async () => {
    const user = await app.trader('400000')
    const order = await tooLarge()
    let isRewritten = false
    app.lag.set({
      rewriteReply(action, reply) {
        const { data } = reply.response as { data?: { statuses?: Row[] } }
        const first = data?.statuses?.[0]
        const resting = first?.resting as { oid: number } | undefined
        if (action.type !== 'order' || !resting) return reply
        isRewritten = true
        const statuses = [{ filled: { totalSz: '1', avgPx: order.limit_price, oid: resting.oid } }]
        return { status: 'ok', response: { type: 'order', data: { statuses } } }
      },
    })
    const done = await finished(user, await app.call('perp_open', order, user))
    assert.ok(isRewritten)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    // The market maker may have returned to its price and filled the remainder, too.
    if (done.result.order_status !== 'resting') assert.equal(done.result.filled_size, order.size)
  })

  test('fills are found although the clock of the account is ahead of that of the fills', async () => {
    const user = await app.trader()
    await app.credit(user, '1000', 'USDC')
    app.lag.set({
      rewrite: (type, answer) =>
        type === 'clearinghouseState'
          ? { ...(answer as Row), time: Number((answer as Row).time) + 700 }
          : answer,
    })
    const acts: [string, object][] = [
      ['perp_open', { asset: 'BTC', side: 'long', size: '0.01' }],
      ['perp_close', { asset: 'BTC' }],
      ['spot_venue_buy', { asset: 'HYPE', notional_usdc: '50' }],
      ['spot_venue_sell', { asset: 'HYPE' }],
    ]
    for (const [name, input] of acts) {
      const done = await app.call(name, input, user, { timeoutMs: 8_000 })
      assert.equal(done.outcome, 'executed', `${name}: ${JSON.stringify(done)}`)
    }
  })

  test('an action may still land while the clock of the account is ahead of the blocks', async () => {
    const user = await app.trader()
    // Admitted by the true clock, and confirmed by one that is a minute ahead.
    let isAhead = false
    app.lag.set({
      rewrite: (type, answer) =>
        type === 'clearinghouseState' && isAhead
          ? { ...(answer as Row), time: Number((answer as Row).time) + 60_000 }
          : answer,
    })
    // The gateway stops waiting for the reply, and the venue accepts the order later.
    const late = { endpoint: 'exchange', type: 'order', effect: 'latency', latencyMs: 8_000, count: 1 }
    await app.market.control('POST', '/faults', late)
    const begun = await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user, {
      wait: false,
    })
    isAhead = true
    const done = await finished(user, begun)
    await eventually(
      async () => ((await app.venueState(user)).fills.length > 0 ? true : undefined),
      'the order landed',
    )
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
  })

  test('a withdrawal arrives and is booked with the fee that the venue charged', async () => {
    const user = await app.trader('500')
    await app.market.control('POST', '/settings', { withdrawalFeeUsd: 3 })
    try {
      const done = await finished(user, await app.call('perp_withdraw', { amount_usd: '100' }, user))
      const { amount_usd, fee_usd } = done.result
      assert.deepEqual([done.outcome, amount_usd, fee_usd], ['executed', '97', '3'], JSON.stringify(done))
    } finally {
      await app.market.control('POST', '/settings', { withdrawalFeeUsd: 1 })
    }
  })

  test('an account whose perpetuals of other deployers share its dollars keeps them on the perpetuals side', async () => {
    app.lag.set({
      rewrite: (type, answer) => (type === 'userAbstraction' ? 'dexAbstraction' : answer),
    })
    const user = await app.trader('500')
    await app.credit(user, '100', 'USDC')
    const status = await app.call('perp_setup_status', {}, user)
    assert.equal((status as unknown as { withdrawable_usd: string }).withdrawable_usd, '500')
    const done = await finished(user, await app.call('perp_withdraw', { amount_usd: '550' }, user))
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
  })

  test('an account of an unknown mode is read and closed, and its money is not transferred', async () => {
    app.lag.set({
      rewrite: (type, answer) => (type === 'userAbstraction' ? 'pooledAccount' : answer),
    })
    const user = await app.trader('500')
    await app.credit(user, '100', 'USDC')
    await app.fundWallet(user, '100')
    const refused = {
      code: 'upstream_changed',
      message: /pooledAccount/,
      extras: { account_mode: 'pooledAccount' },
    }
    const executed = async (name: string, input: object) => {
      const done = await finished(user, await app.call(name, input, user))
      assert.equal(done.outcome, 'executed', JSON.stringify(done))
    }
    const open = { asset: 'BTC', side: 'long', leverage: 5 }
    await executed('perp_open', { ...open, size: '0.01' })
    await app.catchUp()
    await assert.rejects(app.call('perp_open', { ...open, size: '0.02' }, user), refused)
    await assert.rejects(app.call('spot_venue_buy', { asset: 'HYPE', size: '5' }, user), refused)
    await assert.rejects(app.call('perp_fund', { amount_usd: '50' }, user), refused)
    // The free balance of its side can be withdrawn all the same.
    await executed('perp_withdraw', { amount_usd: '50' })
    await app.catchUp()
    await assert.rejects(app.call('perp_withdraw', { amount_usd: '320' }, user), refused)
    const status = await app.call('perp_setup_status', {}, user)
    assert.equal((status as unknown as { account_mode: string }).account_mode, 'other')
    assert.equal((await positionOf(user))?.size, '0.01')
    await executed('perp_close', { asset: 'BTC' })
  })

  describe('actions of others on an account', () => {
    before(() => {
      parts.use(startReconciler(app, app.main, { followedUsersMax: 0, balancesFreeze: false }))
    })
    const stranger = `0x${'1'.repeat(40)}` as const

    test('a sent asset freezes the account, also where its form does not name the balance that it changed', async () => {
      const user = await app.trader()
      await its.waitForMatch(user)
      await (await its.ownerClient(user)).sendAsset({
        destination: stranger,
        sourceDex: '',
        destinationDex: '',
        token: usdcToken,
        amount: '5',
      })
      testFunding.add(user, { asset: 'venue:USDC', units: -500_000_000n, why: 'sent with a stolen key' })
      const { reason } = await its.waitForFrozen(user)
      assert.match(reason ?? '', /money left the account by a send that this gateway did not sign/)
    })

    test('a transfer to a new address, which costs a fee, freezes the account', async () => {
      const user = await app.trader()
      await app.credit(user, '100', 'USDC')
      await its.waitForMatch(user)
      app.lag.set({
        rewrite: (type, answer) =>
          type === 'userNonFundingLedgerUpdates'
            ? (answer as { delta: Row }[]).map((update) =>
                update.delta.type === 'spotTransfer'
                  ? { ...update, delta: { ...update.delta, fee: '1.0', feeToken: 'USDC' } }
                  : update,
              )
            : answer,
      })
      await (await its.ownerClient(user)).spotSend({ destination: stranger, token: usdcToken, amount: '5' })
      testFunding.add(user, { asset: 'venue:USDC', units: -500_000_000n, why: 'sent with a stolen key' })
      const { reason } = await its.waitForFrozen(user)
      assert.match(reason ?? '', /money left the account by a spotTransfer that this gateway did not sign/)
    })

    test('a liquidation order of the venue is not foreign', async () => {
      const user = await app.trader()
      await its.waitForMatch(user)
      app.lag.set({
        rewrite(type, answer) {
          const order = type === 'orderStatus' ? orderOf(answer) : undefined
          if (order && !order.cloid) order.tif = 'LiquidationMarket'
          return answer
        },
      })
      const order = {
        a: 0,
        b: true,
        p: '101000',
        s: '0.001',
        r: false,
        t: { limit: { tif: 'Ioc' as const } },
      }
      await (await its.ownerClient(user)).order({ orders: [order], grouping: 'na' })
      await its.waitForMatch(user)
      assert.equal((await its.fills(user)).length, 1)
    })
  })
})
