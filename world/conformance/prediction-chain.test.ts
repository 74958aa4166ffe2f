import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { AssetType, Chain, ClobClient, OrderType, Side, SignatureTypeV2 } from '@polymarket/clob-client-v2'
import { type Hex, parseUnits } from 'viem'
import { polygon } from 'viem/chains'
import { rpcAt } from '#world/evm/rpc.ts'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import { approveCall, reportCall, settleCall } from '#world/polymarket/chain/calls.ts'
import { createSender } from '#world/polymarket/chain/sender.ts'
import { toChainOrder } from '#world/polymarket/market-maker.ts'
import { markets } from '#world/polymarket/markets.ts'
import { ccxtClientAt, exchangeV3Options } from './prediction/ccxt-client.ts'
import { depositClient } from './prediction/official-client.ts'
import { marketBySlug, openFrames, readJson, walletOf } from './prediction/prediction.ts'
import { type PredictionWorld, startPredictionWorld } from './prediction/prediction-world.ts'
import { accountOf, eventually } from './venue/venue.ts'

/** What trades, resolutions and the relayer do on the chain, for ordinary accounts. */

let market: PredictionWorld

before(async () => {
  market = await startPredictionWorld()
})
beforeEach(() => market.control('POST', '/realism', { preset: 'quiet', seed: 3 }))
after(() => market?.stop())

const clientAt = async (number: number, usd?: string) => {
  const address = await market.account(number, usd)
  const { clob } = market.world.urls.polymarket
  const options = { host: clob, chain: Chain.POLYGON, signer: walletOf(number), throwOnError: true }
  const creds = await new ClobClient(options).createOrDeriveApiKey()
  return { client: new ClobClient({ ...options, creds }), creds, address }
}

const pinned = async (slug: string, price: number) => {
  await market.control('POST', '/price', { market: slug, price })
  return marketBySlug(market.world.urls.polymarket, slug)
}

const settled = (address: string, status = 'CONFIRMED') =>
  eventually(`a trade that is ${status}`, async () => {
    const { trades } = await market.effects(address)
    const last = trades.at(-1)
    return last?.status === status ? last : undefined
  })

/** Amounts as they are signed, without the rounding of the client. */
const v3Amounts = (tokenID: string, price: number) => ({
  tokenID,
  side: Side.BUY,
  makerAmount: String(Math.round(price * 20_000_000)),
  takerAmount: '20000000',
})

test('an ordinary account buys and sells on both kinds of risk and on both protocols', async () => {
  const { client, address } = await clientAt(701)
  for (const [slug, price, bid] of [
    ['fed-cuts-rates-in-december', 0.62, 0.63],
    ['ada-winter-wins-the-mayoral-race', 0.46, 0.47],
    ['new-phone-before-march', 0.73, 0.74],
  ] as const) {
    const { yes, version } = await pinned(slug, price)
    if (version === 'v2') {
      const order = await client.createExchangeV3OrderFromAmounts(v3Amounts(yes, bid))
      await client.postOrder(order as never, OrderType.GTC)
    } else await client.createAndPostOrder({ tokenID: yes, price: bid, size: 20, side: Side.BUY })
    const trade = await settled(address)
    assert.equal((await market.receipt(trade.hash)).status, 'success')
    assert.equal((await market.balances(address, [yes])).shares[yes], '20')
    if (version === 'v1') {
      await client.createAndPostOrder({ tokenID: yes, price: price - 0.01, size: 20, side: Side.SELL })
      await settled(address)
      assert.equal((await market.balances(address, [yes])).shares[yes], '0')
    }
  }
  assert.equal((await market.control<{ isWhole: boolean }>('GET', '/backing')).isWhole, true)
})

