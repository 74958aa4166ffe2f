import { newCloid, type Trader, traderAt } from './trader.ts'
import type { RunningVenue } from './venue.ts'

const limit = (tif: 'Gtc' | 'Ioc' | 'Alo') => ({ limit: { tif } })
const trigger = (triggerPx: string, tpsl: 'tp' | 'sl', isMarket = true) => ({
  trigger: { isMarket, triggerPx, tpsl },
})

/** Two accounts with every kind of record. */
export const populateVenue = async (venue: RunningVenue): Promise<{ busy: Trader; ruined: Trader }> => {
  const busy = await traderAt(venue, 501, '200000')
  const ruined = await traderAt(venue, 502, '1000')
  await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })
  await venue.control('POST', '/price', { coin: 'ETH', price: 3_000 })
  await venue.control('POST', '/price', { coin: 'SOL', price: 150 })
  await venue.control('POST', '/price', { coin: 'PURR/USDC', price: 0.2 })
  const { exchange, user } = busy
  await exchange.approveAgent({ agentAddress: `0x${'ab'.repeat(20)}`, agentName: 'bot' })
  await exchange.approveAgent({ agentAddress: `0x${'cd'.repeat(20)}` })
  await exchange.approveBuilderFee({ builder: ruined.user, maxFeeRate: '0.01%' })
  await exchange.usdClassTransfer({ amount: '5000', toPerp: false })
  await exchange.usdSend({ destination: ruined.user, amount: '100' })
  await exchange.withdraw3({ destination: user, amount: '20' })
  await exchange.updateLeverage({ asset: 1, isCross: false, leverage: 5 })
  await exchange.order({
    orders: [
      { a: 0, b: true, p: '101000', s: '0.1', r: false, t: limit('Ioc'), c: newCloid() },
      { a: 0, b: false, p: '110000', s: '0.1', r: true, t: trigger('120000', 'tp') },
      { a: 0, b: false, p: '80000', s: '0.1', r: true, t: trigger('90000', 'sl', false) },
    ],
    grouping: 'normalTpsl',
    builder: { b: ruined.user, f: 5 },
  })
  await exchange.order({
    orders: [{ a: 1, b: false, p: '2900', s: '2', r: false, t: limit('Ioc') }],
    grouping: 'na',
  })
  await exchange.order({
    orders: [
      { a: 1, b: true, p: '2400', s: '0', r: true, t: trigger('2500', 'tp') },
      { a: 1, b: true, p: '3600', s: '0', r: true, t: trigger('3500', 'sl') },
    ],
    grouping: 'positionTpsl',
  })
  await exchange.order({
    orders: [
      { a: 2, b: true, p: '120', s: '3', r: false, t: limit('Gtc') },
      { a: 2, b: false, p: '200', s: '3', r: true, t: trigger('180', 'tp') },
    ],
    grouping: 'normalTpsl',
  })
  await exchange.order({
    orders: [
      { a: 10_000, b: true, p: '0.21', s: '1000', r: false, t: limit('Ioc'), c: newCloid() },
      { a: 10_000, b: false, p: '0.3', s: '500', r: false, t: limit('Gtc') },
    ],
    grouping: 'na',
  })
  await exchange.spotSend({
    destination: ruined.user,
    token: 'PURR:0xc1fb593aeffbeb02f85e0308e9956a90',
    amount: '10',
  })
  await ruined.exchange.updateLeverage({ asset: 2, isCross: true, leverage: 20 })
  await ruined.exchange.order({
    orders: [
      { a: 2, b: true, p: '155', s: '130', r: false, t: limit('Ioc') },
      { a: 2, b: false, p: '170', s: '10', r: false, t: limit('Gtc') },
    ],
    grouping: 'na',
  })
  await venue.control('POST', '/funding')
  await venue.control('POST', '/price', { coin: 'SOL', price: 146.2 })
  await venue.control('POST', '/price', { coin: 'SOL', price: 143 })
  return { busy, ruined }
}
