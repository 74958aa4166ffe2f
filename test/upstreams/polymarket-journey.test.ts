import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { createSecureClient, forkEnvironmentConfig, OrderSide } from '@polymarket/client'
import { signerFrom } from '@polymarket/client/viem'
import { createWalletClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { polygon } from 'viem/chains'
import type { MarketUpdate, UserUpdate } from '#kernel/money/prediction-venue.ts'
import {
  eventually,
  openAccount,
  pinnedMarket,
  predictionApp,
  readyAccount,
  relayCalls,
  settledTrades,
  signOrder,
  submit,
} from './prediction-app.ts'

/** One account trades through the adapter on every exchange of the local venue, from its key to its last dollar. */

const unit = 1_000_000n
const units = (usd: string) => BigInt(Math.round(Number(usd) * 1_000_000))

test('an account is set up step by step, without gas', async () => {
  const app = await predictionApp()
  const { venue, reader } = app
  const account = await openAccount(app, 3401)
  const { wallet, credentials, owner } = account
  assert.deepEqual(await venue.keys(credentials), [credentials.key])
  assert.deepEqual((await openAccount(app, 3401)).credentials, credentials)

  const { steps, relayer } = venue.setup!
  const read = (protocols: string[]) => steps(wallet, { hasKey: true, protocols, reader })
  const before = await read(['v1', 'v2'])
  assert.deepEqual(before.map(({ isDone }) => isDone).slice(0, 3), [true, false, false])
  assert.equal(before.length, 2 + 4 + 5 + 2 + 3)
  const created = await submit(app, relayer.createWalletBody(owner))
  assert.equal(created.state, 'confirmed')
  assert.match(created.txHash!, /^0x[0-9a-f]{64}$/)
  assert.notEqual(await reader.code(wallet.wallet), '0x')

  const approve = async (protocols: string[]) => {
    const missing = (await read(protocols)).filter(({ isDone }) => !isDone)
    const calls = missing.flatMap(({ act }) => (act.type === 'wallet_calls' ? act.calls : []))
    assert.equal((await relayCalls(app, account, calls)).state, 'confirmed')
    return missing.length
  }
  assert.equal(await approve(['v1']), 9)
  // A wallet that was set up for the first protocol lacks the permissions of the second.
  assert.equal(await approve(['v1', 'v2']), 5)
  assert.ok((await read(['v1', 'v2'])).every(({ isDone }) => isDone))
  const recent = await relayer.recent(owner)
  assert.deepEqual(
    recent.map(({ nonce, state, metadata }) => [nonce, state, metadata]),
    [
      [1n, 'confirmed', 'a test'],
      [0n, 'confirmed', 'a test'],
      [null, 'confirmed', null],
    ],
  )
})

for (const { slug, price, protocol, isNegRisk, tick } of [
  { slug: 'fed-cuts-rates-in-december', price: 0.62, protocol: 'v1', isNegRisk: false, tick: 10_000n },
  { slug: 'ben-summer-wins-the-mayoral-race', price: 0.35, protocol: 'v1', isNegRisk: true, tick: 10_000n },
  { slug: 'recession-declared-next-year', price: 0.125, protocol: 'v2', isNegRisk: false, tick: 1_000n },
  { slug: 'beta-is-the-largest-company', price: 0.31, protocol: 'v2', isNegRisk: true, tick: 10_000n },
])
  test(`an account buys, rests, cancels and sells on ${slug} of ${protocol}`, async () => {
    const app = await predictionApp()
    const { venue, balances } = app
    const account = await readyAccount(app, 3402)
    const { wallet, credentials } = account
    const market = await pinnedMarket(app, slug, price)
    const [yes] = market.outcomes
    assert.deepEqual([market.protocol, market.isNegRisk, market.tickMicros], [protocol, isNegRisk, tick])
    assert.deepEqual(await venue.market({ outcomeId: yes!.outcomeId }), market)
    assert.deepEqual(await venue.market({ marketId: market.marketId }), market)

    const { outcomeId } = yes!
    const quote = await venue.quote({ outcomeId, spend: { type: 'all_in', cashUnits: 20n * unit } })
    assert.ok(quote.isComplete && quote.allInUnits <= 20n * unit && quote.allInUnits > 19n * unit)
    const start = units((await balances(wallet.wallet)).pusd)
    const held = BigInt((await balances(wallet.wallet, [outcomeId])).shares[outcomeId] ?? 0)
    assert.equal(held, 0n)
    const bought = await signOrder(
      app,
      { account, market },
      {
        type: 'market',
        side: 'buy',
        cashUnits: quote.orderCashUnits,
        worstPriceMicros: quote.worstPriceMicros,
      },
    )
    const reply = await venue.postOrder(bought.body, credentials)
    assert.ok(reply.type === 'accepted', inspect(reply))
    assert.deepEqual([reply.orderId, reply.status], [bought.prepared.orderId, 'matched'])
    assert.ok(reply.limit && reply.limit.remaining !== null && reply.limit.tier === 'standard')
    const trades = await settledTrades(app, account, reply.orderId)
    const shares = trades.reduce((sum, trade) => sum + trade.sizeUnits, 0n)
    assert.deepEqual(
      trades.map(({ tradeId, role, side }) => [tradeId, role, side]),
      reply.tradeIds.map((id) => [id, 'taker', 'buy']),
    )
    // The book stood still, so that the receipt is the quote to the unit.
    assert.equal(shares, quote.sizeUnits)
    const after = await balances(wallet.wallet, [outcomeId])
    assert.equal(start - units(after.pusd), quote.allInUnits)
    assert.equal(units(after.shares[outcomeId]!), shares)

    const again = await venue.postOrder(bought.body, credentials)
    assert.deepEqual([again.type, 'message' in again && /Duplicated/.test(again.message)], ['unknown', true])
    assert.equal((await venue.order(reply.orderId, credentials))?.status, 'matched')

    const bid = { type: 'limit', side: 'buy', priceMicros: tick, sizeUnits: 10n * unit } as const
    const rested = await signOrder(app, { account, market }, bid, { postOnly: true })
    const placed = await venue.postOrder(rested.body, credentials)
    assert.ok(placed.type === 'accepted' && placed.status === 'live', inspect(placed))
    const [open] = await venue.openOrders({ marketId: market.marketId }, credentials)
    assert.ok(open)
    assert.deepEqual(
      [open.orderId, open.status, open.sizeUnits, open.matchedUnits, open.priceMicros, open.outcomeId],
      [rested.prepared.orderId, 'live', 10n * unit, 0n, tick, outcomeId],
    )
    const cancelled = await venue.cancelOrders([open.orderId], credentials)
    assert.ok(cancelled.type === 'answered')
    assert.deepEqual([cancelled.canceled, cancelled.notCanceled], [[open.orderId], {}])
    const twice = await venue.cancelOrders([open.orderId, open.orderId], credentials)
    assert.ok(twice.type === 'answered' && Object.keys(twice.notCanceled).length === 1)
    assert.equal((await venue.order(open.orderId, credentials))?.status, 'canceled')
    assert.deepEqual(await venue.openOrders({}, credentials), [])

    const whole = shares - (shares % 10_000n)
    const out = await venue.quote({ outcomeId, spend: { type: 'sell', sizeUnits: whole } })
    const sale = {
      type: 'market',
      side: 'sell',
      sizeUnits: whole,
      worstPriceMicros: out.worstPriceMicros,
    } as const
    const sold = await signOrder(app, { account, market }, sale, { timeInForce: 'fak' })
    const answer = await venue.postOrder(sold.body, credentials)
    assert.ok(answer.type === 'accepted' && answer.status === 'matched', inspect(answer))
    assert.deepEqual([answer.makingUnits, answer.takingUnits], [whole, out.cashUnits])
    await settledTrades(app, account, answer.orderId)
    const last = await balances(wallet.wallet, [outcomeId])
    assert.equal(units(last.pusd) - units(after.pusd), out.allInUnits)
    assert.equal(units(last.shares[outcomeId] ?? '0'), shares - whole)
    const believed = await venue.refreshBalance('cash', wallet.kind, credentials)
    assert.equal(believed.balanceUnits, units(last.pusd))
    const rest = await venue.refreshBalance({ outcomeId }, wallet.kind, credentials)
    assert.equal(rest.balanceUnits, shares - whole)
  })

test('a quote with a fee costs what it says, to the unit', async () => {
  const app = await predictionApp()
  const { venue, balances } = app
  const account = await readyAccount(app, 3403)
  const market = await pinnedMarket(app, 'bitcoin-up-or-down-today', 0.51)
  assert.deepEqual(market.fee, { rate: '0.04', exponent: '1' })
  const { outcomeId } = market.outcomes[1]!
  const spend = { type: 'all_in', cashUnits: 25n * unit } as const
  const quote = await venue.quote({ outcomeId, spend })
  assert.ok(quote.feeUnits > 0n && quote.allInUnits <= 25n * unit)
  const { orderCashUnits, worstPriceMicros } = quote
  const start = units((await balances(account.wallet.wallet)).pusd)
  const terms = { type: 'market', side: 'buy', cashUnits: orderCashUnits, worstPriceMicros } as const
  const order = await signOrder(app, { account, market }, terms, { outcome: 1 })
  const reply = await venue.postOrder(order.body, account.credentials)
  assert.equal(reply.type, 'accepted')
  await settledTrades(app, account, order.prepared.orderId)
  assert.equal(start - units((await balances(account.wallet.wallet)).pusd), quote.allInUnits)
})

test('streams report orders, trades and books, also after they were lost', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3404)
  const { credentials } = account
  const market = await pinnedMarket(app, 'new-phone-before-march', 0.73)
  const user: UserUpdate[] = []
  const seen: MarketUpdate[] = []
  let gaps = 0
  const onGap = () => {
    gaps += 1
  }
  using own = venue.streamUser(credentials, { onUpdate: (update) => user.push(update), onGap })
  const ids = market.outcomes.map(({ outcomeId }) => outcomeId)
  using all = venue.streamMarkets(ids, { onUpdate: (update) => seen.push(update), onGap })
  await Promise.all([own.ready(), all.ready()])
  const books = () => seen.filter(({ type }) => type === 'book').length
  await eventually(async () => books() >= 2, 'the books of both outcomes')

  const buy = { type: 'market', side: 'buy', cashUnits: 10n * unit, worstPriceMicros: 800_000n } as const
  const order = await signOrder(app, { account, market }, buy)
  assert.equal((await venue.postOrder(order.body, credentials)).type, 'accepted')
  const isReported = (settlement: string) =>
    user.some((update) => update.type === 'trade' && update.trade.settlement === settlement)
  await eventually(async () => isReported('confirmed') && isReported('matched'), 'the trade on the stream')
  for (const update of user)
    if (update.type === 'trade') {
      assert.deepEqual(
        [update.trade.orderId, update.trade.role, update.trade.outcomeId],
        [order.prepared.orderId, 'taker', ids[0]],
      )
    } else assert.equal(update.orderId, order.prepared.orderId)
  assert.ok(seen.some((update) => update.type === 'last_trade' && update.outcome.outcomeId === ids[0]))
  assert.equal(gaps, 0)

  await control('POST', '/ws/drop')
  await eventually(async () => gaps === 2, 'both gaps')
  await Promise.all([own.ready(), all.ready()])
  const before = user.length
  await eventually(async () => books() >= 4, 'the books again')
  const bid = { type: 'limit', side: 'buy', priceMicros: 10_000n, sizeUnits: 5n * unit } as const
  const rested = await signOrder(app, { account, market }, bid)
  await venue.postOrder(rested.body, credentials)
  await eventually(async () => user.length > before, 'the order on the new stream')
  const cancelled = await venue.cancelMatching({}, credentials)
  assert.ok(cancelled.type === 'answered' && cancelled.canceled.includes(rested.prepared.orderId))
})