test('an ordinary account trades on both protocols by ccxt, with dated and partial orders', async () => {
  const address = await market.account(709)
  const urls = market.world.urls.polymarket
  const { yes: position } = await pinned('new-phone-before-march', 0.73)
  const ofV3 = ccxtClientAt(urls, 709, exchangeV3Options)
  await ofV3.createOrder(position, 'limit', 'buy', 20, 0.74)
  const settledV3 = await settled(address)
  assert.equal((await market.receipt(settledV3.hash)).status, 'success')
  assert.equal((await market.balances(address, [position])).shares[position], '20')
  const client = ccxtClientAt(urls, 709)
  const { yes } = await pinned('fed-cuts-rates-in-december', 0.62)
  const expiration = String(Number(await client.clobPublicGetTime()) + 200)
  const dated = await client.createOrder(yes, 'limit', 'buy', 10, 0.4, { timeInForce: 'GTD', expiration })
  const { info } = await client.fetchOrder(String(dated.id))
  assert.deepEqual([info.status, info.order_type, info.expiration], ['LIVE', 'GTD', expiration])
  const best = (await client.fetchOrderBook(yes)).asks[0] as [number, number]
  assert.equal(best[0], 0.63)
  await market.control('POST', '/credit', { wallet: address, amount: '100000' })
  // More than is offered at this price: the rest does not rest.
  await client.createOrder(yes, 'limit', 'buy', best[1] + 100, 0.63, { timeInForce: 'IOC' })
  await settled(address)
  assert.equal((await market.balances(address, [yes])).shares[yes], String(best[1]))
  assert.deepEqual(
    (await client.fetchOpenOrders(yes)).map(({ id }) => id),
    [dated.id],
  )
})

test('a deposit wallet, which neither client can deploy, trades by the client of the book and by ccxt', async () => {
  const deployed = await depositClient(market, 710)
  const { wallet } = deployed.account
  const client = new ClobClient({
    host: market.world.urls.polymarket.clob,
    chain: Chain.POLYGON,
    signer: walletOf(710),
    throwOnError: true,
    creds: deployed.credentials,
    signatureType: SignatureTypeV2.POLY_1271,
    funderAddress: wallet,
  })
  const { yes: position } = await pinned('new-phone-before-march', 0.73)
  const { yes } = await pinned('ada-winter-wins-the-mayoral-race', 0.46)
  await client.postOrder((await client.createExchangeV3OrderFromAmounts(v3Amounts(position, 0.74))) as never)
  await settled(wallet)
  await client.createAndPostOrder({ tokenID: yes, price: 0.47, size: 20, side: Side.BUY })
  const bought = await settled(wallet)
  assert.equal((await market.receipt(bought.hash)).status, 'success')
  assert.deepEqual((await market.balances(wallet, [position, yes])).shares, { [position]: '20', [yes]: '20' })
  const other = ccxtClientAt(market.world.urls.polymarket, 710, { depositWallet: wallet })
  await other.createOrder(yes, 'limit', 'sell', 20, 0.45)
  const sold = await settled(wallet)
  assert.equal((await market.receipt(sold.hash)).status, 'success')
  const { pusd, shares } = await market.balances(wallet, [yes])
  assert.equal(shares[yes], '0')
  assert.equal((await other.fetchBalance()).USDC?.total, Number(pusd))
})

test('two accounts mint a pair and merge it again', async () => {
  const [first, second] = [await clientAt(702), await clientAt(703)]
  const { yes, no } = await pinned('cal-autumn-wins-the-mayoral-race', 0.19)
  await first.client.createAndPostOrder({ tokenID: no, price: 0.805, size: 20, side: Side.BUY })
  await second.client.createAndPostOrder({ tokenID: yes, price: 0.2, size: 20, side: Side.BUY })
  const minted = await settled(second.address)
  assert.ok(minted.legs.length >= 2)
  await settled(first.address)
  const held = async () => [
    (await market.balances(first.address, [no])).shares[no],
    (await market.balances(second.address, [yes])).shares[yes],
  ]
  assert.deepEqual(await held(), ['20', '20'])
  await first.client.createAndPostOrder({ tokenID: no, price: 0.8, size: 20, side: Side.SELL })
  await second.client.createAndPostOrder({ tokenID: yes, price: 0.18, size: 20, side: Side.SELL })
  await settled(second.address)
  await settled(first.address)
  assert.deepEqual(await held(), ['0', '0'])
})

