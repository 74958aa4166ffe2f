import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bridgeOf, custodyChains, platformLimits } from '#compose/settings.ts'
import { ConfigRefused, readConfig } from '#config.ts'
import { chainList } from '#features/chains/chain-list.ts'

const problemsOf = (env: Record<string, string>): string[] => {
  try {
    readConfig(env)
    return []
  } catch (refused) {
    if (!(refused instanceof ConfigRefused)) throw refused
    return refused.problems.filter((problem) => /^(HYPERLIQUID|ARBITRUM_SEPOLIA)/.test(problem))
  }
}

const sepolia = { ARBITRUM_SEPOLIA_RPC_URL: 'https://sepolia-rollup.arbitrum.io/rpc' }
const mainBridge = '0x2Df1c51E09aECF9cacB7bc98cB1742757f163dF7'

test('a URL of another network of the venue is rejected', () => {
  const mainnet = 'https://api.hyperliquid.xyz'
  const testnet = 'https://api.hyperliquid-testnet.xyz'
  const refused = (network: string, url: string) =>
    problemsOf({ ...sepolia, HYPERLIQUID_NETWORK: network, HYPERLIQUID_URL: url }).length > 0
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
  const streams = { ...sepolia, HYPERLIQUID_NETWORK: 'testnet', HYPERLIQUID_URL: testnet }
  assert.equal(problemsOf({ ...streams, HYPERLIQUID_WS_URL: 'wss://api.hyperliquid.xyz/ws' }).length, 1)
})

test('outside the local environment signatures are for the main network by default', () => {
  const staging = {
    ...sepolia,
    ENVIRONMENT: 'staging',
    HYPERLIQUID_URL: 'https://api.hyperliquid-testnet.xyz',
  }
  assert.equal(problemsOf(staging).length, 1)
  assert.equal(problemsOf({ ...staging, HYPERLIQUID_NETWORK: 'testnet' }).length, 0)
  const production = { ...staging, ENVIRONMENT: 'production', HYPERLIQUID_NETWORK: 'testnet' }
  assert.deepEqual(problemsOf(production), ['HYPERLIQUID_NETWORK: production requires mainnet'])
})

test('the test network takes its deposits on its own chain and bridge, never on those of real dollars', () => {
  const url = { HYPERLIQUID_URL: 'https://api.hyperliquid-testnet.xyz' }
  const testnet = { ...url, HYPERLIQUID_NETWORK: 'testnet' }
  assert.deepEqual(problemsOf(testnet), [
    'ARBITRUM_SEPOLIA_RPC_URL: HYPERLIQUID_NETWORK=testnet requires it, because its deposits are made on this chain',
  ])
  assert.deepEqual(problemsOf({ ...testnet, ...sepolia, HYPERLIQUID_BRIDGE_ADDRESS: mainBridge }), [
    'HYPERLIQUID_BRIDGE_ADDRESS: the address is the bridge of mainnet, but HYPERLIQUID_NETWORK is testnet',
  ])

  const key = Buffer.from(Array.from({ length: 32 }, (_, at) => at)).toString('base64')
  const config = readConfig({
    ...testnet,
    ...sepolia,
    KEY_ENCRYPTION_KEYS: `own:${key}`,
    RECHARGE_TILLS: ',',
  })
  const bridge = bridgeOf(config)
  assert.equal(bridge.chainId, '421614')
  const urls = { '42161': 'http://127.0.0.1:1', '421614': 'http://127.0.0.1:2' }
  const table = chainList({ urls, finality: 'local' })
  const { contracts } = platformLimits(config, table, { venue: true, swaps: false, predictions: false })
  assert.deepEqual(contracts.slice(1), [bridge])
  const signed = custodyChains(config, table, { venue: true, swaps: false, predictions: false }).map(
    ({ chainId, contracts }) => [chainId, contracts],
  )
  assert.deepEqual(signed, [
    ['42161', []],
    ['421614', [bridge.address]],
  ])
})

test('the main network and the local one use the bridge on Arbitrum One', () => {
  assert.deepEqual(bridgeOf(readConfig({})), { chainId: '42161', address: mainBridge })
})
