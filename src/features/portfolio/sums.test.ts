import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assetsMax } from './contract.ts'
import { type Held, sumsOf, worth } from './sums.ts'

const held = (given: Partial<Held>): Held => ({
  place: 'wallets',
  chainId: '8453',
  chainName: 'Base',
  symbol: 'USDC',
  name: 'USD Coin',
  amount: '1',
  valueUsd: '1',
  ...given,
})
const asOf = '2026-01-01T00:00:00.000Z'

test('the parts, the chains and the assets divide the same sum', () => {
  const found = sumsOf([
    {
      place: 'wallets',
      asOf,
      held: [held({ amount: '60', valueUsd: '60' }), held({ symbol: 'ETH', valueUsd: '15' })],
    },
    { place: 'vault', asOf, held: [held({ place: 'vault', symbol: 'evUSDC', valueUsd: '25' })] },
    { place: 'perp', asOf: undefined, held: [] },
  ])
  assert.equal(found.total_usd, '100')
  assert.deepEqual(
    found.parts.map(({ place, value_usd, share }) => [place, value_usd, share]),
    [
      ['wallets', '75', '0.75'],
      ['vault', '25', '0.25'],
      ['perp', null, null],
    ],
  )
  assert.deepEqual(found.by_chain, [{ chain_id: '8453', name: 'Base', value_usd: '100', share: '1' }])
  assert.deepEqual(
    found.by_asset.map(({ symbol, value_usd }) => [symbol, value_usd]),
    [
      ['USDC', '60'],
      ['evUSDC', '25'],
      ['ETH', '15'],
    ],
  )
})

test('what has no price counts as nothing and is named', () => {
  const found = sumsOf([{ place: 'wallets', asOf, held: [held({}), held({ symbol: 'X', valueUsd: null })] }])
  assert.deepEqual([found.total_usd, found.unpriced], ['1', ['X']])
})

test('assets beyond the limit are one sum', () => {
  const rows = Array.from({ length: assetsMax + 3 }, (_, at) => held({ symbol: `T${at}`, valueUsd: '2' }))
  const found = sumsOf([{ place: 'wallets', asOf, held: rows }])
  assert.deepEqual([found.by_asset.length, found.other_assets_usd], [assetsMax, '6'])
})

test('an asset that is counted in several units has no amount', () => {
  const rows = [held({ symbol: 'shares', amount: undefined }), held({ symbol: 'shares', amount: '3' })]
  assert.equal(sumsOf([{ place: 'predictions', asOf, held: rows }]).by_asset[0]?.amount, null)
})

test('an account with a loss above its money has no shares of a total', () => {
  const found = sumsOf([{ place: 'perp', asOf, held: [held({ valueUsd: '-5' })] }])
  assert.deepEqual([found.total_usd, found.parts[0]?.share], ['-5', null])
})

test('what an amount is worth is exact to a micro-dollar, rounded down', () => {
  assert.equal(worth('0.000000000000000001', '3400'), '0')
  assert.equal(worth('2', '38.6'), '77.2')
  assert.equal(worth('0.123456789', '1.1'), '0.135802')
})
