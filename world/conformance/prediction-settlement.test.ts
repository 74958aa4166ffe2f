/** Random settlements that mint, trade and merge at once, against a model: no unit is made or lost. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringToHex } from 'viem'
import { addressOf } from '#world/polymarket/chain/accounts.ts'
import { prepareCall, redeemCalls, reportCall, settleCall } from '#world/polymarket/chain/calls.ts'
import type { ChainMarket, Fill, Side } from '#world/polymarket/chain/chain-terms.ts'
import { binaryMarketV2, negRiskEvent, negRiskEventV2, standardMarket } from '#world/polymarket/chain/ids.ts'
import { exchangeOf } from '#world/polymarket/chain/orders.ts'
import { nextInteger } from '#world/venue-core/random.ts'
import { bySize, proofSeed } from '../../test/proof/support/seed.ts'
import {
  fillOf,
  keyOf,
  orderOf,
  ownTrader,
  safeTrader,
  sharedPolygon,
  type Trader,
  walletTrader,
} from './prediction/polygon.ts'

const settlements = bySize({ short: 24, full: 400, nightly: 4_000 })
/** Cash of a price in thousandths is a whole number of units. */
const lot = 1_000n

type Holdings = { cash: bigint; shares: Map<bigint, bigint> }
type Part = { trader: Trader; side: Side; outcome: 0 | 1; shares: bigint }

test('random settlements leave each trader with what the model says, and all money is paid out', async () => {
  const polygon = await sharedPolygon()
  const { sender, reads } = polygon
  const seed = proofSeed('settlement')
  const random = { at: seed }
  const upTo = (most: bigint) => lot * BigInt(nextInteger(random, Number(most / lot) + 1))
  const pick = <T>(list: readonly T[]): T => list[nextInteger(random, list.length)] as T

  const standard = standardMarket(keyOf(`standard ${seed}`))
  const events = [negRiskEvent, negRiskEventV2].map((make) => make(stringToHex(`event ${seed}`), 2))
  const binary = binaryMarketV2(stringToHex(`binary ${seed}`))
  await sender.send('resolver', prepareCall([standard, binary, ...events]))
  const markets = [standard, binary, ...events.map((event) => event.markets[0] as ChainMarket)]
  const traders = [
    await walletTrader(polygon),
    await walletTrader(polygon),
    await safeTrader(polygon),
    await ownTrader(polygon),
  ]
  const model = new Map<Trader, Holdings>()
  for (const trader of traders)
    model.set(trader, { cash: (await reads.dollars(trader.address)).pusd, shares: new Map() })
  const held = (trader: Trader, id: bigint) => model.get(trader)?.shares.get(id) ?? 0n
  const feesBefore = (await reads.dollars(addressOf('operator'))).pusd
  let fees = 0n

  /** Bought and sold of YES and NO, such that as much of each is minted or merged. */
  const drawParts = (market: ChainMarket): Part[] => {
    const sellers = [pick(traders), pick(traders)] as const
    const most = 20_000_000n
    const sold = market.outcomeIds.map((id, i) => upTo(held(sellers[i as 0 | 1], id))) as [bigint, bigint]
    const boughtYes = upTo(most)
    const boughtNo = boughtYes - sold[0] + sold[1]
    const parts: Part[] = [
      { trader: pick(traders), side: 0, outcome: 0, shares: boughtYes },
      { trader: pick(traders), side: 0, outcome: 1, shares: boughtNo },
      { trader: sellers[0], side: 1, outcome: 0, shares: sold[0] },
      { trader: sellers[1], side: 1, outcome: 1, shares: sold[1] },
    ]
    return boughtNo < 0n ? [] : parts.filter(({ shares }) => shares > 0n)
  }

  const settle = async (index: number): Promise<void> => {
    const market = pick(markets)
    const exchange = exchangeOf(market)
    const yesPrice = BigInt(1 + nextInteger(random, 999))
    const parts = drawParts(market)
    if (parts.length < 2) return
    const fills: Fill[] = []
    for (const { trader, side, outcome, shares } of parts) {
      const price = outcome === 0 ? yesPrice : 1_000n - yesPrice
      // The order is larger, and its limit may be better for the others.
      const limit = side === 0 ? price + BigInt(nextInteger(random, 1_000 - Number(price))) : price
      const tokenId = market.outcomeIds[outcome]
      const order = await orderOf(trader, exchange, {
        side,
        tokenId,
        shares: shares + upTo(lot * 9n),
        price: limit,
      })
      const cash = (shares * price) / 1_000n
      const fee = BigInt(nextInteger(random, Number(cash / 10n) + 1))
      fills.push(fillOf(order, shares, cash, fee))
      const own = model.get(trader) as Holdings
      own.cash += side === 0 ? -cash - fee : cash - fee
      own.shares.set(tokenId, held(trader, tokenId) + (side === 0 ? shares : -shares))
      fees += fee
    }
    const key = keyOf(`${seed} ${index}`)
    await sender.send('operator', settleCall({ exchange, key, conditionId: market.conditionId, fills }))
  }

  for (let index = 0; index < settlements; index++) await settle(index)
  const ids = markets.flatMap((market) => market.outcomeIds)
  for (const trader of traders) {
    assert.equal((await reads.dollars(trader.address)).pusd, model.get(trader)?.cash, `seed ${seed}`)
    assert.deepEqual(
      await reads.shares(trader.address, ids),
      ids.map((id) => held(trader, id)),
      `seed ${seed}`,
    )
  }
  assert.equal((await reads.dollars(addressOf('operator'))).pusd - feesBefore, fees)

  const start = 4n * 1_000_000_000n
  for (const market of markets) {
    await sender.send('resolver', reportCall(market, pick(['yes', 'no'])))
    for (const trader of traders) {
      const amounts = market.outcomeIds.map((id) => held(trader, id)) as [bigint, bigint]
      await trader.run(redeemCalls(market, amounts))
    }
  }
  const ended = await Promise.all(traders.map(async ({ address }) => (await reads.dollars(address)).pusd))
  assert.equal(
    ended.reduce((sum, units) => sum + units, fees),
    start,
    `seed ${seed}`,
  )
  const { supply, locked, usdc, usdce } = await reads.backing()
  assert.equal(supply + locked, usdc + usdce)
})
