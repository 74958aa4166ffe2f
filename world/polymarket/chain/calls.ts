import {
  type Abi,
  type ContractFunctionName,
  type EncodeFunctionDataParameters,
  encodeFunctionData,
  zeroAddress,
  zeroHash,
} from 'viem'
import * as abis from './abis.ts'
import { type Address, contracts, type Hex } from './addresses.ts'
import type {
  Call,
  ChainEvent,
  ChainMarket,
  SafeTransaction,
  Settlement,
  WalletBatch,
} from './chain-terms.ts'

/** Every call of the servers, without sending it. Where one account alone may send it, that account is named. */

const baseGas = 300_000n
const gasOfFill = 140_000n
const gasOfPreparation = 90_000n
const gasOfInnerCall = 700_000n
/** At least, of what is sent with a call (EIP-7623): a node drops a transaction with less. */
const gasOfByte = 40n
/** A transaction may have little more. */
const gasMax = 16_000_000n
/** Conditions in one transaction. */
export const preparedMax = 80

const atMost = (gas: bigint): bigint => (gas < gasMax ? gas : gasMax)
const binarySets = [1n, 2n]

const callOf = <const abi extends Abi, name extends ContractFunctionName<abi>>(
  to: Address,
  gas: bigint,
  parameters: EncodeFunctionDataParameters<abi, name>,
): Call => {
  const data = encodeFunctionData(parameters)
  return { to, gas: atMost(gas + (gasOfByte * BigInt(data.length)) / 2n), data }
}

/** `operator` */
export const settleCall = ({ exchange, key, conditionId, fills }: Settlement): Call => {
  const list = fills.map(({ order: { signature, ...order }, ...amounts }) => ({
    order,
    signature,
    ...amounts,
  }))
  const padded = `0x${conditionId.slice(2).padEnd(64, '0')}` as Hex
  const args = [key, padded, list] as const
  const gas = baseGas * 3n + gasOfFill * BigInt(fills.length)
  return callOf(contracts[exchange], gas, { abi: abis.exchangeAbi, functionName: 'matchOrders', args })
}

const prepareMarket = (market: ChainMarket): Call => {
  if (market.isNegRisk) throw new Error('Markets of an event are prepared with their event.')
  const functionName = 'prepareCondition'
  if (market.protocol === 'v2') {
    const args = [market.questionId] as const
    return callOf(contracts.binaryModule, 0n, { abi: abis.moduleAbi, functionName, args })
  }
  const args = [contracts.oracle, market.questionId, 2n] as const
  return callOf(contracts.conditionalTokens, 0n, { abi: abis.conditionalAbi, functionName, args })
}

const prepareEvent = ({ protocol, eventId, metadata, markets }: ChainEvent): Call[] => {
  if (protocol === 'v2') {
    const args = [metadata, BigInt(markets.length)] as const
    return [callOf(contracts.negRiskModule, 0n, { abi: abis.moduleAbi, functionName: 'prepareEvent', args })]
  }
  const abi = abis.negRiskAdapterAbi
  const question = { abi, functionName: 'prepareQuestion', args: [eventId, '0x'] } as const
  return [
    callOf(contracts.negRiskAdapter, 0n, { abi, functionName: 'prepareMarket', args: [0n, metadata] }),
    ...markets.map(() => callOf(contracts.negRiskAdapter, 0n, question)),
  ]
}

/** In the name of the oracle. */
const oracleCall = (calls: readonly Call[], gas: bigint): Call => {
  const list = calls.map(({ to, data }) => ({ target: to, data }))
  return callOf(contracts.oracle, gas, { abi: abis.oracleAbi, functionName: 'execute', args: [list] })
}

/** `resolver`: any number of markets and events, with at most `preparedMax` conditions. */
export const prepareCall = (markets: readonly (ChainMarket | ChainEvent)[]): Call => {
  const count = markets.reduce((sum, each) => sum + ('markets' in each ? each.markets.length : 1), 0)
  if (count > preparedMax) throw new Error(`${count} conditions are more than ${preparedMax}.`)
  const calls = markets.flatMap((each) => ('markets' in each ? prepareEvent(each) : prepareMarket(each)))
  return oracleCall(calls, baseGas + gasOfPreparation * BigInt(count + calls.length))
}

const reportOf = (market: ChainMarket, outcome: 'yes' | 'no' | 'void'): Call => {
  const [yes, no] = [outcome === 'no' ? 0n : 1n, outcome === 'yes' ? 0n : 1n]
  if (market.protocol === 'v2') {
    const args = [market.conditionId, yes, no] as const
    const module = market.isNegRisk ? contracts.negRiskModule : contracts.binaryModule
    return callOf(module, 0n, { abi: abis.moduleAbi, functionName: 'report', args })
  }
  if (market.isNegRisk) {
    const args = [market.questionId, outcome === 'yes'] as const
    const abi = abis.negRiskAdapterAbi
    return callOf(contracts.negRiskAdapter, 0n, { abi, functionName: 'reportOutcome', args })
  }
  const args = [market.questionId, [yes, no]] as const
  return callOf(contracts.conditionalTokens, 0n, {
    abi: abis.conditionalAbi,
    functionName: 'reportPayouts',
    args,
  })
}

/** `resolver`: YES, NO, or half each, which markets of an event do not have. */
export const reportCall = (market: ChainMarket, outcome: 'yes' | 'no' | 'void'): Call => {
  if (market.isNegRisk && outcome === 'void') throw new Error('A market of an event resolves to YES or NO.')
  return oracleCall([reportOf(market, outcome)], baseGas * 2n)
}

export const deployWalletCall = (owner: Address): Call =>
  callOf(contracts.walletFactory, baseGas, { abi: abis.walletAbi, functionName: 'deploy', args: [owner] })

