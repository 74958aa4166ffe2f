import type { Config } from '#config.ts'
import type { FundingRoute } from '#features/perp/funding-route.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import { transferData } from '#upstreams/evm/token-calls.ts'
import type { Chains } from './chains.ts'
import { bridgeOf } from './settings.ts'

export function fundingRouteOn(config: Config, { usdc }: Pick<Chain, 'usdc'>): FundingRoute {
  const { chainId, address } = bridgeOf(config)
  return { chainId, symbol: 'USDC', token: usdc, bridge: address }
}

/** The transfer route of dollars to the venue; undefined where the chain of its bridge is not configured. */
export function openBridge(config: Config, { ports }: Chains) {
  const chain = ports.get(bridgeOf(config).chainId)?.chain
  if (!chain) return undefined
  const route = fundingRouteOn(config, chain.row)
  const transferCall = (token: string, to: string, amountUnits: bigint): EvmCall => ({
    to: token,
    value: 0n,
    data: transferData(to, amountUnits),
  })
  return { chain, route, transferCall }
}
