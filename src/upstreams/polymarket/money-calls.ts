import { decodeEventLog, encodeFunctionData, pad, parseAbi } from 'viem/utils'
import { Fault } from '#kernel/contract/fault.ts'
import type { WalletCall } from '#kernel/money/prediction-actions.ts'
import type { Shares, VenueMoney } from '#kernel/money/prediction-setup.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { chainId, contracts, type Hex } from './contracts.ts'

/** The calls that move dollars and shares at the venue. https://docs.polymarket.com/concepts/pusd */

export const tokenAbi = parseAbi([
  'function approve(address spender, uint256 amount)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function transfer(address to, uint256 amount)',
  'function setApprovalForAll(address operator, bool approved)',
  'function isApprovedForAll(address owner, address operator) view returns (bool)',
  'function balanceOf(address owner, uint256 id) view returns (uint256)',
  'function safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] amounts, bytes data)',
])
const shareEventsAbi = parseAbi([
  'event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)',
  'event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values)',
])
const rampAbi = parseAbi([
  'function wrap(address asset, address to, uint256 amount)',
  'function unwrap(address asset, address to, uint256 amount)',
  'function paused(address asset) view returns (bool)',
])
const adapterAbi = parseAbi([
  'function redeemPositions(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] indexSets)',
  'function mergePositions(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] partition, uint256 amount)',
])
const routerAbi = parseAbi([
  'function merge(bytes31 conditionId, uint256 amount)',
  'function redeem(bytes31 conditionId, uint256 outcomeIndex, uint256 amount)',
])

const callOf = (to: string, data: Hex): WalletCall => ({ to, value: 0n, data })
const noParent = pad('0x')
/** The index sets of both outcomes in the first protocol. */
const bothOutcomes = [1n, 2n]

export const approveCall = (token: string, spender: string, units: bigint): WalletCall =>
  callOf(token, encodeFunctionData({ abi: tokenAbi, functionName: 'approve', args: [spender as Hex, units] }))

const rampCall = (
  functionName: 'wrap' | 'unwrap',
  { token, to, units }: { token: string; to: string; units: bigint },
): WalletCall => {
  const args = [token as Hex, to as Hex, units] as const
  const ramp = functionName === 'wrap' ? contracts.onramp : contracts.offramp
  return callOf(ramp, encodeFunctionData({ abi: rampAbi, functionName, args }))
}

/** The adapter that pays out the first protocol's shares in cash. */
const adapterOf = ({ isNegRisk }: PredictionMarket): Hex =>
  isNegRisk ? contracts.negRiskCollateralAdapter : contracts.collateralAdapter

const sharesTokenOf = ({ protocol }: Pick<PredictionMarket, 'protocol'>): Hex =>
  protocol === 'v2' ? contracts.positionManager : contracts.conditionalTokens

function outcomeIndex(market: PredictionMarket, outcomeId: string): bigint {
  const index = market.outcomes.findIndex((outcome) => outcome.outcomeId === outcomeId)
  if (index < 0) throw new Fault('internal', 'the outcome does not belong to the market')
  return BigInt(index)
}

function redeemCalls(market: PredictionMarket, shares: readonly Shares[]): WalletCall[] {
  const conditionId = market.marketId as Hex
  const held = shares.filter(({ sizeUnits }) => sizeUnits > 0n)
  if (market.protocol === 'v2')
    return held.map(({ outcomeId, sizeUnits }) => {
      const args = [conditionId, outcomeIndex(market, outcomeId), sizeUnits] as const
      return callOf(contracts.router, encodeFunctionData({ abi: routerAbi, functionName: 'redeem', args }))
    })
  if (held.length === 0) return []
  // The adapter redeems everything that the wallet has of the condition.
  const args = [contracts.pusd, noParent, conditionId, bothOutcomes] as const
  return [
    callOf(adapterOf(market), encodeFunctionData({ abi: adapterAbi, functionName: 'redeemPositions', args })),
  ]
}

function mergeCalls(market: PredictionMarket, pairUnits: bigint): WalletCall[] {
  const conditionId = market.marketId as Hex
  if (market.protocol === 'v2') {
    const args = [conditionId, pairUnits] as const
    return [callOf(contracts.router, encodeFunctionData({ abi: routerAbi, functionName: 'merge', args }))]
  }
  const args = [contracts.pusd, noParent, conditionId, bothOutcomes, pairUnits] as const
  return [
    callOf(adapterOf(market), encodeFunctionData({ abi: adapterAbi, functionName: 'mergePositions', args })),
  ]
}

const shareTokens = [contracts.conditionalTokens, contracts.positionManager].map((token) =>
  token.toLowerCase(),
)

/** Who sent how many shares by a log, which may be of another contract or event. */
function shareTransferOf({ address, topics, data }: Parameters<VenueMoney['sharesSent']>[1][number]) {
  if (!shareTokens.includes(address.toLowerCase())) return undefined
  try {
    const log = { topics: topics as [Hex, ...Hex[]], data: data as Hex }
    const { eventName, args } = decodeEventLog({ abi: shareEventsAbi, ...log })
    return eventName === 'TransferSingle'
      ? { from: args.from, ids: [args.id], values: [args.value] }
      : { from: args.from, ids: args.ids, values: args.values }
  } catch {
    return undefined
  }
}

const sharesSent: VenueMoney['sharesSent'] = (wallet, logs) =>
  logs.flatMap((log) => {
    const transfer = shareTransferOf(log)
    if (transfer?.from.toLowerCase() !== wallet.toLowerCase()) return []
    return transfer.ids.map((id, index) => ({
      outcomeId: String(id),
      sizeUnits: transfer.values[index] ?? 0n,
    }))
  })

const pausedCall = (ramp: Hex, token: string) => ({
  to: ramp,
  data: encodeFunctionData({ abi: rampAbi, functionName: 'paused', args: [token as Hex] }),
})

export const polymarketMoney: VenueMoney = {
  chainId: String(chainId),
  cashToken: contracts.pusd,
  wrappable: [
    { symbol: 'USDC', token: contracts.usdc },
    { symbol: 'USDC.e', token: contracts.usdce },
  ],
  wrapCalls: (token, units, to) => [
    approveCall(token, contracts.onramp, units),
    rampCall('wrap', { token, to, units }),
  ],
  unwrapCalls: (token, units, to) => [
    approveCall(contracts.pusd, contracts.offramp, units),
    rampCall('unwrap', { token, to, units }),
  ],
  transferCall: (to, units) =>
    callOf(
      contracts.pusd,
      encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [to as Hex, units] }),
    ),
  redeemCalls,
  mergeCalls,
  transferSharesCall(from, to, market, shares) {
    const ids = shares.map(({ outcomeId }) => BigInt(outcomeId))
    const amounts = shares.map(({ sizeUnits }) => sizeUnits)
    const args = [from as Hex, to as Hex, ids, amounts, '0x'] as const
    return callOf(
      sharesTokenOf(market),
      encodeFunctionData({ abi: tokenAbi, functionName: 'safeBatchTransferFrom', args }),
    )
  },
  wrapPausedCall: (token) => pausedCall(contracts.onramp, token),
  unwrapPausedCall: (token) => pausedCall(contracts.offramp, token),
  sharesSent,
  sharesCall: (wallet, market, outcomeId) => ({
    to: sharesTokenOf(market),
    data: encodeFunctionData({
      abi: tokenAbi,
      functionName: 'balanceOf',
      args: [wallet as Hex, BigInt(outcomeId)],
    }),
  }),
}
