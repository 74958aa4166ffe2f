import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { inspect } from 'node:util'
import type { OrderReply } from '#kernel/money/prediction-venue.ts'
import { createPolymarket } from '#upstreams/polymarket/polymarket.ts'
import {
  type Account,
  eventually,
  openAccount,
  pinnedMarket,
  predictionApp,
  readyAccount,
  relayCalls,
  relayed,
  settledTrades,
  signOrder,
  submit,
} from './prediction-app.ts'

/** What the venue refuses, loses and contradicts, on markets of both protocols. */

const unit = 1_000_000n
const v1 = { slug: 'fed-cuts-rates-in-december', price: 0.62 }
const v2 = { slug: 'new-phone-before-march', price: 0.73 }
const bid = { type: 'limit', side: 'buy', priceMicros: 10_000n, sizeUnits: 10n * unit } as const
const buy = { type: 'market', side: 'buy', cashUnits: 5n * unit, worstPriceMicros: 900_000n } as const

afterEach(async () => {
  const { control } = await predictionApp()
  await control('POST', '/realism', { preset: 'quiet' })
  await control('POST', '/mode', { mode: 'open' })
  await control('DELETE', '/faults')
})

const summary = (reply: OrderReply) => ('reason' in reply ? [reply.type, reply.reason] : [reply.type])

const effectsOf = async (orderId: string) => {
  const { control } = await predictionApp()
  const { trades } = await control<{ trades: { legs: { orderId: string }[] }[] }>('GET', '/effects')
  return trades.filter(({ legs }) => legs.some((leg) => leg.orderId === orderId)).length
}

test('an order whose reply was lost exists once, and is found by its hash', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3501)
  const { credentials } = account
  for (const { slug, price } of [v1, v2]) {
    const market = await pinnedMarket(app, slug, price)
    for (const lose of [
      () => control('POST', '/faults', { effect: 'dropReply', endpoint: 'clob', type: '/order', count: 1 }),
      () => control('POST', '/realism', { htmlRate: 1 }),
    ]) {
      const { prepared, body } = await signOrder(app, { account, market }, buy)
      await lose()
      assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['unknown'])
      await control('POST', '/realism', { preset: 'quiet' })
      assert.equal((await venue.order(prepared.orderId, credentials))?.status, 'matched')
      assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['unknown'])
      await settledTrades(app, account, prepared.orderId)
      assert.equal(await effectsOf(prepared.orderId), 1)
    }
    // Failed before the venue read it, which a caller cannot know.
    const { prepared, body } = await signOrder(app, { account, market }, bid)
    await control('POST', '/faults', {
      effect: 'status',
      status: 500,
      endpoint: 'clob',
      type: '/order',
      count: 1,
    })
    assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['unknown'])
    assert.equal(await venue.order(prepared.orderId, credentials), undefined)
    assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['accepted'])
    assert.equal((await venue.cancelOrders([prepared.orderId], credentials)).type, 'answered')
  }
  const away = createPolymarket({ ...app.options, urls: { ...app.urls, clob: 'http://127.0.0.1:1' } })
  assert.deepEqual(summary(await away.postOrder('{}', credentials)), ['not_sent'])
})