export const executeBatchCall = (batch: WalletBatch, signature: Hex): Call => {
  const gas = baseGas + gasOfInnerCall * BigInt(batch.calls.length)
  return callOf(batch.wallet, gas, {
    abi: abis.walletAbi,
    functionName: 'execute',
    args: [batch, signature],
  })
}

export const executeSafeCall = (transaction: SafeTransaction, signature: Hex): Call => {
  const { safe, to, value, data, operation } = transaction
  const args = [to, value, data, operation, 0n, 0n, 0n, zeroAddress, zeroAddress, signature] as const
  return callOf(safe, gasMax / 2n, { abi: abis.walletAbi, functionName: 'execTransaction', args })
}

/** `autoRedeemer`: redeems what the owner, who has approved it, holds of the market. */
export const autoRedeemCall = (owner: Address, { protocol, conditionId, isNegRisk }: ChainMarket): Call => {
  const [abi, gas] = [abis.autoRedeemAbi, baseGas * 5n]
  if (protocol === 'v2') {
    const args = [owner, conditionId] as const
    return callOf(contracts.autoRedeem, gas, { abi, functionName: 'redeemPositions', args })
  }
  const args = [owner, conditionId, isNegRisk] as const
  return callOf(contracts.autoRedeem, gas, { abi, functionName: 'redeemTokens', args })
}

const adapterOf = ({ isNegRisk }: ChainMarket): Address =>
  isNegRisk ? contracts.negRiskCollateralAdapter : contracts.collateralAdapter

const openOrClose = (market: ChainMarket, amount: bigint, act: 'split' | 'merge'): Call => {
  if (market.protocol === 'v2') {
    const args = [market.conditionId, amount] as const
    return callOf(contracts.router, baseGas * 5n, { abi: abis.routerAbi, functionName: act, args })
  }
  const functionName = act === 'split' ? 'splitPosition' : 'mergePositions'
  const args = [contracts.pusd, zeroHash, market.conditionId, binarySets, amount] as const
  return callOf(adapterOf(market), baseGas * 5n, { abi: abis.conditionalAbi, functionName, args })
}

/** By the holder, also inside a batch. */
export const splitCall = (market: ChainMarket, amount: bigint): Call => openOrClose(market, amount, 'split')
export const mergeCall = (market: ChainMarket, amount: bigint): Call => openOrClose(market, amount, 'merge')

/** v1 redeems all; v2 `amounts` of YES and NO, by a call for each that is not zero. */
export const redeemCalls = (market: ChainMarket, amounts: readonly [bigint, bigint]): Call[] => {
  const gas = baseGas * 5n
  if (market.protocol === 'v2')
    return amounts.flatMap((amount, outcome) => {
      const args = [market.conditionId, BigInt(outcome), amount] as const
      const call = callOf(contracts.router, gas, { abi: abis.routerAbi, functionName: 'redeem', args })
      return amount === 0n ? [] : [call]
    })
  const args = [contracts.pusd, zeroHash, market.conditionId, binarySets] as const
  return [callOf(adapterOf(market), gas, { abi: abis.conditionalAbi, functionName: 'redeemPositions', args })]
}

export const wrapCall = (asset: Address, to: Address, amount: bigint): Call =>
  callOf(contracts.onramp, baseGas * 2n, {
    abi: abis.rampAbi,
    functionName: 'wrap',
    args: [asset, to, amount],
  })

export const unwrapCall = (asset: Address, to: Address, amount: bigint): Call =>
  callOf(contracts.offramp, baseGas * 2n, {
    abi: abis.rampAbi,
    functionName: 'unwrap',
    args: [asset, to, amount],
  })

/** `admin` */
export const pauseRampCall = (ramp: 'onramp' | 'offramp', asset: Address, state: 'open' | 'paused'): Call => {
  const functionName = state === 'paused' ? 'pause' : 'unpause'
  return callOf(contracts[ramp], baseGas, { abi: abis.rampAbi, functionName, args: [asset] })
}

/** Spenders of pUSD, then operators of conditional tokens and of positions. */
export const tradingApprovals = {
  pusd: [
    contracts.standardExchange,
    contracts.negRiskExchange,
    contracts.collateralAdapter,
    contracts.negRiskCollateralAdapter,
    contracts.router,
    contracts.exchangeV3,
    contracts.perpsDeposit,
  ],
  conditionalTokens: [
    contracts.standardExchange,
    contracts.negRiskExchange,
    contracts.collateralAdapter,
    contracts.negRiskCollateralAdapter,
    contracts.autoRedeem,
  ],
  positionManager: [contracts.router, contracts.exchangeV3, contracts.autoRedeem],
} as const satisfies Record<string, readonly Address[]>

export const approveCall = (token: Address, spender: Address, amount: bigint): Call =>
  callOf(token, baseGas, { abi: abis.erc20Abi, functionName: 'approve', args: [spender, amount] })

export const approveAllCall = (token: Address, operator: Address): Call =>
  callOf(token, baseGas, {
    abi: abis.erc1155Abi,
    functionName: 'setApprovalForAll',
    args: [operator, true],
  })

const unlimited = 2n ** 256n - 1n

/** The 7 + 8 approvals that trading needs, in the order of the official client. */
export const approvalCalls = (): Call[] => [
  ...tradingApprovals.pusd.map((spender) => approveCall(contracts.pusd, spender, unlimited)),
  ...tradingApprovals.conditionalTokens.map((each) => approveAllCall(contracts.conditionalTokens, each)),
  ...tradingApprovals.positionManager.map((each) => approveAllCall(contracts.positionManager, each)),
]
