/** Money and accounts of the prediction market on the world's Polygon: ramps, delegated accounts, conversions, nonces. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { concat, encodeFunctionData, type Hex, parseTransaction, stringToHex } from 'viem'
import { artifact } from '#world/evm/artifact.ts'
import { executor } from '#world/evm/chains.ts'
import { rpcOver } from '#world/evm/rpc.ts'
import { negRiskAdapterAbi } from '#world/polymarket/chain/abis.ts'
import { addressOf } from '#world/polymarket/chain/accounts.ts'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import {
  approveAllCall,
  approveCall,
  deployWalletCall,
  pauseRampCall,
  prepareCall,
  redeemCalls,
  reportCall,
  settleCall,
  splitCall,
  unwrapCall,
  wrapCall,
} from '#world/polymarket/chain/calls.ts'
import { negRiskEvent, standardMarket, walletOf } from '#world/polymarket/chain/ids.ts'
import { exchangeOf } from '#world/polymarket/chain/orders.ts'
import { createSender } from '#world/polymarket/chain/sender.ts'
import { createChainIndex } from '#world/polymarket/chain-index.ts'
import type { Engine } from '#world/polymarket/machine.ts'
import { nextState, stepEach } from '#world/polymarket/sent.ts'
import { createVenue, newState } from '#world/polymarket/venue.ts'
import {
  fillOf,
  keyOf,
  orderOf,
  ownTrader,
  type Polygon,
  sharedPolygon,
  sharesOf,
  type Trader,
  walletTrader,
} from './prediction/polygon.ts'
import { eventually } from './venue/venue.ts'

const unit = 1_000_000n
let polygon: Polygon
let own: Trader

const assertBacked = async () => {
  const { supply, locked, usdc, usdce } = await polygon.reads.backing()
  assert.equal(supply + locked, usdc + usdce)
}

before(async () => {
  polygon = await sharedPolygon()
  own = await ownTrader(polygon)
})

test('an account that delegates its code receives shares as a contract does, and gives them', async () => {
  const { rpc, sender } = polygon
  const market = standardMarket(keyOf('delegated'))
  await sender.send('resolver', prepareCall([market]))
  const other = await walletTrader(polygon)
  await rpc.batch([
    { method: 'anvil_setCode', params: [executor, artifact('Executor').runtime] },
    { method: 'anvil_setCode', params: [own.address, concat(['0xef0100', executor])] },
  ])
  const trade = async (key: string, mine: 0 | 1) => {
    const terms = { tokenId: market.outcomeIds[0], shares: 10n * unit, price: 300n }
    const makers = [await orderOf(own, exchangeOf(market), { ...terms, side: mine })]
    makers.push(await orderOf(other, exchangeOf(market), { ...terms, side: mine === 0 ? 1 : 0 }))
    const fills = makers.map((order) => fillOf(order, 10n * unit, 3n * unit))
    const { conditionId } = market
    await sender.send(
      'operator',
      settleCall({ exchange: exchangeOf(market), key: keyOf(key), conditionId, fills }),
    )
  }
  await other.run([splitCall(market, 10n * unit)])
  await trade('delegated buys', 0)
  assert.deepEqual(await sharesOf(polygon, own, market), [10n * unit, 0n])
  await trade('delegated sells', 1)
  assert.deepEqual(await sharesOf(polygon, own, market), [0n, 0n])
  // Without the receiver's code the account would be refused.
  await rpc.call('anvil_setCode', [own.address, concat(['0xef0100', contracts.pusd])])
  await assert.rejects(trade('delegated to another', 0), /ERC1155InvalidReceiver/)
  await rpc.call('anvil_setCode', [own.address, '0x'])
  await assertBacked()
})

test('NO of two questions converts to YES of the third and a dollar, and all of it is paid', async () => {
  const { reads, sender } = polygon
  const { eventId, markets, ...event } = negRiskEvent(stringToHex('conversion'), 3)
  await sender.send('resolver', prepareCall([{ ...event, eventId, markets }]))
  const trader = await walletTrader(polygon)
  const start = (await reads.dollars(trader.address)).pusd
  await trader.run([
    ...markets.slice(0, 2).map((market) => splitCall(market, 6n * unit)),
    approveAllCall(contracts.conditionalTokens, contracts.negRiskAdapter),
    {
      to: contracts.negRiskAdapter,
      data: encodeFunctionData({
        abi: negRiskAdapterAbi,
        functionName: 'convertPositions',
        args: [eventId, 0b011n, 4n * unit],
      }),
    },
  ])
  const held = await Promise.all(markets.map((market) => sharesOf(polygon, trader, market)))
  assert.deepEqual(held, [
    [6n * unit, 2n * unit],
    [6n * unit, 2n * unit],
    [4n * unit, 0n],
  ])
  assert.equal((await reads.dollars(trader.address)).usdce, 4n * unit)
  for (const [index, market] of markets.entries())
    await sender.send('resolver', reportCall(market, index === 2 ? 'yes' : 'no'))
  await trader.run(markets.flatMap((market) => redeemCalls(market, [0n, 0n])))
  // Twelve dollars were split: four came back as USDC.e, and eight by two NO of each and four YES.
  assert.equal(start - (await reads.dollars(trader.address)).pusd, 4n * unit)
  await assertBacked()
})

test('ramps take both dollars, one for the other, and pause each', async () => {
  const { money, sender, reads } = polygon
  const before = await reads.dollars(own.address)
  await money.mintDollars('usdc', own.address, 50n * unit)
  await own.run([
    approveCall(contracts.usdc, contracts.onramp, 50n * unit),
    wrapCall(contracts.usdc, walletOf(own.address), 20n * unit),
    wrapCall(contracts.usdc, own.address, 30n * unit),
    approveCall(contracts.pusd, contracts.offramp, 10n ** 12n),
    unwrapCall(contracts.usdce, own.address, before.pusd + 25n * unit),
  ])
  assert.deepEqual(await reads.dollars(own.address), {
    pusd: 5n * unit,
    usdc: before.usdc,
    usdce: before.usdce + before.pusd + 25n * unit,
  })
  assert.equal((await reads.dollars(walletOf(own.address))).pusd, 20n * unit)
  await assertBacked()
  await sender.send('admin', pauseRampCall('offramp', contracts.usdc, 'paused'))
  assert.equal(await reads.isRampPaused('offramp', contracts.usdc), true)
  assert.equal(
    await sender.simulate(own.address, unwrapCall(contracts.usdc, own.address, unit)),
    'OnlyUnpaused()',
  )
  assert.equal(await sender.simulate(own.address, unwrapCall(contracts.usdce, own.address, unit)), undefined)
  await sender.send('admin', pauseRampCall('offramp', contracts.usdc, 'open'))
})

test('an account sends again after the node was away when it had signed', async () => {
  const { rpc } = polygon
  let isAway = true
  const post = async (body: string) => {
    if (isAway && /eth_sendRawTransaction|eth_call/.test(body)) throw new Error('The node is away.')
    return rpc.post(body)
  }
  const sender = createSender(rpcOver(post, () => {}))
  const call = approveCall(contracts.pusd, contracts.offramp, 7n)
  await assert.rejects(sender.send('resolver', call), /away/)
  // Nobody has refused the call.
  await assert.rejects(sender.simulate(addressOf('resolver'), call), /away/)
  isAway = false
  const { status } = await sender.send('resolver', call)
  assert.equal(status, 'success')
})

test('transactions that replace others do not raise the price of those that follow', async () => {
  const { sender } = polygon
  const call = approveCall(contracts.pusd, contracts.offramp, 7n)
  let raw: Hex = '0x'
  for (let turn = 0; turn < 30; turn++) {
    const { nonce } = await sender.sign('autoRedeemer', call)
    const replacement = await sender.sign('autoRedeemer', call, { nonce })
    await sender.submit(replacement)
    raw = replacement.raw
  }
  assert.ok((parseTransaction(raw).maxFeePerGas ?? 0n) < 100_000_000_000n)
})

test('a transaction that is signed anew under its nonce replaces the first one', async () => {
  const { rpc, sender } = polygon
  await rpc.call('evm_setAutomine', [false])
  const call = deployWalletCall(addressOf('admin'))
  const first = await sender.sign('relayer', call)
  assert.deepEqual(await sender.stateOf(first), { state: 'unknown' })
  await sender.submit(first)
  await sender.submit(first)
  assert.deepEqual(await sender.stateOf(first), { state: 'pending' })
  const second = await sender.sign('relayer', call, { nonce: first.nonce })
  assert.notEqual(second.hash, first.hash)
  await sender.submit(second)
  await rpc.call('evm_mine')
  await rpc.call('evm_setAutomine', [true])
  const mined = await sender.stateOf(second)
  assert.ok(mined.state === 'mined' && mined.receipt.status === 'success')
  assert.deepEqual(await sender.stateOf(first), { state: 'replaced' })
})

test('a transaction that one look shows neither in the pool nor in a block is not replaced for that', async () => {
  const { rpc, sender } = polygon
  const sent = await sender.sign('resolver', approveCall(contracts.pusd, contracts.offramp, 7n))
  await sender.submit(sent)
  const state = () => sender.stateOf(sent)
  await eventually('the block', async () => (await state()).state === 'mined' || undefined)
  let hidden = 2
  const post = async (body: string) => {
    const answers = JSON.parse(await rpc.post(body)) as { result: unknown }[]
    return JSON.stringify(answers.map((answer) => (hidden-- > 0 ? { ...answer, result: null } : answer)))
  }
  assert.equal((await createSender(rpcOver(post, () => {})).stateOf(sent)).state, 'mined')
})

test('a chain that lost its last blocks is not read again from the first one', async () => {
  const { rpc } = polygon
  const venue = createVenue(newState(7, 0))
  const head = Number(await rpc.call('eth_blockNumber'))
  venue.state.scannedBlock = head + 10
  let from = ''
  const post = (body: string) => {
    from = /"fromBlock":"(0x[0-9a-f]+)"/.exec(body)?.[1] ?? from
    return rpc.post(body)
  }
  const engine = { venue, nowMs: () => 0, submit: () => undefined } as unknown as Engine
  await createChainIndex(
    engine,
    rpcOver(post, () => {}),
  )()
  assert.ok(Number(from) >= Math.max(0, head - 30), from)
  assert.ok(Number(from) > 0, 'the chain is long enough')
})

test('bytes that a node never takes are given up, and hold back nothing', async () => {
  const { sender } = polygon
  // More than their old price, less than the floor of today.
  const call = { to: contracts.pusd, data: `0x${'11'.repeat(10_000)}`, gas: 300_000n } as const
  const attempt = await sender.sign('resolver', call)
  const sent = { state: 'STATE_EXECUTED', hash: attempt.hash, attempt } as const
  const isGivenUp = async () =>
    (await nextState(sender, sent).catch(() => undefined)) === 'STATE_FAILED' ? true : undefined
  await eventually('the bytes are given up', isGivenUp)
  const next = await sender.send('resolver', approveCall(contracts.pusd, contracts.offramp, 7n))
  assert.equal(next.status, 'success')
})

test('a step that fails ends no other one', async () => {
  const done: number[] = []
  const step = async (item: number) => {
    if (item === 2) throw new Error('the second')
    done.push(item)
  }
  await assert.rejects(stepEach([1, 2, 3], step), /the second/)
  assert.deepEqual(done, [1, 3])
})
