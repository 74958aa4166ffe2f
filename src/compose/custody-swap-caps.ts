import type { Chain } from '#kernel/money/chains.ts'
import { mulDiv, toMicros } from '#kernel/money/money.ts'

/** What policy and custody allow of swaps, from the chain table. */

/** Returns the contracts that a swap may call on a chain. */
export const swapContractsOf = (row: Chain): { chainId: string; address: string }[] => {
  if (row.family === 'solana')
    return row.depository === null ? [] : [{ chainId: row.id, address: row.depository.vault }]
  if (!row.swaps) return []
  const { routers, wrapped, depository, aggregator, relayRouters } = row.swaps
  const relayed = relayRouters.flatMap(({ router, approvalProxy }) => [router, approvalProxy])
  return [...routers, wrapped, depository, aggregator, ...relayed].flatMap((address) =>
    address === null ? [] : [{ chainId: row.id, address }],
  )
}

/** Custody knows no prices, so it assumes these dollars for a whole unit of a token, well below its price. */
const assumedUsd: Readonly<Record<string, string>> = {
  ETH: '500',
  WETH: '500',
  WBTC: '10000',
  cbBTC: '10000',
  LINK: '2',
  UNI: '1',
  ARB: '0.05',
  AERO: '0.1',
  POL: '0.05',
  WPOL: '0.05',
  USDC: '0.9',
  USDT: '0.9',
  DAI: '0.9',
  'USDC.e': '0.9',
  SOL: '20',
  JUP: '0.05',
  BONK: '0.000002',
  PYUSD: '0.9',
}

const capsOf = ({ native, tokens }: Chain, maxMicros: bigint): [string, bigint][] =>
  [native, ...tokens].flatMap(({ symbol, decimals, address }): [string, bigint][] => {
    const assumed = assumedUsd[symbol]
    if (assumed === undefined) return []
    return [[address, mulDiv(maxMicros, 10n ** BigInt(decimals), toMicros(assumed))]]
  })

/** Returns the most units of each listed token that one signature may release, by the address in lower case. */
export const swapCaps = (row: Chain, maxMicros: bigint): Record<string, bigint> =>
  Object.fromEntries(capsOf(row, maxMicros).map(([address, units]) => [address.toLowerCase(), units]))

/** Returns the most units of each listed token on Solana, by the address unchanged: it is case-sensitive. */
export const svmCaps = (row: Chain, maxMicros: bigint): Record<string, bigint> =>
  Object.fromEntries(capsOf(row, maxMicros))
