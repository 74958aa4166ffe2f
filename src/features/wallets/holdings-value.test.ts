import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { SolanaChainRow } from '#kernel/money/chains.ts'
import { isDecimal } from '#kernel/money/money.ts'
import { holdingOf, priceKeyOf, totalUsd } from './holdings-value.ts'
import type { HeldToken } from './wallet-reading.ts'

const token = (symbol: string, decimals: number) => ({
  symbol,
  name: symbol,
  decimals,
  address: `${symbol}111`,
})
const chain: SolanaChainRow = {
  family: 'solana',
  depository: null,
  id: '7565164',
  name: 'solana',
  displayName: 'Solana',
  native: { ...token('SOL', 9), priceId: 'coingecko:solana' },
  supportedOperations: [],
  rpcUrl: 'http://127.0.0.1:1',
  confirmations: 1,
  usdc: 'USDC111',
  tokens: [],
  llamaSlug: 'solana',
  explorerUrl: 'https://example.org',
  readTimeoutMs: 1_500,
  isSponsored: false,
  finality: 'confirmed',
  statusPollMs: 100,
  fees: { priceFloorMicroLamports: 0n, priceCapMicroLamports: 1n },
}
const usdc = token('USDC', 6)
const at = new Date('2026-01-31T12:00:00Z')
const price = (text: string) => ({ price: text, at, symbol: null })
const facts = (text: string | null) => ({
  chain,
  block: 7n,
  source: 'defillama',
  price: text === null ? undefined : price(text),
})
const held = (amountUnits: bigint, more: Partial<HeldToken> = {}): HeldToken => ({
  kind: 'token',
  token: usdc,
  amountUnits,
  verified: true,
  ...more,
})

test('an unknown price leaves price and value null, and the total sums the known values', () => {
  const known = holdingOf(held(1_500_000n), facts('0.9998'))
  const unknown = holdingOf(held(9_000_000n), facts(null))
  assert.equal(known.value_usd, '1.4997')
  assert.equal(unknown.value_usd, null)
  assert.equal(unknown.price_usd, null)
  assert.equal(unknown.price_source, null)
  assert.equal(totalUsd([known, unknown, known]), '2.9994')
  assert.equal(totalUsd([]), '0')
})

test('a share is worth its part of the backing asset', () => {
  const share = token('lvUSDC', 18)
  const backing = { asset: usdc, amountUnits: 1_009_999_999n }
  const shares = held(1_000n * 10n ** 18n, { kind: 'earn_share', token: share, backing })
  const shown = holdingOf(shares, facts('1'))
  assert.equal(shown.value_usd, '1009.999999')
  assert.equal(shown.price_usd, '1.009999999')
  assert.equal(shown.balance, '1000')
  assert.equal(priceKeyOf(chain, shares), 'solana:USDC111')
  const { backing: _, ...bare } = shares
  assert.equal(holdingOf(bare, facts('1')).value_usd, null)
})

test('no number has an exponent, however small or large', () => {
  const amount = fc.bigInt({ min: 1n, max: 10n ** 30n })
  const prices = fc.constantFrom('0.000000000000000001', '0.00002', '100000', '3.141592653589793238')
  fc.assert(
    fc.property(amount, fc.integer({ min: 0, max: 18 }), prices, (amountUnits, decimals, text) => {
      const shown = holdingOf(held(amountUnits, { token: { ...usdc, decimals } }), facts(text))
      for (const each of [shown.balance, shown.price_usd, shown.value_usd]) assert.ok(isDecimal(each!), each!)
      assert.match(shown.amount, /^\d+$/)
    }),
  )
})
