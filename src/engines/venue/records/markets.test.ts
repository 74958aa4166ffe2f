import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findMarket } from './markets.ts'

test('a market is found by every name that traders and other clients use', () => {
  const perps = [{ symbol: 'BTC' }, { symbol: 'kPEPE' }]
  for (const asset of [
    'BTC',
    'btc',
    'hl:perp:BTC',
    'BTC-PERP',
    'BTC-USD',
    'BTC-USDC',
    'BTC/USDC',
    'BTC/USDC:USDC',
  ])
    assert.equal(findMarket('perp', perps, asset)?.symbol, 'BTC', asset)
  assert.equal(findMarket('perp', perps, 'KPEPE-PERP')?.symbol, 'kPEPE')
  const spots = [
    { symbol: 'BTC', base: 'UBTC', coin: '@142' },
    { symbol: 'HYPE', base: 'HYPE', coin: '@1' },
    { symbol: 'PURR', base: 'PURR', coin: 'PURR/USDC' },
  ]
  for (const asset of ['BTC', 'UBTC', 'ubtc/usdc', 'BTC-USDC', 'hl:spot:BTC', '@142'])
    assert.equal(findMarket('spot', spots, asset)?.symbol, 'BTC', asset)
  assert.equal(findMarket('spot', spots, '@1')?.symbol, 'HYPE')
  assert.equal(findMarket('spot', spots, 'PURR/USDC')?.symbol, 'PURR')
  for (const asset of ['@2', 'BTC:USDC', '-USD', 'BTCUSD'])
    assert.equal(findMarket('spot', spots, asset), undefined)
})