test('a settlement is sent again under another hash, and a failed one is on the chain as reverted', async () => {
  const { client, creds, address } = await clientAt(704)
  const { yes } = await pinned('fed-cuts-rates-in-december', 0.62)
  const auth = { apiKey: creds.key, secret: creds.secret, passphrase: creds.passphrase }
  const frames = await openFrames(market.world.urls.polymarket.socket, 'user', { type: 'user', auth })
  const buy = async () =>
    client.postOrder(
      await client.createOrder({ tokenID: yes, price: 0.63, size: 10, side: Side.BUY }),
      OrderType.GTC,
      false,
      true,
    )
  await market.control('POST', '/realism', { retryRate: 1, unbroadcastRate: 1 })
  const { tradeIDs } = await buy()
  const trade = await settled(address)
  assert.equal(trade.id, tradeIDs?.[0])
  await frames.next('the end', ({ id, status }) => id === trade.id && status === 'CONFIRMED')
  const reported = frames.all.filter(({ id }) => id === trade.id)
  assert.deepEqual(
    [...new Set(reported.map(({ status }) => status))],
    ['MATCHED_NOT_BROADCASTED', 'MATCHED', 'RETRYING', 'MINED', 'CONFIRMED'],
  )
  const replaced = reported.find(({ status }) => status === 'MATCHED')?.transaction_hash as `0x${string}`
  assert.notEqual(replaced, trade.hash)
  await assert.rejects(market.receipt(replaced))
  await market.control('POST', '/realism', { preset: 'quiet', failRate: 1 })
  await buy()
  const failed = await settled(address, 'FAILED')
  assert.equal((await market.receipt(failed.hash)).status, 'reverted')
  assert.equal((await market.balances(address, [yes])).shares[yes], '10')
  assert.deepEqual(frames.dropped, [])
  frames.close()
})

test('a trade that an earlier transaction has settled after all is confirmed', async () => {
  const [first, second] = [await clientAt(707), await clientAt(708)]
  const { yes, no } = await pinned('fed-cuts-rates-in-december', 0.62)
  await market.control('POST', '/realism', { settleDelay: { rate: 1, minMs: 60_000, maxMs: 60_000 } })
  const sides = [
    { by: second, tokenID: yes, price: 0.62 },
    { by: first, tokenID: no, price: 0.38 },
  ]
  const orders = await Promise.all(
    sides.map(({ by, ...terms }) => by.client.createOrder({ ...terms, size: 10, side: Side.BUY })),
  )
  await first.client.postOrder(orders[1]!, OrderType.GTC)
  await second.client.postOrder(orders[0]!, OrderType.GTC)
  const { key, conditionId, legs, ...trade } = await settled(second.address, 'MATCHED')
  const fills = legs.map(({ shares, cash, fee }, at) => ({
    order: { ...toChainOrder(orders[at] as never), signature: orders[at]!.signature as Hex },
    shares: parseUnits(shares, 6),
    cash: parseUnits(cash, 6),
    fee: parseUnits(fee, 6),
  }))
  const rpc = rpcAt(Number(new URL(market.world.urls.evm['137']).port))
  const call = settleCall({
    exchange: 'standardExchange',
    key: key as Hex,
    conditionId: conditionId as Hex,
    fills,
  })
  await createSender(rpc).send('operator', call)
  rpc.close()
  await market.control('POST', '/advance', { ms: 60_000 })
  assert.equal((await settled(second.address)).id, trade.id)
  assert.equal((await market.balances(second.address, [yes])).shares[yes], '10')
})

test('a result is known before the chain has it; a void pays half; the operator redeems for others', async () => {
  const { client, address } = await clientAt(705)
  const early = await pinned('bitcoin-reaches-250k-this-year', 0.045)
  const half = await pinned('bitcoin-up-or-down-today', 0.51)
  for (const [tokenID, price] of [
    [early.yes, 0.05],
    [half.yes, 0.53],
  ] as const) {
    await client.createAndPostOrder({ tokenID, price, size: 20, side: Side.BUY })
    await settled(address)
  }
  await market.control('POST', '/resolve', { market: early.slug, outcome: 'yes', onChain: false })
  const { gamma, data } = market.world.urls.polymarket
  const [reported] = await readJson<{ closed: boolean; umaResolutionStatus: string }[]>(
    `${gamma}/markets?slug=${early.slug}&closed=true`,
  )
  assert.equal(reported?.closed, true)
  await assert.rejects(
    client.createAndPostOrder({ tokenID: early.yes, price: 0.05, size: 20, side: Side.BUY }),
    /orderbook .* does not exist/,
  )
  await market.control('POST', '/report', { market: early.slug })
  await market.control('POST', '/resolve', { market: half.slug, outcome: 'void' })
  const before = Number((await market.balances(address)).pusd)
  await market.control('POST', '/realism', { autoRedeem: { rate: 1, delayMs: 60_000 } })
  await market.control('POST', '/auto-redeem', {})
  const held = (await market.balances(address, [early.yes, half.yes])).shares
  assert.deepEqual(Object.values(held), ['20', '20'])
  await market.control('POST', '/advance', { ms: 60_000 })
  await eventually('the redemptions', async () => {
    await market.control('POST', '/auto-redeem', {})
    const { shares } = await market.balances(address, [early.yes, half.yes])
    return Object.values(shares).every((each) => each === '0') ? true : undefined
  })
  const { pusd } = await market.balances(address)
  assert.equal(Number(pusd) - before, 30)
  await eventually('the redemptions in the data', async () => {
    const rows = await readJson<{ type: string }[]>(`${data}/activity?user=${address}&type=REDEEM`)
    return rows.length === 2 ? rows : undefined
  })
  assert.equal((await market.control<{ isWhole: boolean }>('GET', '/backing')).isWhole, true)
})

