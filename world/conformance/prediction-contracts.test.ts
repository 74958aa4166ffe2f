/** The contracts of the prediction market on the world's Polygon, through the module that the venue's servers use. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { stringToHex } from 'viem'
import { addressOf } from '#world/polymarket/chain/accounts.ts'
import { contracts, type Hex } from '#world/polymarket/chain/addresses.ts'
import {
  approveCall,
  autoRedeemCall,
  deployWalletCall,
  executeBatchCall,
  mergeCall,
  prepareCall,
  redeemCalls,
  reportCall,
  settleCall,
  splitCall,
} from '#world/polymarket/chain/calls.ts'
import type { ChainMarket, Fill, Side } from '#world/polymarket/chain/chain-terms.ts'
import { binaryMarketV2, negRiskEvent, negRiskEventV2, standardMarket } from '#world/polymarket/chain/ids.ts'
import { exchangeOf, orderHash, verifyOrder } from '#world/polymarket/chain/orders.ts'
import {
  fillOf,
  keyOf,
  operator,
  orderOf,
  ownTrader,
  type Polygon,
  safeTrader,
  sharedPolygon,
  sharesOf,
  signBatch,
  type Trader,
  walletTrader,
} from './prediction/polygon.ts'

const unit = 1_000_000n

const standard = standardMarket(keyOf('will it rain'))
const event = negRiskEvent(stringToHex('who wins'), 3)
const binary = binaryMarketV2(stringToHex('will it snow'))
const eventV2 = negRiskEventV2(stringToHex('who comes second'), 2)
const markets: [string, ChainMarket][] = [
  ['standard v1', standard],
  ['negRisk v1', event.markets[1]!],
  ['binary v2', binary],
  ['negRisk v2', eventV2.markets[1]!],
]

let polygon: Polygon
let wallet: Trader
let safe: Trader
let own: Trader

const assertBacked = async () => {
  const { supply, locked, usdc, usdce } = await polygon.reads.backing()
  assert.equal(supply + locked, usdc + usdce)
}

const dollarsOf = async (trader: Trader) => (await polygon.reads.dollars(trader.address)).pusd

const simulateSettlement = (market: ChainMarket, key: string, fills: readonly Fill[], from = operator) =>
  polygon.sender.simulate(
    from,
    settleCall({ exchange: exchangeOf(market), key: keyOf(key), conditionId: market.conditionId, fills }),
  )

const settle = (market: ChainMarket, key: string, fills: readonly Fill[]) =>
  polygon.sender.send(
    'operator',
    settleCall({ exchange: exchangeOf(market), key: keyOf(key), conditionId: market.conditionId, fills }),
  )

const order = (
  market: ChainMarket,
  trader: Trader,
  outcome: 0 | 1,
  [side, shares, price]: [Side, bigint, bigint],
) =>
  orderOf(trader, exchangeOf(market), {
    side,
    tokenId: market.outcomeIds[outcome],
    shares: shares * unit,
    price,
  })

before(async () => {
  polygon = await sharedPolygon()
  wallet = await walletTrader(polygon)
  safe = await safeTrader(polygon)
  own = await ownTrader(polygon)
  await polygon.sender.send('resolver', prepareCall([standard, event, binary, eventV2]))
})

test('a wallet is deployed once, holds its owner to nonce, deadline and signature, and has every approval', async () => {
  const { reads, sender } = polygon
  assert.equal(await reads.isDeployed(wallet.address), true)
  assert.equal(await reads.walletNonce(wallet.address), 1n)
  await sender.send('relayer', deployWalletCall(wallet.owner.address))
  for (const trader of [wallet, safe, own]) {
    const approvals = await reads.approvals(trader.address)
    assert.equal(approvals.length, 15)
    assert.ok(approvals.every(({ allowance }) => allowance > 0n))
  }
  const calls = [approveCall(contracts.usdc, contracts.onramp, 1n)]
  const attempt = async (change: { nonce?: bigint; deadline?: bigint; address?: Hex }, signer = wallet) => {
    const { nonce = 1n, deadline = 10n ** 11n, address = wallet.address } = change
    const { batch, signature } = await signBatch(signer.owner, address, { nonce, deadline, calls })
    return sender.simulate(operator, { ...executeBatchCall(batch, signature), to: wallet.address })
  }
  assert.equal(await attempt({}), undefined)
  assert.equal(await attempt({ nonce: 0n }), 'WrongNonce(0, 1)')
  assert.equal(await attempt({ deadline: 1_000n }), 'DeadlineExpired(1000)')
  assert.equal(await attempt({}, own), 'InvalidSignature()')
  assert.equal(await attempt({ address: safe.address }), `WrongWallet(${safe.address})`)
})

for (const [name, market] of markets)
  test(`${name}: orders of three kinds of account mint, trade and merge, to the unit`, async () => {
    const exchange = exchangeOf(market)
    const before = await Promise.all([wallet, safe, own].map(dollarsOf))
    const [buysYes, buysNo] = [
      await order(market, wallet, 0, [0, 10n, 400n]),
      await order(market, own, 1, [0, 10n, 620n]),
    ]
    // Only six of ten, and the taker pays less than its limit.
    const minting = [fillOf(buysNo, 6n * unit, 3_600_000n), fillOf(buysYes, 6n * unit, 2_400_000n)]
    const minted = await settle(market, `${name} mint`, minting)
    assert.equal(minted.status, 'success')
    assert.deepEqual(await sharesOf(polygon, wallet, market), [6n * unit, 0n])
    assert.deepEqual(await sharesOf(polygon, own, market), [0n, 6n * unit])
    const hash = orderHash(buysYes, exchange)
    assert.equal(await polygon.reads.filled(exchange, hash), 2_400_000n)
    assert.equal(await polygon.reads.isSettled(exchange, keyOf(`${name} mint`)), true)
    assert.deepEqual(verifyOrder(buysYes, exchange), {
      isValid: true,
      owner: wallet.owner.address,
      hash,
    })

    const [sellsYes, buysToo] = [
      await order(market, wallet, 0, [1, 4n, 500n]),
      await order(market, safe, 0, [0, 4n, 500n]),
    ]
    await settle(market, `${name} trade`, [
      fillOf(buysToo, 4n * unit, 2n * unit, 40_000n),
      fillOf(sellsYes, 4n * unit, 2n * unit, 10_000n),
    ])
    assert.deepEqual(await sharesOf(polygon, safe, market), [4n * unit, 0n])

    const [mergesYes, mergesNo] = [
      await order(market, safe, 0, [1, 3n, 250n]),
      await order(market, own, 1, [1, 3n, 700n]),
    ]
    await settle(market, `${name} merge`, [
      fillOf(mergesYes, 3n * unit, 900_000n),
      fillOf(mergesNo, 3n * unit, 2_100_000n),
    ])
    assert.deepEqual(await sharesOf(polygon, safe, market), [unit, 0n])
    assert.deepEqual(await sharesOf(polygon, own, market), [0n, 3n * unit])

    const now = await Promise.all([wallet, safe, own].map(dollarsOf))
    assert.deepEqual(
      now.map((units, i) => units - before[i]!),
      [-2_400_000n + 2_000_000n - 10_000n, -2_000_000n - 40_000n + 900_000n, -3_600_000n + 2_100_000n],
    )
    await assertBacked()
  })

test('a settlement happens once, by the operator, within every order, and adds up', async () => {
  const market = standard
  const mint = await Promise.all([
    order(market, wallet, 0, [0, 5n, 400n]),
    order(market, own, 1, [0, 5n, 600n]),
  ])
  const fills = (shares: bigint, yesCash: bigint, noCash: bigint, fee = 0n) => [
    fillOf(mint[0], shares, yesCash),
    fillOf(mint[1], shares, noCash, fee),
  ]
  const right = fills(5n * unit, 2n * unit, 3n * unit)
  const [yesHash, noHash] = mint.map((each) => orderHash(each, 'standardExchange'))
  assert.equal(await simulateSettlement(market, 'once', right), undefined)
  assert.equal(await simulateSettlement(market, 'once', right, own.address), `NotOperator(${own.address})`)
  assert.equal(
    await simulateSettlement(market, 'standard v1 mint', right),
    `AlreadySettled(${keyOf('standard v1 mint')})`,
  )
  assert.equal(
    await simulateSettlement(market, 'a', fills(5n * unit, 2n * unit + 1n, 3n * unit - 1n)),
    `WorseThanLimit(${yesHash})`,
  )
  assert.equal(
    await simulateSettlement(market, 'a', fills(6n * unit, 2_400_000n, 3_600_000n)),
    `OverFilled(${yesHash})`,
  )
  assert.equal(
    await simulateSettlement(market, 'a', fills(5n * unit, 2n * unit, 3n * unit - 1n)),
    'NotBalanced(-5000000, -5000000, 4999999)',
  )
  assert.equal(
    await simulateSettlement(market, 'a', fills(5n * unit, 2n * unit, 3n * unit, 300_001n)),
    `FeeTooHigh(${noHash})`,
  )
  assert.equal(await simulateSettlement(market, 'a', right.slice(1)), 'BadFillCount(1)')
  const [first, second] = right as [Fill, Fill]
  const forged = { ...first, order: { ...first.order, signature: second.order.signature } }
  assert.equal(await simulateSettlement(market, 'a', [forged, second]), `BadSignature(${yesHash})`)
  const ofAnother = { ...market, conditionId: event.markets[0]!.conditionId }
  assert.equal(await simulateSettlement(ofAnother, 'a', right), `NotOfThisMarket(${market.outcomeIds[0]})`)
})

for (const [name, market] of markets)
  test(`${name}: positions are split, merged, resolved and redeemed, by their owner or for them`, async () => {
    const { sender, reads } = polygon
    const start = await dollarsOf(wallet)
    const [yes, no] = await sharesOf(polygon, wallet, market)
    await wallet.run([splitCall(market, 20n * unit), mergeCall(market, 5n * unit)])
    assert.deepEqual(await sharesOf(polygon, wallet, market), [yes! + 15n * unit, no! + 15n * unit])
    assert.equal(start - (await dollarsOf(wallet)), 15n * unit)

    const isVoid = market === standard
    assert.deepEqual(await reads.resolution(market), { isPrepared: true, payouts: [0n, 0n], denominator: 0n })
    const outcome = isVoid ? 'void' : 'yes'
    const report = reportCall(market, outcome)
    assert.match((await sender.simulate(operator, report)) ?? '', /^NotResolver/)
    await sender.send('resolver', report)
    assert.match((await sender.simulate(addressOf('resolver'), report)) ?? '', /Already(Reported|Determined)/)
    const worth = isVoid ? [1n, 1n] : [1n, 0n]
    assert.deepEqual((await reads.resolution(market)).payouts, worth)

    const held = (await sharesOf(polygon, wallet, market)) as [bigint, bigint]
    const before = await dollarsOf(wallet)
    await wallet.run(redeemCalls(market, held))
    const paid = isVoid ? (held[0] + held[1]) / 2n : held[0]
    assert.equal((await dollarsOf(wallet)) - before, paid)

    const ofSafe = (await sharesOf(polygon, safe, market)) as [bigint, bigint]
    const safeBefore = await dollarsOf(safe)
    const redeem = autoRedeemCall(safe.address, market)
    await sender.send('autoRedeemer', redeem)
    assert.equal((await dollarsOf(safe)) - safeBefore, isVoid ? ofSafe[0] / 2n : ofSafe[0])
    assert.match((await sender.simulate(addressOf('autoRedeemer'), redeem)) ?? '', /^NothingHeld/)
    await own.run(redeemCalls(market, (await sharesOf(polygon, own, market)) as [bigint, bigint]))
    for (const trader of [wallet, safe, own])
      assert.deepEqual(await sharesOf(polygon, trader, market), [0n, 0n])
    await assertBacked()
  })

test('at most one market of an event resolves to YES', async () => {
  for (const { markets: together } of [event, eventV2]) {
    const [first] = together
    const second = await polygon.sender.simulate(addressOf('resolver'), reportCall(first!, 'yes'))
    assert.match(second ?? '', /AlreadyDetermined|MarketAlreadyDetermined/)
    await polygon.sender.send('resolver', reportCall(first!, 'no'))
    assert.throws(() => reportCall(first!, 'void'))
  }
})
