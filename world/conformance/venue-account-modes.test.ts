import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ExchangeClient, HttpTransport } from '@nktkas/hyperliquid'
import { WebSocket } from 'ws'
import { errorOf, newCloid, postRaw, type Trader, traderAt } from './venue/trader.ts'
import { eventually, type RunningVenue, startVenue } from './venue/venue.ts'

let venue: RunningVenue
let number = 1_200

before(async () => {
  venue = await startVenue(['--tick-ms', '100'])
  await venue.control('POST', '/settings', { walking: false })
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
  await venue.control('POST', '/price', { coin: '@1', price: 40 })
})
after(() => venue?.close())

const trader = (usd?: string): Promise<Trader> => {
  number += 1
  return traderAt(venue, number, usd)
}
const usdcToken = 'USDC:0x6d1e7cde53ba9467b783cb7c530ce054'
const usdOf = async ({ info, user }: Trader) => {
  const { balances } = await info.spotClearinghouseState({ user })
  const row = balances.find(({ coin }) => coin === 'USDC')
  return { total: Number(row?.total ?? 0), hold: Number(row?.hold ?? 0) }
}
const assertNear = (seen: number, expected: number, within = 1) =>
  assert.ok(Math.abs(seen - expected) <= within, `${seen}, expected ${expected}`)
const market = (a: number, b: boolean, p: string, s: string) => ({
  orders: [{ a, b, p, s, r: false, t: { limit: { tif: 'Ioc' as const } }, c: newCloid() }],
  grouping: 'na' as const,
})
const assertConserved = async () => {
  const { conservation } = await venue.control<{
    conservation: { perp: string; spot: Record<string, string> }
  }>('GET', '/effects?accounts=none')
  assert.equal(conservation.perp, '0.0')
  assert.deepEqual([...new Set(Object.values(conservation.spot))], ['0.0'])
}

for (const abstraction of ['unifiedAccount', 'portfolioMargin'] as const)
  test(`one balance is margin, buys tokens and is withdrawn: ${abstraction}`, async () => {
    const one = await trader('10000')
    const { exchange, info, user } = one
    await exchange.usdClassTransfer({ amount: '4000', toPerp: false })
    await exchange.userSetAbstraction({ user, abstraction })
    assert.deepEqual(await usdOf(one), { total: 10_000, hold: 0 })
    const empty = await info.clearinghouseState({ user })
    assert.deepEqual([empty.marginSummary.accountValue, empty.withdrawable], ['0.0', '0.0'])
    await exchange.updateLeverage({ asset: 0, isCross: true, leverage: 10 })
    await exchange.order(market(0, true, '101000', '0.5'))
    const open = await usdOf(one)
    assertNear(open.total, 10_000, 30)
    assertNear(open.hold, 5_000, 10)
    assert.equal((await info.clearinghouseState({ user })).assetPositions.length, 1)
    await exchange.order(market(10_001, true, '41', '10'))
    assertNear((await usdOf(one)).total, open.total - 400, 5)
    const tooMuch = await errorOf(exchange.withdraw3({ destination: user, amount: '9000' }))
    assert.equal(tooMuch, 'Insufficient balance for withdrawal')
    await exchange.withdraw3({ destination: user, amount: '4000' })
    assertNear((await usdOf(one)).total, open.total - 4_400, 5)
    await exchange.order(market(10_001, false, '39', '9'))
    assertNear((await usdOf(one)).total, open.total - 4_040, 5)
    assert.match(
      await errorOf(exchange.usdClassTransfer({ amount: '1', toPerp: true })),
      /unified account is active/,
    )
    const close = market(0, false, '99000', '0.5')
    await exchange.order(close)
    const { total, hold } = await usdOf(one)
    assertNear(total, open.total - 4_040, 40)
    assert.equal(hold, 0)
    await exchange.spotSend({ destination: `0x${'77'.repeat(20)}`, token: usdcToken, amount: '100' })
    assertNear((await usdOf(one)).total, total - 100, 0.01)
    await exchange.userSetAbstraction({ user, abstraction: 'disabled' })
    assertNear(Number((await info.clearinghouseState({ user })).withdrawable), total - 100, 0.01)
    await assertConserved()
  })