test('a resting order is read from its own leg, also where the other side buys the other outcome', async () => {
  const app = await predictionApp()
  const { venue } = app
  const [maker, taker] = [await readyAccount(app, 3405), await readyAccount(app, 3406)]
  const market = await pinnedMarket(app, 'fed-cuts-rates-in-december', 0.62)
  // The venue's own market maker bids 0.61.
  const best = { type: 'limit', side: 'buy', priceMicros: 620_000n, sizeUnits: 20n * unit } as const
  const rested = await signOrder(app, { account: maker, market }, best, { postOnly: true })
  assert.equal((await venue.postOrder(rested.body, maker.credentials)).type, 'accepted')
  const mint = { type: 'market', side: 'buy', cashUnits: 7_600_000n, worstPriceMicros: 380_000n } as const
  const order = await signOrder(app, { account: taker, market }, mint, { outcome: 1 })
  const reply = await venue.postOrder(order.body, taker.credentials)
  assert.ok(reply.type === 'accepted' && reply.status === 'matched', inspect(reply))
  const [leg] = await settledTrades(app, maker, rested.prepared.orderId)
  assert.ok(leg)
  assert.deepEqual(
    [leg.role, leg.side, leg.outcomeId, leg.priceMicros, leg.sizeUnits, leg.outcome],
    ['maker', 'buy', market.outcomes[0]!.outcomeId, 620_000n, 20n * unit, market.outcomes[0]!.label],
  )
  const [other] = await settledTrades(app, taker, order.prepared.orderId)
  assert.deepEqual(
    [other!.role, other!.outcomeId, other!.priceMicros, other!.tradeId],
    ['taker', market.outcomes[1]!.outcomeId, 380_000n, leg.tradeId],
  )
})

