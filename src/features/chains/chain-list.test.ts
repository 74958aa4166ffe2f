import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chainIds, chainList, solanaId } from './chain-list.ts'

const [base, polygon, sepolia] = ['8453', '137', '421614']
const both = { relay: true, lifi: true }

type Settings = { providers?: { relay: boolean; lifi: boolean }; isSolanaSponsored?: boolean }

const operationsOf = (
  ids: readonly string[],
  settings: Settings = { providers: both },
): Record<string, readonly string[]> => {
  const urls = Object.fromEntries(ids.map((id) => [id, 'http://127.0.0.1']))
  const rows = chainList({ urls, finality: 'public', isSolanaSponsored: true, ...settings })
  return Object.fromEntries(rows.map(({ id, supportedOperations }) => [id, supportedOperations]))
}

test('a chain supports swaps where a provider serves it, and bridges where it serves another one too', () => {
  const everywhere = ['swap', 'bridge']
  assert.deepEqual(operationsOf([base, polygon, solanaId]), {
    [base]: everywhere,
    [polygon]: everywhere,
    [solanaId]: everywhere,
  })
  assert.deepEqual(operationsOf([base]), { [base]: ['swap'] })
  assert.deepEqual(operationsOf([base, sepolia]), { [base]: ['swap'], [sepolia]: [] })
})

test('without a provider nothing is supported, and Solana needs Relay and a sponsor', () => {
  assert.deepEqual(operationsOf([base, polygon, solanaId], {}), { [base]: [], [polygon]: [], [solanaId]: [] })
  const withLifi = operationsOf([base, polygon, solanaId], { providers: { relay: false, lifi: true } })
  assert.deepEqual(withLifi[solanaId], [])
  assert.deepEqual(withLifi[base], ['swap', 'bridge'])
  assert.deepEqual(operationsOf([base, solanaId], { providers: both, isSolanaSponsored: false }), {
    [base]: ['swap'],
    [solanaId]: [],
  })
})

test('the largest calls of a user fit into one transaction, with the margin of their estimate', () => {
  const urls = Object.fromEntries(chainIds.map((id) => [id, 'http://127.0.0.1']))
  const rows = chainList({ urls, finality: 'public' }).filter((row) => row.family === 'evm')
  assert.equal(rows.length, 5)
  for (const row of rows) {
    assert.ok((row.gas.callsMax * 13n) / 10n + 150_000n <= row.gas.txMax, row.id)
    assert.ok(row.gas.txMax <= 2n ** 24n, row.id)
  }
})