test('a venue that restarts, or takes only some orders, says so with its time', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3502)
  const market = await pinnedMarket(app, v2.slug, v2.price)
  const { credentials } = account
  const rested = await signOrder(app, { account, market }, bid)
  assert.deepEqual(summary(await venue.postOrder(rested.body, credentials)), ['accepted'])
  const { body } = await signOrder(app, { account, market }, bid)
  const post = async () => {
    const reply = await venue.postOrder(body, credentials)
    assert.ok(reply.type === 'later', inspect(reply))
    return reply
  }
  await control('POST', '/mode', { mode: 'restarting' })
  assert.equal((await post()).reason, 'restarting')
  const stopped = await venue.cancelOrders([rested.prepared.orderId], credentials)
  assert.ok(stopped.type === 'later' && stopped.reason === 'restarting')
  await control('POST', '/mode', { mode: 'postOnly', forMs: 90_000 })
  const postOnly = await post()
  assert.equal(postOnly.reason, 'post_only')
  assert.ok(postOnly.retryAfterMs! > 60_000 && postOnly.retryAfterMs! <= 90_000)
  const allowed = await signOrder(app, { account, market }, bid, { postOnly: true })
  assert.deepEqual(summary(await venue.postOrder(allowed.body, credentials)), ['accepted'])
  await control('POST', '/mode', { mode: 'cancelOnly' })
  assert.equal((await post()).reason, 'cancel_only')
  const cancelled = await venue.cancelMatching({ marketId: market.marketId }, credentials)
  assert.ok(cancelled.type === 'answered')
  assert.deepEqual(cancelled.canceled.sort(), [rested.prepared.orderId, allowed.prepared.orderId].sort())
  await control('POST', '/mode', { mode: 'disabled' })
  assert.equal((await post()).reason, 'disabled')
  await control('POST', '/mode', { mode: 'open' })
  assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['accepted'])
  await venue.cancelMatching({}, credentials)
})

test('a signer beyond its budget learns its budget and when to come again', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3503)
  const market = await pinnedMarket(app, v1.slug, v1.price)
  const { credentials } = account
  await control('POST', '/realism', { ordersPerSecond: 1 })
  const replies: OrderReply[] = []
  for (let count = 0; count < 4; count += 1) {
    const { body } = await signOrder(app, { account, market }, bid)
    replies.push(await venue.postOrder(body, credentials))
  }
  const refused = replies.find(({ type }) => type === 'later')
  assert.ok(refused?.type === 'later' && refused.reason === 'rate_limited', inspect(replies))
  assert.ok(refused.retryAfterMs! >= 1_000 && refused.limit?.tier === 'standard')
  assert.ok(refused.limit.resetAtSeconds! > 0)
  await control('POST', '/realism', { busyRate: 1 })
  await assert.rejects(
    venue.book(market.outcomes[0]!.outcomeId),
    (error: { code: string; extras: object }) => {
      assert.deepEqual(
        [error.code, error.extras],
        ['unavailable', { reason: 'rate_limited', retry_after: 1 }],
      )
      return true
    },
  )
  await control('POST', '/realism', { preset: 'quiet' })
  await venue.cancelMatching({}, credentials)
})

const refusalOf = async (
  account: Account,
  terms: Parameters<typeof signOrder>[2],
  slug = v1.slug,
  price = v1.price,
) => {
  const app = await predictionApp()
  const market = await pinnedMarket(app, slug, price)
  const options = terms.type === 'limit' ? {} : { timeInForce: 'fok' as const }
  const { body } = await signOrder(app, { account, market }, terms, options)
  return summary(await app.venue.postOrder(body, account.credentials))
}

test('a place or an account that may not trade is refused with its reason, and its cancels work', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3504)
  const { credentials, wallet } = account
  const market = await pinnedMarket(app, v1.slug, v1.price)
  const { prepared, body } = await signOrder(app, { account, market }, bid)
  assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['accepted'])
  assert.deepEqual(await venue.access(), { isBlocked: false, country: 'AR' })
  await control('POST', '/realism', { geoblock: 'blocked' })
  assert.equal((await venue.access()).isBlocked, true)
  assert.deepEqual(await refusalOf(account, bid), ['rejected', 'geoblocked'])
  assert.equal((await venue.cancelOrders([prepared.orderId], credentials)).type, 'answered')
  await control('POST', '/realism', { geoblock: 'open', eoaMakers: 'refused' })
  assert.equal(await venue.isClosedOnly(credentials), false)
  await control('POST', '/account', { wallet: wallet.wallet, closedOnly: true })
  assert.equal(await venue.isClosedOnly(credentials), true)
  assert.deepEqual(await refusalOf(account, bid), ['rejected', 'closed_only'])
  await control('POST', '/account', { wallet: wallet.wallet, closedOnly: false, banned: true })
  assert.deepEqual(await refusalOf(account, bid), ['rejected', 'banned'])
  const plain = await openAccount(app, 3505, 'eoa')
  assert.deepEqual(await refusalOf(plain, bid), ['rejected', 'wallet_not_allowed'])
})

