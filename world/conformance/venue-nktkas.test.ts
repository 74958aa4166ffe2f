import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  ExchangeClient,
  HttpTransport,
  InfoClient,
  SubscriptionClient,
  WebSocketTransport,
} from '@nktkas/hyperliquid'
import { schemaErrors } from './venue/schemas.ts'
import { errorOf, newCloid, type Trader, traderAt } from './venue/trader.ts'
import { accountOf, eventually, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue

before(async () => {
  venue = await startVenue(['--tick-ms', '500'])
  for (const [coin, price] of [
    ['BTC', 100_000],
    ['ETH', 3_000],
    ['SOL', 150],
    ['HPOS', 0.07],
    ['PURR/USDC', 0.2],
    ['@1', 40],
  ] as const)
    await venue.control('POST', '/price', { coin, price })
})
after(() => venue?.close())

const gtc = { limit: { tif: 'Gtc' } } as const
const ioc = { limit: { tif: 'Ioc' } } as const
const alo = { limit: { tif: 'Alo' } } as const
const market = { limit: { tif: 'FrontendMarket' } } as const
const when = (triggerPx: string, tpsl: 'tp' | 'sl', isMarket = true) => ({
  trigger: { isMarket, triggerPx, tpsl },
})

type Wire = Parameters<ExchangeClient['order']>[0]['orders'][number]
type Status = Awaited<ReturnType<ExchangeClient['order']>>['response']['data']['statuses'][number]

const place = async ({ exchange }: Trader, ...orders: Wire[]): Promise<Status[]> => {
  const reply = await exchange.order({ orders, grouping: 'na' })
  assert.deepEqual(schemaErrors('OrderResponse', reply, 'exchange'), [])
  return reply.response.data.statuses
}

const restingOid = (status: Status | undefined): number => {
  assert.ok(typeof status === 'object' && 'resting' in status, JSON.stringify(status))
  return status.resting.oid
}

const filledOf = (status: Status | undefined) => {
  assert.ok(typeof status === 'object' && 'filled' in status, JSON.stringify(status))
  return status.filled
}

const positionOf = async ({ info, user }: Trader, coin: string) =>
  (await info.clearinghouseState({ user })).assetPositions.find(({ position }) => position.coin === coin)
    ?.position

const statusOf = async ({ info, user }: Trader, oid: number | `0x${string}`): Promise<string> => {
  const reply = await info.orderStatus({ user, oid })
  return reply.status === 'order' ? reply.order.status : reply.status
}

test('a limit order rests, is listed, and is cancelled by order id and by client id', async () => {
  const trader = await traderAt(venue, 1)
  const cloid = newCloid()
  const statuses = await place(
    trader,
    { a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc },
    { a: 0, b: true, p: '90001', s: '0.01', r: false, t: alo, c: cloid },
  )
  const [first] = statuses
  const open = await trader.info.openOrders({ user: trader.user })
  assert.deepEqual(open.map(({ limitPx }) => limitPx).sort(), ['90000.0', '90001.0'])
  await trader.exchange.cancel({ cancels: [{ a: 0, o: restingOid(first) }] })
  await trader.exchange.cancelByCloid({ cancels: [{ asset: 0, cloid }] })
  assert.equal(await statusOf(trader, cloid), 'canceled')
  assert.deepEqual(await trader.info.openOrders({ user: trader.user }), [])
})

test('a market order fills against the market maker and pays the taker fee', async () => {
  const trader = await traderAt(venue, 2)
  const [status] = await place(trader, { a: 0, b: true, p: '101000', s: '0.1', r: false, t: ioc })
  const filled = filledOf(status)
  assert.equal(filled.totalSz, '0.1')
  const [fill] = await trader.info.userFills({ user: trader.user })
  assert.equal(fill?.dir, 'Open Long')
  assert.equal(fill?.crossed, true)
  const value = 0.1 * Number(fill?.px)
  assert.ok(Math.abs(Number(fill?.fee) - value * 0.00045) < 0.000_002)
  const position = await positionOf(trader, 'BTC')
  assert.equal(position?.szi, '0.1')
  assert.equal(position?.entryPx, filled.avgPx)
})

test('every rejection has the text of the venue, and the order is stored with its reason', async () => {
  const trader = await traderAt(venue, 3, '1000')
  const order = (over: Partial<Wire>): Wire => ({
    a: 0,
    b: true,
    p: '90000',
    s: '0.01',
    r: false,
    t: gtc,
    ...over,
  })
  const refused = async (over: Partial<Wire>) => {
    const c = newCloid()
    const sentence = await errorOf(place(trader, order({ ...over, c })))
    return [sentence, await statusOf(trader, c)]
  }
  assert.deepEqual(await refused({ p: '90000.1' }), [
    'Price must be divisible by tick size. asset=0',
    'tickRejected',
  ])
  assert.deepEqual(await refused({ s: '0.0001' }), [
    'Order must have minimum value of $10. asset=0',
    'minTradeNtlRejected',
  ])
  assert.deepEqual(await refused({ p: '99000', s: '5' }), [
    'Insufficient margin to place order. asset=0',
    'perpMarginRejected',
  ])
  assert.deepEqual(await refused({ r: true }), [
    'Reduce only order would increase position. asset=0',
    'reduceOnlyRejected',
  ])
  assert.deepEqual(await refused({ p: '100500', t: alo }), [
    'Post only order would have immediately matched, bbo was 99992@100008. asset=0',
    'badAloPxRejected',
  ])
  assert.deepEqual(await refused({ t: ioc }), [
    'Order could not immediately match against any resting orders. asset=0',
    'iocCancelRejected',
  ])
  assert.deepEqual(await refused({ t: market }), [
    'No liquidity available for market order. asset=0',
    'marketOrderNoLiquidityRejected',
  ])
  assert.deepEqual(await refused({ t: when('99000', 'sl') }), [
    'Invalid TP/SL price. asset=0',
    'badTriggerPxRejected',
  ])
  assert.deepEqual(await refused({ p: '19999' }), [
    'Order price cannot be more than 80% away from the reference price asset=0',
    'oracleRejected',
  ])
  assert.deepEqual(await refused({ s: '0' }), ['Order has zero size. asset=0', 'unknownOid'])
  assert.deepEqual(await refused({ s: '0.0100001' }), ['Order has invalid size. asset=0', 'unknownOid'])
  assert.deepEqual(await refused({ a: 10_000, p: '0.2', s: '100' }), [
    'Insufficient spot balance asset=10000',
    'insufficientSpotBalanceRejected',
  ])
  assert.deepEqual(await refused({ a: 11, p: '0.37', s: '100' }), ['Trading is halted. asset=11', 'rejected'])
  assert.equal(await errorOf(trader.exchange.cancel({ cancels: [{ a: 1, o: 5 }] })), neverPlaced(1))
  assert.equal(
    await errorOf(trader.exchange.order({ orders: [], grouping: 'na' })),
    'Batch of orders is empty.',
  )
})

const neverPlaced = (asset: number) => `Order was never placed, already canceled, or filled. asset=${asset}`

test('a batch answers per order: one rejected, one resting, one filled', async () => {
  const trader = await traderAt(venue, 4)
  const sentences = await errorOf(
    place(
      trader,
      { a: 0, b: true, p: '90000.1', s: '0.01', r: false, t: gtc },
      { a: 1, b: true, p: '2000', s: '0.1', r: false, t: gtc },
      { a: 2, b: true, p: '151', s: '1', r: false, t: ioc },
    ),
  )
  assert.equal(sentences, 'Price must be divisible by tick size. asset=0 | ok | ok')
  assert.equal((await trader.info.openOrders({ user: trader.user })).length, 1)
  assert.equal((await positionOf(trader, 'SOL'))?.szi, '1.0')
})

test('a cancel with the wrong asset does not find the order', async () => {
  const trader = await traderAt(venue, 5)
  const [status] = await place(trader, { a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc })
  const o = restingOid(status)
  assert.equal(await errorOf(trader.exchange.cancel({ cancels: [{ a: 1, o }] })), neverPlaced(1))
  assert.equal(await statusOf(trader, o), 'open')
})

test('modify moves an order to a new id; an ended order cannot be modified', async () => {
  const trader = await traderAt(venue, 6)
  const cloid = newCloid()
  const [status] = await place(trader, { a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc, c: cloid })
  const oid = restingOid(status)
  const order = { a: 0, b: true, p: '91000', s: '0.02', r: false, t: gtc } as const
  const reply = await trader.exchange.modify({ oid, order: { ...order, c: cloid } })
  assert.deepEqual(schemaErrors('ModifyResponse', reply, 'exchange'), [])
  const [open] = await trader.info.frontendOpenOrders({ user: trader.user })
  assert.equal(open?.limitPx, '91000.0')
  assert.equal(open?.cloid, cloid)
  assert.equal(
    await errorOf(trader.exchange.modify({ oid, order })),
    'Cannot modify canceled or filled order',
  )
  const batch = await trader.exchange.batchModify({
    modifies: [{ oid: cloid, order: { ...order, p: '92000' } }],
  })
  restingOid(batch.response.data.statuses[0])
  assert.deepEqual(
    (await trader.info.openOrders({ user: trader.user })).map(({ limitPx }) => limitPx),
    ['92000.0'],
  )
})

test('the bracket of a filled market order waits for the mark, and the stop closes the position once', async () => {
  const trader = await traderAt(venue, 7)
  await trader.exchange.updateLeverage({ asset: 1, isCross: true, leverage: 2 })
  const reply = await trader.exchange.order({
    orders: [
      { a: 1, b: true, p: '3030', s: '1', r: false, t: ioc },
      { a: 1, b: false, p: '3200', s: '1', r: true, t: when('3300', 'tp') },
      { a: 1, b: false, p: '2600', s: '1', r: true, t: when('2900', 'sl') },
    ],
    grouping: 'normalTpsl',
  })
  const [entry, ...legs] = reply.response.data.statuses
  filledOf(entry)
  assert.deepEqual(legs, ['waitingForTrigger', 'waitingForTrigger'])
  await venue.control('POST', '/price', { coin: 'ETH', price: 2_880 })
  assert.equal(await positionOf(trader, 'ETH'), undefined)
  const fills = await trader.info.userFills({ user: trader.user })
  assert.deepEqual(
    fills.map(({ dir }) => dir),
    ['Close Long', 'Open Long'],
  )
  const history = await trader.info.historicalOrders({ user: trader.user })
  assert.deepEqual(
    history.map(({ order, status }) => [order.orderType, status]),
    [
      ['Stop Market', 'filled'],
      ['Take Profit Market', 'siblingFilledCanceled'],
      ['Limit', 'filled'],
    ],
  )
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
})

test('the bracket of a resting order waits for its fill and ends with it', async () => {
  const trader = await traderAt(venue, 8)
  const bracket = async (p: string) => {
    const reply = await trader.exchange.order({
      orders: [
        { a: 2, b: true, p, s: '5', r: false, t: gtc },
        { a: 2, b: false, p: '170', s: '5', r: true, t: when('180', 'tp', false) },
        { a: 2, b: false, p: '100', s: '5', r: true, t: when('110', 'sl') },
      ],
      grouping: 'normalTpsl',
    })
    assert.deepEqual(reply.response.data.statuses.slice(1), ['waitingForFill', 'waitingForFill'])
    return restingOid(reply.response.data.statuses[0])
  }
  const cancelled = await bracket('120')
  const [open] = await trader.info.frontendOpenOrders({ user: trader.user })
  assert.equal(open?.children.length, 2)
  await trader.exchange.cancel({ cancels: [{ a: 2, o: cancelled }] })
  assert.deepEqual(await trader.info.frontendOpenOrders({ user: trader.user }), [])
  const filled = await bracket('140')
  await venue.control('POST', '/price', { coin: 'SOL', price: 139 })
  assert.equal(await statusOf(trader, filled), 'filled')
  const armed = await trader.info.frontendOpenOrders({ user: trader.user })
  assert.deepEqual(armed.map(({ triggerCondition }) => triggerCondition).sort(), [
    'Price above 180',
    'Price below 110',
  ])
  await venue.control('POST', '/price', { coin: 'SOL', price: 181 })
  assert.equal(await positionOf(trader, 'SOL'), undefined)
  assert.deepEqual(await trader.info.frontendOpenOrders({ user: trader.user }), [])
  await venue.control('POST', '/price', { coin: 'SOL', price: 150 })
})

test('position-wide stops follow the position and end when it is closed', async () => {
  const trader = await traderAt(venue, 9)
  await place(trader, { a: 2, b: false, p: '140', s: '4', r: false, t: ioc })
  const pair = [
    { a: 2, b: true, p: '150', s: '0', r: true, t: when('130', 'tp') },
    { a: 2, b: true, p: '190', s: '0', r: true, t: when('170', 'sl') },
  ] as const
  await trader.exchange.order({ orders: [...pair], grouping: 'positionTpsl' })
  await place(trader, { a: 2, b: false, p: '140', s: '2', r: false, t: ioc })
  await venue.control('POST', '/price', { coin: 'SOL', price: 171 })
  assert.equal(await positionOf(trader, 'SOL'), undefined)
  const [closing] = await trader.info.userFills({ user: trader.user })
  assert.equal(closing?.sz, '6.0')
  await venue.control('POST', '/price', { coin: 'SOL', price: 150 })
  await place(trader, { a: 2, b: false, p: '140', s: '4', r: false, t: ioc })
  await trader.exchange.order({ orders: [...pair], grouping: 'positionTpsl' })
  await place(trader, { a: 2, b: true, p: '160', s: '9', r: true, t: ioc })
  assert.equal(await positionOf(trader, 'SOL'), undefined)
  assert.deepEqual(await trader.info.openOrders({ user: trader.user }), [])
})

test('invalid groups reject the whole request', async () => {
  const trader = await traderAt(venue, 10)
  const entry: Wire = { a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc }
  const child: Wire = { a: 0, b: false, p: '110000', s: '0.01', r: true, t: when('110000', 'tp') }
  const group = (grouping: 'normalTpsl' | 'positionTpsl', ...orders: Wire[]) =>
    errorOf(trader.exchange.order({ orders, grouping }))
  assert.equal(await group('normalTpsl', entry), 'Unexpected number of trigger orders')
  assert.equal(await group('normalTpsl', entry, child, child, child), 'Unexpected number of trigger orders')
  assert.equal(await group('positionTpsl', entry, child), 'Unexpected number of trigger orders')
  assert.equal(await group('normalTpsl', entry, { ...child, r: false }), 'TP/SL orders must be reduce only.')
  assert.deepEqual(await trader.info.historicalOrders({ user: trader.user }), [])
})

test('reduce-only is capped at the position and older reduce-only orders are cancelled', async () => {
  const trader = await traderAt(venue, 11)
  await place(trader, { a: 0, b: true, p: '101000', s: '0.02', r: false, t: ioc })
  const [old] = await place(trader, { a: 0, b: false, p: '105000', s: '0.02', r: true, t: gtc })
  const [fresh] = await place(trader, { a: 0, b: false, p: '104000', s: '0.05', r: true, t: gtc })
  assert.equal(await statusOf(trader, restingOid(old)), 'reduceOnlyCanceled')
  const reply = await trader.info.orderStatus({ user: trader.user, oid: restingOid(fresh) })
  assert.equal(reply.status === 'order' && reply.order.order.sz, '0.02')
  const [closed] = await place(trader, { a: 0, b: false, p: '99000', s: '1', r: true, t: ioc })
  assert.equal(filledOf(closed).totalSz, '0.02')
  assert.equal(await statusOf(trader, restingOid(fresh)), 'reduceOnlyCanceled')
})

test('two orders of one account never trade with each other', async () => {
  const trader = await traderAt(venue, 12)
  const [bid] = await place(trader, { a: 0, b: true, p: '100000', s: '0.01', r: false, t: alo })
  const [ask] = await place(trader, { a: 0, b: false, p: '100000', s: '0.02', r: false, t: gtc })
  assert.equal(await statusOf(trader, restingOid(bid)), 'selfTradeCanceled')
  assert.equal(await positionOf(trader, 'BTC'), undefined)
  await trader.exchange.cancel({ cancels: [{ a: 0, o: restingOid(ask) }] })
})

test('two accounts trade with each other at the price of the resting order', async () => {
  const maker = await traderAt(venue, 13)
  const taker = await traderAt(venue, 14)
  const [rested] = await place(maker, { a: 0, b: false, p: '100001', s: '0.05', r: false, t: alo })
  const [taken] = await place(taker, { a: 0, b: true, p: '100500', s: '0.05', r: false, t: ioc })
  assert.equal(filledOf(taken).avgPx, '100001.0')
  assert.equal(await statusOf(maker, restingOid(rested)), 'filled')
  const [mine] = await maker.info.userFills({ user: maker.user })
  const [theirs] = await taker.info.userFills({ user: taker.user })
  assert.equal(mine?.tid, theirs?.tid)
  assert.deepEqual([mine?.crossed, theirs?.crossed], [false, true])
  assert.equal(mine?.fee, '0.750008')
})

test('leverage, margin mode and isolated margin follow the rules', async () => {
  const trader = await traderAt(venue, 15)
  const { exchange, user } = trader
  assert.equal(
    await errorOf(exchange.updateLeverage({ asset: 0, isCross: true, leverage: 41 })),
    'Invalid leverage value',
  )
  assert.equal(
    await errorOf(exchange.updateLeverage({ asset: 10, isCross: true, leverage: 2 })),
    'Cross margin is not allowed for this asset.',
  )
  await exchange.updateLeverage({ asset: 1, isCross: false, leverage: 4 })
  await place(trader, { a: 1, b: true, p: '3010', s: '2', r: false, t: ioc })
  assert.equal(
    await errorOf(exchange.updateLeverage({ asset: 1, isCross: true, leverage: 4 })),
    'Cannot switch leverage type with open position.',
  )
  const before = await positionOf(trader, 'ETH')
  assert.equal(before?.leverage.type, 'isolated')
  await exchange.updateIsolatedMargin({ asset: 1, isBuy: true, ntli: 250_000_000 })
  const margin = Number((await positionOf(trader, 'ETH'))?.marginUsed) - Number(before?.marginUsed)
  assert.ok(Math.abs(margin - 250) < 1e-6)
  assert.equal(
    await errorOf(exchange.updateIsolatedMargin({ asset: 1, isBuy: true, ntli: -2_000_000_000 })),
    'Position does not have sufficient margin for reduction.',
  )
  const data = await trader.info.activeAssetData({ user, coin: 'ETH' })
  assert.equal(data.leverage.type, 'isolated')
})

test('agents trade for their master, reads go to the master, and replaced agents are never valid again', async () => {
  const master = await traderAt(venue, 16)
  const agent = await traderAt(venue, 1_016, '0')
  const order: Wire = { a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc }
  const unknown = `User or API Wallet ${agent.user} does not exist.`
  assert.equal(await errorOf(place(agent, order)), unknown)
  await master.exchange.approveAgent({ agentAddress: agent.user, agentName: 'desk' })
  assert.deepEqual(await master.info.userRole({ user: agent.user }), {
    role: 'agent',
    data: { user: master.user },
  })
  const [listed] = await master.info.extraAgents({ user: master.user })
  assert.equal(listed?.address, agent.user)
  await place(agent, order)
  assert.equal((await master.info.openOrders({ user: master.user })).length, 1)
  assert.deepEqual(await agent.info.openOrders({ user: agent.user }), [])
  assert.equal(
    await errorOf(agent.exchange.withdraw3({ destination: agent.user, amount: '10' })),
    `Must deposit before performing actions. User: ${agent.user}`,
  )
  const second = accountOf(2_016).address.toLowerCase() as `0x${string}`
  await master.exchange.approveAgent({ agentAddress: second, agentName: 'desk' })
  assert.equal(await errorOf(place(agent, order)), unknown)
  assert.equal(
    await errorOf(master.exchange.approveAgent({ agentAddress: agent.user, agentName: 'desk' })),
    'Extra agent already used.',
  )
})

test('an agent ends with its expiry', async () => {
  const master = await traderAt(venue, 17)
  const agent = await traderAt(venue, 1_017, '0')
  const { nowMs } = await venue.control<{ nowMs: number }>('GET', '/effects')
  await master.exchange.approveAgent({
    agentAddress: agent.user,
    agentName: `short valid_until ${nowMs + 3_600_000}`,
  })
  await agent.exchange.noop({ nonce: Date.now() })
  await venue.control('POST', '/agents/expire', { address: agent.user })
  assert.equal(
    await errorOf(agent.exchange.noop({ nonce: Date.now() })),
    `User or API Wallet ${agent.user} does not exist.`,
  )
  assert.deepEqual(await master.info.extraAgents({ user: master.user }), [])
  assert.equal(
    await errorOf(master.exchange.approveAgent({ agentAddress: agent.user, agentName: 'x valid_until 1' })),
    'Agent valid_until already expired.',
  )
})

test('a nonce is valid once, an old one never, and an expired action not at all', async () => {
  const trader = await traderAt(venue, 18)
  const nonce = Date.now()
  await trader.exchange.noop({ nonce })
  assert.equal(await errorOf(trader.exchange.noop({ nonce })), `Invalid nonce: duplicate nonce ${nonce}`)
  assert.match(await errorOf(trader.exchange.noop({ nonce: nonce - 2 * 86_400_000 })), /^Invalid nonce/)
  assert.match(await errorOf(trader.exchange.noop({ nonce: nonce + 86_500_000 })), /^Invalid nonce/)
  for (let i = 1; i <= 100; i += 1) await trader.exchange.noop({ nonce: nonce + i })
  assert.match(await errorOf(trader.exchange.noop({ nonce: nonce - 1 })), /lower than the smallest/)
  const order: Wire = { a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc }
  const expired = trader.exchange.order({ orders: [order], grouping: 'na' }, { expiresAfter: Date.now() - 1 })
  assert.equal(await errorOf(expired), 'Action already expired')
  await trader.exchange.order({ orders: [order], grouping: 'na' }, { expiresAfter: Date.now() + 60_000 })
  assert.equal((await trader.info.openOrders({ user: trader.user })).length, 1)
})

test('transfers between perp, spot and accounts conserve all money', async () => {
  const trader = await traderAt(venue, 19, '1000')
  const other = await traderAt(venue, 20, '10')
  await trader.exchange.usdClassTransfer({ amount: '400.5', toPerp: false })
  await trader.exchange.usdClassTransfer({ amount: '0.5', toPerp: true })
  await trader.exchange.usdSend({ destination: other.user, amount: '100' })
  await trader.exchange.withdraw3({ destination: trader.user, amount: '50' })
  assert.equal((await trader.info.clearinghouseState({ user: trader.user })).withdrawable, '450.0')
  const { balances } = await trader.info.spotClearinghouseState({ user: trader.user })
  assert.equal(balances[0]?.total, '400.0')
  assert.equal((await other.info.clearinghouseState({ user: other.user })).withdrawable, '110.0')
  const ledger = await trader.info.userNonFundingLedgerUpdates({ user: trader.user, startTime: 0 })
  const withdrawal = ledger.find(({ delta }) => delta.type === 'withdraw')?.delta
  assert.deepEqual(withdrawal?.type === 'withdraw' && [withdrawal.usdc, withdrawal.fee], ['49.0', '1.0'])
  assert.equal(
    await errorOf(trader.exchange.withdraw3({ destination: trader.user, amount: '5000' })),
    'Insufficient balance for withdrawal',
  )
})

test('spot buys and sells have balances, holds and fees in the right token', async () => {
  const trader = await traderAt(venue, 21, '1000')
  const balance = async (coin: string) =>
    (await trader.info.spotClearinghouseState({ user: trader.user })).balances.find(
      (row) => row.coin === coin,
    )
  await trader.exchange.usdClassTransfer({ amount: '500', toPerp: false })
  const [bought] = await place(trader, { a: 10_001, b: true, p: '41', s: '5', r: false, t: ioc })
  assert.equal(filledOf(bought).totalSz, '5.0')
  const [fill] = await trader.info.userFills({ user: trader.user })
  assert.deepEqual([fill?.coin, fill?.feeToken, fill?.fee, fill?.dir], ['@1', 'HYPE', '0.0035', 'Buy'])
  assert.equal((await balance('HYPE'))?.total, '4.9965')
  const [rested] = await place(trader, { a: 10_001, b: false, p: '60', s: '2', r: false, t: gtc })
  assert.equal((await balance('HYPE'))?.hold, '2.0')
  assert.equal(
    await errorOf(place(trader, { a: 10_001, b: false, p: '60', s: '3', r: false, t: gtc })),
    'Insufficient spot balance asset=10001',
  )
  await trader.exchange.cancel({ cancels: [{ a: 10_001, o: restingOid(rested) }] })
  assert.equal((await balance('HYPE'))?.hold, '0.0')
  await place(trader, { a: 10_001, b: false, p: '39', s: '4.99', r: false, t: ioc })
  assert.equal((await balance('HYPE'))?.total, '0.0065')
  await trader.exchange.order({
    orders: [{ a: 10_001, b: true, p: '30', s: '1', r: false, t: gtc }],
    grouping: 'na',
  })
  assert.equal((await balance('USDC'))?.hold, '30.0')
})

test('a builder is paid the approved fee and no more', async () => {
  const trader = await traderAt(venue, 22)
  const builder = accountOf(3_022).address.toLowerCase() as `0x${string}`
  const order: Wire = { a: 0, b: true, p: '101000', s: '0.01', r: false, t: ioc }
  const send = (f: number) =>
    trader.exchange.order({ orders: [order], grouping: 'na', builder: { b: builder, f } })
  assert.equal(await errorOf(send(10)), 'Builder fee has not been approved.')
  await trader.exchange.approveBuilderFee({ builder, maxFeeRate: '0.01%' })
  assert.equal(await trader.info.maxBuilderFee({ user: trader.user, builder }), 10)
  await send(10)
  const [fill] = await trader.info.userFills({ user: trader.user })
  assert.equal(fill?.builderFee, '0.100008')
  assert.equal((await trader.info.referral({ user: builder })).builderRewards, '0.100008')
})

test('a scheduled cancel cancels everything at its time', async () => {
  const trader = await traderAt(venue, 23)
  const [status] = await place(trader, { a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc })
  assert.match(await errorOf(trader.exchange.scheduleCancel({ time: Date.now() })), /too early/)
  const { nowMs } = await venue.control<{ nowMs: number }>('GET', '/effects')
  await trader.exchange.scheduleCancel({ time: nowMs + 60_000 })
  await venue.control('POST', '/advance', { ms: 61_000 })
  assert.equal(await statusOf(trader, restingOid(status)), 'scheduledCancel')
})

test('funding is paid every hour and listed for both sides', async () => {
  const trader = await traderAt(venue, 24)
  await place(trader, { a: 0, b: true, p: '101000', s: '0.1', r: false, t: ioc })
  await venue.control('POST', '/advance', { ms: 3_600_000 })
  const [paid] = await trader.info.userFunding({ user: trader.user, startTime: 0 })
  // The list begins at its start and ends after 500 hours.
  const startTime = (paid?.time ?? 0) - 60_000
  const rates = await trader.info.fundingHistory({ coin: 'BTC', startTime })
  assert.equal(paid?.delta.szi, '0.1')
  assert.equal(paid?.delta.fundingRate, rates.at(-1)?.fundingRate)
  const expected = -0.1 * 100_000 * Number(paid?.delta.fundingRate)
  assert.ok(Math.abs(Number(paid?.delta.usdc) - expected) < 0.000_001)
  const position = await positionOf(trader, 'BTC')
  assert.equal(Number(position?.cumFunding.sinceOpen), -Number(paid?.delta.usdc))
})

test('candles, trades and books of every market can be read', async () => {
  const transport = new HttpTransport({ apiUrl: venue.url, rpcUrl: venue.url })
  const info = new InfoClient({ transport })
  const [meta, contexts] = await info.metaAndAssetCtxs()
  assert.equal(meta.universe.length, contexts.length)
  for (const interval of ['1m', '15m', '1h', '4h', '1d', '1w'] as const) {
    const candles = await info.candleSnapshot({ coin: 'BTC', interval, startTime: 0 })
    assert.ok(candles.length > 20, `${candles.length} candles of ${interval}`)
    candles.forEach((candle, i) => {
      const before = candles[i - 1]
      assert.ok(!before || before.T + 1 === candle.t, `${interval}: a gap at ${candle.t}`)
      assert.ok(Number(candle.l) <= Math.min(Number(candle.o), Number(candle.c)))
      assert.ok(Number(candle.h) >= Math.max(Number(candle.o), Number(candle.c)))
    })
  }
  for (const { name, isDelisted } of meta.universe) {
    const book = await info.l2Book({ coin: name })
    assert.equal((book?.levels[0].length ?? 0) > 5, isDelisted !== true)
  }
})

test('the same client works over its socket: posts and subscriptions', async () => {
  const trader = await traderAt(venue, 25)
  const transport = new WebSocketTransport({ url: venue.wsUrl, isTestnet: false })
  const exchange = new ExchangeClient({ transport, wallet: trader.wallet })
  const info = new InfoClient({ transport })
  const subscription = new SubscriptionClient({ transport })
  const statuses: string[] = []
  const fills: string[] = []
  const books: number[] = []
  await subscription.orderUpdates({ user: trader.user }, (events) => {
    for (const { status } of events) statuses.push(status)
  })
  await subscription.userFills({ user: trader.user }, ({ fills: list }) => {
    for (const { dir } of list) fills.push(dir)
  })
  const watched = await subscription.l2Book({ coin: 'BTC' }, ({ levels }) => books.push(levels[0].length))
  await exchange.order({
    orders: [{ a: 0, b: true, p: '90000', s: '0.01', r: false, t: gtc }],
    grouping: 'na',
  })
  await exchange.order({
    orders: [{ a: 0, b: true, p: '101000', s: '0.01', r: false, t: ioc }],
    grouping: 'na',
  })
  assert.equal((await info.openOrders({ user: trader.user })).length, 1)
  await eventually(
    'both updates',
    () => (statuses.length >= 2 && fills.length >= 1 && books.length >= 2) || undefined,
  )
  assert.deepEqual(statuses, ['open', 'filled'])
  assert.deepEqual(fills, ['Open Long'])
  await watched.unsubscribe()
  await transport.close()
})

test('after all of this the totals are conserved', async () => {
  const { conservation } = await venue.control<{
    conservation: { perp: string; spot: Record<string, string>; open: Record<string, number> }
  }>('GET', '/effects')
  assert.equal(conservation.perp, '0.0')
  assert.deepEqual([...new Set(Object.values(conservation.spot))], ['0.0'])
  assert.deepEqual([...new Set(Object.values(conservation.open))], [0])
})