test('shares of a resolved market become cash, and the public record lists it', async () => {
  const app = await predictionApp()
  const { venue, control, balances, reader } = app
  for (const slug of ['gamma-is-the-largest-company', 'cal-autumn-wins-the-mayoral-race']) {
    const account = await readyAccount(app, 3407)
    const { wallet } = account.wallet
    const market = await pinnedMarket(app, slug, 0.2)
    const { outcomeId } = market.outcomes[0]!
    const buy = { type: 'market', side: 'buy', cashUnits: 10n * unit, worstPriceMicros: 250_000n } as const
    const order = await signOrder(app, { account, market }, buy)
    assert.equal((await venue.postOrder(order.body, account.credentials)).type, 'accepted')
    const [trade] = await settledTrades(app, account, order.prepared.orderId)
    const call = venue.money!.sharesCall(wallet, market, outcomeId)
    const [word] = await reader.call([call])
    assert.equal(BigInt(word!), trade!.sizeUnits)
    await control('POST', '/resolve', { market: slug, outcome: 'yes' })
    const resolved = await eventually(async () => {
      const found = await venue.market({ marketId: market.marketId })
      return found?.payoutMicros ? found : undefined
    }, 'the resolution')
    assert.deepEqual(resolved.payoutMicros, [unit, 0n])
    assert.equal(resolved.acceptsOrders, false)
    const held = await venue.positions(wallet)
    const position = held.items.find((each) => each.outcomeId === outcomeId)
    assert.deepEqual([position?.isRedeemable, position?.sizeUnits], [true, trade!.sizeUnits])
    const start = units((await balances(wallet)).pusd)
    const calls = venue.money!.redeemCalls(resolved, [{ outcomeId, sizeUnits: trade!.sizeUnits }])
    assert.equal((await relayCalls(app, account, calls)).state, 'confirmed')
    assert.equal(units((await balances(wallet)).pusd) - start, trade!.sizeUnits)
    await eventually(async () => {
      const { items } = await venue.activity(wallet, 50)
      return items.some(({ type, marketId }) => type === 'redeem' && marketId === market.marketId)
    }, 'the redemption in the record')
    await assert.rejects(signOrder(app, { account, market }, buy), { code: 'market_closed' })
  }
})

