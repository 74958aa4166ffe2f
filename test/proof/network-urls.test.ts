import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigRefused, readConfig } from '#config.ts'

const problemsOf = (env: Record<string, string>): string[] => {
  try {
    readConfig(env)
    return []
  } catch (refused) {
    if (!(refused instanceof ConfigRefused)) throw refused
    return refused.problems.filter((problem) => problem.startsWith('HYPERLIQUID'))
  }
}

test('a URL of another network of the venue is refused', () => {
  const mainnet = 'https://api.hyperliquid.xyz'
  const testnet = 'https://api.hyperliquid-testnet.xyz'
  const refused = (network: string, url: string) =>
    problemsOf({ HYPERLIQUID_NETWORK: network, HYPERLIQUID_URL: url }).length > 0
  assert.deepEqual(
    ['mainnet', 'testnet', 'local'].map((network) =>
      [mainnet, testnet, 'local'].map((url) => refused(network, url)),
    ),
    [
      [false, true, true],
      [true, false, true],
      [true, true, false],
    ],
  )
  assert.equal(refused('testnet', 'http://10.0.0.7:3001'), false)
  const streams = { HYPERLIQUID_NETWORK: 'testnet', HYPERLIQUID_URL: testnet }
  assert.equal(problemsOf({ ...streams, HYPERLIQUID_WS_URL: 'wss://api.hyperliquid.xyz/ws' }).length, 1)
})

test('outside the local environment signatures are for the main network unless another one is named', () => {
  const staging = { ENVIRONMENT: 'staging', HYPERLIQUID_URL: 'https://api.hyperliquid-testnet.xyz' }
  assert.equal(problemsOf(staging).length, 1)
  assert.equal(problemsOf({ ...staging, HYPERLIQUID_NETWORK: 'testnet' }).length, 0)
  const production = { ...staging, ENVIRONMENT: 'production', HYPERLIQUID_NETWORK: 'testnet' }
  assert.deepEqual(problemsOf(production), ['HYPERLIQUID_NETWORK: production needs mainnet'])
})