test('refusals of an order have their reasons, on both protocols', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3506, '100')
  const { wallet, credentials } = account
  const early = await openAccount(app, 3507)
  for (const { slug, price } of [v1, v2]) {
    const market = await pinnedMarket(app, slug, price)
    const refusal = (terms: Parameters<typeof signOrder>[2]) => refusalOf(account, terms, slug, price)
    assert.deepEqual(await refusal({ ...bid, sizeUnits: 50_000n * unit }), [
      'rejected',
      'insufficient_balance',
    ])
    assert.deepEqual(await refusal({ ...buy, worstPriceMicros: 20_000n }), ['rejected', 'not_filled'])
    const none = await signOrder(
      app,
      { account, market },
      { ...buy, worstPriceMicros: 20_000n },
      { timeInForce: 'fak' },
    )
    assert.deepEqual(summary(await venue.postOrder(none.body, credentials)), ['rejected', 'no_match'])
    const crossing = { ...bid, priceMicros: 900_000n }
    const crosses = await signOrder(app, { account, market }, crossing, { postOnly: true })
    assert.deepEqual(summary(await venue.postOrder(crosses.body, credentials)), [
      'rejected',
      'post_only_crosses',
    ])
    assert.deepEqual(await refusalOf(early, bid, slug, price), ['rejected', 'wallet_not_ready'])
    await control('POST', '/realism', { versionMismatchRate: 1 })
    assert.deepEqual(await refusal(bid), ['rejected', 'version_mismatch'])
    await control('POST', '/realism', { versionMismatchRate: 0 })
    const { prepared } = await signOrder(app, { account, market }, bid)
    const other = await early.sign({ ...prepared.action, owner: early.owner })
    const forged = venue.orderBody(prepared, other, credentials.key)
    assert.deepEqual(summary(await venue.postOrder(forged, credentials)), ['rejected', 'invalid_signature'])
  }
  await control('POST', '/account', { wallet: wallet.wallet, phantomUsd: 99 })
  assert.deepEqual(await refusalOf(account, { ...bid, sizeUnits: 500n * unit }), [
    'rejected',
    'venue_balance_lag',
  ])
  await venue.deleteKey(early.credentials)
  assert.deepEqual(await refusalOf(early, bid), ['rejected', 'key_invalid'])
  await assert.rejects(venue.openOrders({}, early.credentials), { code: 'upstream_rejected' })
})

test('a tick that changes before the signature is signed anew, and one that changes after it is refused', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3508)
  const { credentials } = account
  for (const slug of ['ada-winter-wins-the-mayoral-race', 'alpha-is-the-largest-company']) {
    const market = await pinnedMarket(app, slug, 0.5)
    assert.equal(market.tickMicros, 10_000n)
    const fine = { ...bid, priceMicros: 12_000n }
    await assert.rejects(
      signOrder(app, { account, market }, fine),
      (error: { code: string; extras: { reason: string } }) => {
        assert.deepEqual([error.code, error.extras.reason], ['validation', 'tick_invalid'])
        return true
      },
    )
    await control('POST', '/tick-size', { market: slug, tick: 0.001 })
    const { body, prepared } = await signOrder(app, { account, market }, fine)
    assert.equal(prepared.market.tickMicros, 1_000n)
    await control('POST', '/tick-size', { market: slug, tick: 0.01 })
    assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['rejected', 'tick_invalid'])
    assert.equal(await venue.order(prepared.orderId, credentials), undefined)
    await control('POST', '/tick-size', { market: slug, tick: 0.001 })
    assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['accepted'])
    await venue.cancelMatching({}, credentials)
    await control('POST', '/tick-size', { market: slug, tick: 0.01 })
  }
})

test('nothing is signed while the venue contradicts itself', async () => {
  const app = await predictionApp()
  const { control } = app
  const account = await readyAccount(app, 3509)
  await control('POST', '/realism', { negRiskContradictionRate: 1 })
  for (const slug of [
    'fed-cuts-rates-in-december',
    'ben-summer-wins-the-mayoral-race',
    'new-phone-before-march',
  ]) {
    const market = await pinnedMarket(app, slug, 0.5)
    await assert.rejects(
      signOrder(app, { account, market }, bid),
      (error: { code: string; extras: { reason: string } }) => {
        assert.deepEqual([error.code, error.extras.reason], ['unavailable', 'upstream_inconsistent'])
        return true
      },
    )
  }
})