test('the catalogue is searched, listed page by page, and read by event', async () => {
  const app = await predictionApp()
  const { venue } = app
  const found = await venue.events({ text: 'mayoral race', limit: 5 })
  assert.deepEqual(
    found.items.map(({ slug, isNegRisk, markets }) => [slug, isNegRisk, markets.length]),
    [['who-wins-the-mayoral-race', true, 3]],
  )
  assert.equal((await venue.markets({ text: 'mayoral race', limit: 5 })).items.length, 3)
  const slugs: string[] = []
  let cursor: string | undefined
  do {
    const page = await venue.markets({ limit: 5, ...(cursor !== undefined && { cursor }) })
    slugs.push(...page.items.map(({ slug }) => slug))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  assert.equal(new Set(slugs).size, slugs.length)
  assert.ok(slugs.length >= 10)
  const event = await venue.event('largest-company-at-year-end')
  assert.deepEqual(event, await venue.event(event!.eventId))
  assert.ok(event!.markets.every(({ eventId, protocol }) => eventId === event!.eventId && protocol === 'v2'))
  assert.equal(await venue.event('no-such-event'), undefined)
  assert.equal(await venue.market({ outcomeId: '12345' }), undefined)
  const market = await pinnedMarket(app, 'new-phone-before-march', 0.73)
  const history = await venue.prices(market.outcomes[0]!.outcomeId, '1w', 60)
  assert.ok(
    history.length > 100 && history.every(({ priceMicros }) => priceMicros > 0n && priceMicros < unit),
  )
  const addresses = await venue.depositAddresses!(venue.walletsOf(`0x${'12'.repeat(20)}`)[0]!.wallet)
  assert.match(addresses.evm!, /^0x[0-9a-f]{40}$/)
  assert.ok(addresses.svm)
})

test('orders equal those of the official client for the same fields', async () => {
  const app = await predictionApp()
  const { urls, options } = app
  const account = await readyAccount(app, 3408)
  const key = `0x${(3408).toString(16).padStart(64, '0')}` as const
  const closed = 'http://127.0.0.1:1'
  const socket = closed.replace('http', 'ws')
  const client = await createSecureClient({
    environment: forkEnvironmentConfig({
      name: 'local',
      rpc: closed,
      clob: { rest: urls.clob, market: { ws: `${urls.socket}/market` }, user: { ws: `${urls.socket}/user` } },
      relayer: { rest: urls.relayer },
      gamma: { rest: urls.gamma },
      data: { rest: urls.data },
      combos: { rest: closed, ws: socket, collateralReturn: { rest: closed } },
      perps: { rest: closed, ws: socket },
      rtds: { ws: socket },
      sports: { ws: socket },
    }),
    signer: signerFrom(
      createWalletClient({ account: privateKeyToAccount(key), chain: polygon, transport: http(closed) }),
    ),
    wallet: account.wallet.wallet,
  })
  assert.ok(options)
  for (const [slug, exchange] of [
    ['fed-cuts-rates-in-december', 'standard'],
    ['ada-winter-wins-the-mayoral-race', 'neg_risk'],
  ] as const) {
    const market = await pinnedMarket(app, slug, 0.5)
    const { outcomeId } = market.outcomes[0]!
    const terms = { type: 'limit', side: 'buy', priceMicros: 210_000n, sizeUnits: 12_340_000n } as const
    const { prepared, body } = await signOrder(app, { account, market }, terms)
    assert.equal(prepared.action.exchange, exchange)
    const foreign = await client.createLimitOrder({
      tokenId: outcomeId,
      price: 0.21,
      size: 12.34,
      side: OrderSide.BUY,
    })
    const same = {
      ...prepared.action,
      salt: BigInt(foreign.salt),
      timestampMs: Number(foreign.timestamp),
    }
    assert.equal(await account.sign(same), foreign.signature)
    const own = (JSON.parse(body) as { order: Record<string, unknown> }).order
    for (const field of [
      'maker',
      'signer',
      'tokenId',
      'makerAmount',
      'takerAmount',
      'side',
      'signatureType',
    ] as const)
      assert.equal(own[field], foreign[field], field)
  }
})