test('a mode is set for the named account, which must be the signer or its sub-account', async () => {
  const { exchange, info, user } = await trader()
  const other = await trader()
  const stranger = exchange.userSetAbstraction({ user: other.user, abstraction: 'unifiedAccount' })
  assert.match(await errorOf(stranger), /^Invalid sub-account/)
  assert.equal(await info.userAbstraction({ user: other.user }), 'default')
  const { data: sub } = (await exchange.createSubAccount({ name: 'one' })).response
  await exchange.userSetAbstraction({ user: sub, abstraction: 'unifiedAccount' })
  assert.equal(await info.userAbstraction({ user: sub }), 'unifiedAccount')
  assert.equal(await info.userAbstraction({ user }), 'default')
  await exchange.userDexAbstraction({ user, enabled: true })
  assert.deepEqual(
    [await info.userDexAbstraction({ user }), await info.userAbstraction({ user })],
    [true, 'dexAbstraction'],
  )
})

test('a sub-account is created, funded, traded by its master, renamed and emptied', async () => {
  const { exchange, info, user } = await trader('10000')
  const { data: sub } = (await exchange.createSubAccount({ name: 'desk' })).response
  await exchange.subAccountTransfer({ subAccountUser: sub, isDeposit: true, usd: 2_000_000_000 })
  await exchange.order(market(0, true, '101000', '0.01'), { vaultAddress: sub })
  const [seen] = (await info.subAccounts({ user })) ?? []
  assert.deepEqual([seen?.name, seen?.subAccountUser, seen?.master], ['desk', sub, user])
  assert.equal(seen?.clearinghouseState.assetPositions[0]?.position.szi, '0.01')
  assert.deepEqual((await info.clearinghouseState({ user })).assetPositions, [])
  assert.deepEqual(await info.userRole({ user: sub }), { role: 'subAccount', data: { master: user } })
  await exchange.order(market(0, false, '99000', '0.01'), { vaultAddress: sub })
  await exchange.subAccountModify({ subAccountUser: sub, name: 'new' })
  await exchange.subAccountTransfer({ subAccountUser: sub, isDeposit: false, usd: 1_900_000_000 })
  const other = await trader()
  const wrong = other.exchange.order(market(0, true, '101000', '0.01'), { vaultAddress: sub })
  assert.match(await errorOf(wrong), /^Vault not registered/)
  await assertConserved()
})

test('an asset is sent between the sides of an account and to another one', async () => {
  const one = await trader('1000')
  const send = (destination: `0x${string}`, sourceDex: string, destinationDex: string, amount: string) =>
    one.exchange.sendAsset({
      destination,
      sourceDex,
      destinationDex,
      token: usdcToken,
      amount,
      fromSubAccount: '',
    })
  await send(one.user, '', 'spot', '300')
  assert.equal((await usdOf(one)).total, 300)
  const to = `0x${'78'.repeat(20)}` as const
  await send(to, 'spot', '', '120')
  assert.equal((await one.info.clearinghouseState({ user: to })).withdrawable, '120.0')
  assert.equal(await errorOf(send(to, 'spot', 'spot', '181')), 'Insufficient balance for token transfer')
  const [latest] = (await one.info.userNonFundingLedgerUpdates({ user: to })).slice(-1)
  assert.equal(latest?.delta.type, 'send')
  await assertConserved()
})