test('an order of a market with a delay waits, and then has its trades', async () => {
  const app = await predictionApp()
  const { venue } = app
  const account = await readyAccount(app, 3510)
  const market = await pinnedMarket(app, 'harbor-city-vs-river-town', 0.55)
  assert.equal(market.matchDelaySeconds, 3)
  const { body, prepared } = await signOrder(app, { account, market }, buy)
  const reply = await venue.postOrder(body, account.credentials)
  assert.ok(reply.type === 'accepted', inspect(reply))
  assert.deepEqual([reply.status, reply.tradeIds, reply.makingUnits], ['delayed', [], null])
  const order = await eventually(async () => {
    const found = await venue.order(prepared.orderId, account.credentials)
    return found?.status === 'matched' ? found : undefined
  }, 'the match')
  const trades = await settledTrades(app, account, prepared.orderId)
  assert.deepEqual(
    order.tradeIds,
    trades.map(({ tradeId }) => tradeId),
  )
})

test('a trade that fails is read as failed', async () => {
  const app = await predictionApp()
  const { venue, control, balances } = app
  const account = await readyAccount(app, 3511)
  const { wallet, credentials } = account
  for (const { slug, price } of [v1, v2]) {
    const market = await pinnedMarket(app, slug, price)
    const start = (await balances(wallet.wallet)).pusd
    await control('POST', '/realism', { failRate: 1 })
    const { body, prepared } = await signOrder(app, { account, market }, buy)
    assert.deepEqual(summary(await venue.postOrder(body, credentials)), ['accepted'])
    const [failed] = await eventually(async () => {
      const own = await venue.trades({ marketId: market.marketId }, wallet, credentials)
      const found = own.filter((trade) => trade.orderId === prepared.orderId && trade.settlement === 'failed')
      return found.length > 0 ? found : undefined
    }, 'the failure')
    assert.equal(failed!.role, 'taker')
    assert.equal((await balances(wallet.wallet)).pusd, start)
    await control('POST', '/realism', { preset: 'quiet' })
  }
})

test('the relayer’s refusals are distinguished: busy, quota, stale nonce, blocked call and failed check', async () => {
  const app = await predictionApp()
  const { venue, control } = app
  const account = await readyAccount(app, 3512)
  const { wallet, sign, owner } = account
  const { relayer, walletBatch } = venue.setup!
  const transfer = venue.money!.transferCall(owner, 1n)
  const send = async (nonceAhead = 0n, call = transfer) => {
    const action = walletBatch(wallet, [call], (await relayer.nonce(wallet)) + nonceAhead)
    return relayer.submit(relayer.body(action, await sign(action), 'a test'))
  }
  const dial = (settings: object) => control('POST', '/realism', { relayer: settings })
  const quiet = { dailyQuota: 0, busyRate: 0, nonceMismatchRate: 0, precheckRate: 0, refusedTargets: [] }
  await dial({ ...quiet, busyRate: 1 })
  const busy = await send()
  assert.ok(busy.type === 'later' && busy.reason === 'wallet_busy', inspect(busy))
  await dial(quiet)
  const ahead = await send(5n)
  assert.ok(ahead.type === 'rejected' && ahead.reason === 'nonce_stale', inspect(ahead))
  assert.equal(ahead.chainNonce, await relayer.nonce(wallet))
  await dial({ ...quiet, refusedTargets: [venue.money!.cashToken.toLowerCase()] })
  const blocked = await send()
  assert.ok(blocked.type === 'rejected' && blocked.reason === 'call_blocked', inspect(blocked))
  await dial({ ...quiet, dailyQuota: 1 })
  const quota = await send()
  assert.ok(quota.type === 'later' && quota.reason === 'quota', inspect(quota))
  assert.ok(quota.retryAfterMs! > 0 && quota.retryAfterMs! <= 86_400_000)
  await dial({ ...quiet, precheckRate: 1 })
  const market = await pinnedMarket(app, v1.slug, v1.price)
  const share = { outcomeId: market.outcomes[0]!.outcomeId, sizeUnits: 1n }
  const checked = await send(0n, venue.money!.redeemCalls(market, [share])[0])
  assert.ok(checked.type === 'accepted', inspect(checked))
  const failed = await relayed(app, checked.relayId)
  assert.deepEqual([failed.state, failed.txHash], ['failed', null])
  assert.match(failed.error!, /PRECHECK/)
  await dial(quiet)
  await control('POST', '/faults', { effect: 'dropReply', endpoint: 'relayer', type: '/submit', count: 1 })
  const nonce = await relayer.nonce(wallet)
  assert.equal((await send()).type, 'unknown')
  const found = await eventually(async () => {
    const latest = (await relayer.recent(owner)).find((each) => each.nonce === nonce)
    return latest?.state === 'confirmed' ? latest : undefined
  }, 'the batch whose reply was lost')
  assert.equal(await relayer.nonce(wallet), nonce + 1n)
  assert.match(found.txHash!, /^0x[0-9a-f]{64}$/)
  assert.equal(await relayer.state('00000000-0000-4000-8000-000000000000'), undefined)
  const stranger = createPolymarket({
    ...app.options,
    relayerKey: { type: 'account', key: 'none', address: owner },
  })
  const refused = await stranger.setup!.relayer.submit(relayer.createWalletBody(owner))
  assert.ok(refused.type === 'rejected' && refused.reason === 'not_authorized', inspect(refused))
})