test('a result that cannot be is refused before it is known, and one that is mined is not sent again', async () => {
  const base = `${market.world.urls.control}/venues/polymarket`
  const resolve = async (slug: string, outcome: string) => {
    const body = JSON.stringify({ market: slug, outcome, onChain: false })
    return (await readJson<{ detail?: string }>(`${base}/resolve`, { method: 'POST', body })).detail
  }
  const stateNow = async (name: string) => {
    const list = await market.control<{ slug: string; isClosed: boolean; isReported: boolean }[]>(
      'GET',
      '/markets',
    )
    return list.find(({ slug }) => slug === name)
  }
  const groups = [
    ...Map.groupBy(
      markets.filter(({ chain }) => chain.isNegRisk),
      ({ event }) => event,
    ).values(),
  ]
  for (const [winner, second] of groups) {
    assert.ok(winner && second)
    assert.match(String(await resolve(winner.slug, 'void')), /cannot be void/)
    assert.equal((await stateNow(winner.slug))?.isClosed, false)
    assert.equal(await resolve(winner.slug, 'yes'), undefined)
    assert.match(String(await resolve(second.slug, 'yes')), /Another market of this event has won/)
    for (const each of [winner, second])
      assert.match(String(await resolve(each.slug, 'void')), /cannot be void/)
    assert.equal((await stateNow(second.slug))?.isClosed, false)
    // As a process that ends after the block, and before it knows of it.
    const rpc = rpcAt(Number(new URL(market.world.urls.evm['137']).port))
    await createSender(rpc).send('resolver', reportCall(winner.chain, 'yes'))
    rpc.close()
    for (const act of ['kill', 'start'])
      await readJson(`${market.world.urls.control}/chains/polymarket/${act}`, { method: 'POST', body: '{}' })
    await market.control('POST', '/report', { market: winner.slug })
    assert.equal((await stateNow(winner.slug))?.isReported, true)
  }
  assert.equal(groups.length, 2)
})

test('an update of a balance shows an approval that has just changed', async () => {
  const { client } = await clientAt(720)
  const exchange = contracts.standardExchange
  const allowance = async () => {
    const { allowances } = (await client.getBalanceAllowance({
      asset_type: AssetType.COLLATERAL,
    })) as never as {
      allowances: Record<string, string>
    }
    return allowances[exchange]
  }
  assert.notEqual(await allowance(), '0')
  const wallet = walletOf(720, market.world.urls.evm['137'])
  const { to, data } = approveCall(contracts.pusd, exchange, 0n)
  const hash = await wallet.sendTransaction({ account: accountOf(720), chain: polygon, to, data })
  await eventually('the approval', () => market.receipt(hash).catch(() => undefined))
  await market.control('POST', '/realism', { preset: 'staleBalances' })
  assert.notEqual(await allowance(), '0')
  await client.updateBalanceAllowance({ asset_type: AssetType.COLLATERAL })
  assert.equal(await allowance(), '0')
})

test('the state of the market and of its chain survives a kill of the process', async () => {
  const { client, address } = await clientAt(706)
  const { yes } = await pinned('fed-cuts-rates-in-december', 0.62)
  await client.createAndPostOrder({ tokenID: yes, price: 0.3, size: 10, side: Side.BUY })
  await client.createAndPostOrder({ tokenID: yes, price: 0.63, size: 10, side: Side.BUY })
  for (const act of ['kill', 'start'])
    await readJson(`${market.world.urls.control}/chains/polymarket/${act}`, { method: 'POST', body: '{}' })
  const open = await eventually('the orders after the kill', () =>
    client.getOpenOrders().catch(() => undefined),
  )
  assert.deepEqual(
    open.map(({ price }) => price),
    ['0.3'],
  )
  await settled(address)
  assert.equal((await market.balances(address, [yes])).shares[yes], '10')
})