test('a TWAP order trades every half minute, is listed, and can be cancelled', async () => {
  const { exchange, info, user } = await trader('10000')
  const place = (m: number) =>
    exchange.twapOrder({ twap: { a: 0, b: true, s: '0.1', r: false, m, t: false } })
  await assert.rejects(
    place(5).then(() => place(1)),
    /TWAP duration|minValue|Invalid/,
  )
  await venue.control('POST', '/advance', { ms: 60_000 })
  await eventually('three slices', async () => {
    const { assetPositions } = await info.clearinghouseState({ user })
    return assetPositions[0]?.position.szi === '0.03' ? true : undefined
  })
  const { twapStates } = await info.webData2({ user })
  const [[twapId, state] = [0, undefined]] = twapStates
  assert.deepEqual([state?.executedSz, state?.sz], ['0.03', '0.1'])
  const slices = await info.userTwapSliceFills({ user })
  assert.deepEqual([slices.length, slices[0]?.twapId], [3, twapId])
  await exchange.twapCancel({ a: 0, t: twapId })
  await venue.control('POST', '/advance', { ms: 60_000 })
  assert.equal((await info.clearinghouseState({ user })).assetPositions[0]?.position.szi, '0.03')
  const history = await info.twapHistory({ user })
  assert.deepEqual(
    history.map(({ status }) => status.status),
    ['terminated', 'activated'],
  )
})

test('signatures for the test network are valid unless the venue is configured for one network', async () => {
  const { wallet, user } = await trader()
  const transport = new HttpTransport({ apiUrl: venue.url, rpcUrl: venue.url, isTestnet: true })
  const testnet = new ExchangeClient({ transport, wallet })
  const send = { destination: `0x${'79'.repeat(20)}` as const, amount: '1' }
  await testnet.setDisplayName({ displayName: 'x' })
  await testnet.usdSend(send)
  await venue.control('POST', '/realism', { network: 'mainnet' })
  assert.match(await errorOf(testnet.setDisplayName({ displayName: 'x' })), /does not exist/)
  assert.match(await errorOf(testnet.usdSend(send)), /hyperliquidChain/)
  await venue.control('POST', '/realism', { network: 'testnet' })
  await testnet.setDisplayName({ displayName: 'x' })
  const mainnet = new ExchangeClient({
    transport: new HttpTransport({ apiUrl: venue.url, rpcUrl: venue.url }),
    wallet,
  })
  assert.match(await errorOf(mainnet.setDisplayName({ displayName: 'x' })), /does not exist/)
  await venue.control('POST', '/realism', { preset: 'quiet' })
  await mainnet.setDisplayName({ displayName: 'x' })
  assert.ok(user)
})

test('the older name of the channel for user events delivers fills', async () => {
  const { exchange, user } = await trader()
  const socket = new WebSocket(venue.wsUrl)
  await new Promise((resolve) => socket.once('open', resolve))
  const seen: { channel: string; data: { fills?: unknown[] } }[] = []
  socket.on('message', (data) => seen.push(JSON.parse(String(data))))
  socket.send(JSON.stringify({ method: 'subscribe', subscription: { type: 'user', user } }))
  await eventually('the subscription', () =>
    seen.some(({ channel }) => channel === 'subscriptionResponse') ? true : undefined,
  )
  await exchange.order(market(0, true, '101000', '0.001'))
  const fills = await eventually('the fill', () => seen.find(({ channel }) => channel === 'user'))
  assert.equal(fills.data.fills?.length, 1)
  socket.close()
})

test('past funding is listed, and an unsupported list is empty', async () => {
  const { info } = await trader()
  const startTime = Date.now() - 7 * 86_400_000
  const rates = await info.fundingHistory({ coin: 'BTC', startTime })
  assert.ok(rates.length >= 160 && rates.length <= 170, `${rates.length}`)
  assert.ok(rates.every(({ time }, at) => at === 0 || time - (rates[at - 1]?.time ?? 0) === 3_600_000))
  assert.ok(new Set(rates.map(({ fundingRate }) => fundingRate)).size > 1)
  assert.deepEqual(await info.outcomeMeta(), { outcomes: [], questions: [] })
  assert.equal((await postRaw(venue, { type: 'noSuchThing' })).status, 422)
})

test('an order above the largest value is rejected with that value', async () => {
  const { exchange } = await trader('90000000')
  const reply = await errorOf(
    exchange.order({
      orders: [{ a: 6, b: true, p: '38', s: '200000', r: false, t: { limit: { tif: 'Gtc' } } }],
      grouping: 'na',
    }),
  )
  assert.equal(reply, 'Order value too large. Max is $5000000.')
})