test('an older wallet moves its dollars and shares to a deposit wallet', async () => {
  const app = await predictionApp()
  const { venue, control, balances, reader } = app
  const account = await readyAccount(app, 3513)
  const { owner, sign, wallet } = account
  const safe = venue.walletsOf(owner).find(({ kind }) => kind === 'safe')!
  await control('POST', '/safe', { owner })
  assert.notEqual(await reader.code(safe.wallet), '0x')
  await control('POST', '/credit', { wallet: safe.wallet, amount: '5' })
  await control('POST', '/credit', { wallet: safe.wallet, amount: '3', token: 'usdce' })
  const [, usdce] = venue.money!.wrappable
  const calls = [
    venue.money!.transferCall(wallet.wallet, 5n * unit),
    ...venue.money!.wrapCalls(usdce!.token, 3n * unit, wallet.wallet),
  ]
  const before = Number((await balances(wallet.wallet)).pusd)
  const moved = await relayCalls(app, { ...account, wallet: safe }, calls)
  assert.equal(moved.state, 'confirmed', moved.error ?? '')
  assert.equal(Number((await balances(wallet.wallet)).pusd), before + 8)

  const market = await pinnedMarket(app, v1.slug, v1.price)
  const { outcomeId } = market.outcomes[0]!
  const { body, prepared } = await signOrder(app, { account, market }, buy)
  assert.deepEqual(summary(await venue.postOrder(body, account.credentials)), ['accepted'])
  const [trade] = await settledTrades(app, account, prepared.orderId)
  const shares = [{ outcomeId, sizeUnits: trade!.sizeUnits }]
  const there = venue.money!.transferSharesCall(wallet.wallet, safe.wallet, market, shares)
  await relayCalls(app, account, [there])
  const heldOf = async (of: string) =>
    BigInt((await reader.call([venue.money!.sharesCall(of, market, outcomeId)]))[0]!)
  assert.deepEqual([await heldOf(wallet.wallet), await heldOf(safe.wallet)], [0n, trade!.sizeUnits])
  const back = venue.money!.transferSharesCall(safe.wallet, wallet.wallet, market, shares)
  const { relayer, walletBatch } = venue.setup!
  const action = walletBatch(safe, [back], await relayer.nonce(safe))
  assert.equal((await submit(app, relayer.body(action, await sign(action), 'a test'))).state, 'confirmed')
  assert.deepEqual([await heldOf(wallet.wallet), await heldOf(safe.wallet)], [trade!.sizeUnits, 0n])
})
