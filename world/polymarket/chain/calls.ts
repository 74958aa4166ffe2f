import { encodeFunctionData, zeroAddress, zeroHash } from 'viem'
import * as abis from './abis.ts'
import { type Address, contracts, type Hex } from './addresses.ts'
import type { Call, CallFunctions, ChainEvent, ChainMarket } from './types.ts'

/** Every call of the servers, without sending it. */

const baseGas = 300_000n
const gasOfFill = 350_000n
const gasOfPreparation = 180_000n
const gasOfInnerCall = 700_000n
/** Of all that a transaction may have. */
const gasMax = 16_000_000n
/** Conditions in one transaction. */
export const preparedMax = 80

const atMost = (gas: bigint): bigint => (gas < gasMax ? gas : gasMax)
const binarySets = [1n, 2n]

export const settleCall: CallFunctions['settleCall'] = ({ exchange, key, conditionId, fills }) => {
  const list = fills.map(({ order: { signature, ...order }, shares, cash, fee }) => ({
    order,
    signature,
    shares,
    cash,
    fee,
  }))
  const padded = `0x${conditionId.slice(2).padEnd(64, '0')}` as Hex
  return {
    to: contracts[exchange],
    data: encodeFunctionData({
      abi: abis.exchangeAbi,
      functionName: 'matchOrders',
      args: [key, padded, list],
    }),
    gas: atMost(baseGas * 3n + gasOfFill * BigInt(fills.length)),
  }
}

type OracleCall = { target: Address; data: Hex }

const prepareMarket = (market: ChainMarket): OracleCall[] => {
  if (market.isNegRisk) throw new Error('Markets of an event are prepared with their event.')
  if (market.protocol === 'v2') {
    const args = [market.questionId] as const
    const data = encodeFunctionData({ abi: abis.moduleAbi, functionName: 'prepareCondition', args })
    return [{ target: contracts.binaryModule, data }]
  }
  const args = [contracts.oracle, market.questionId, 2n] as const
  const data = encodeFunctionData({ abi: abis.conditionalAbi, functionName: 'prepareCondition', args })
  return [{ target: contracts.conditionalTokens, data }]
}

const prepareEvent = ({ protocol, eventId, metadata, markets }: ChainEvent): OracleCall[] => {
  if (protocol === 'v2') {
    const args = [metadata, BigInt(markets.length)] as const
    const data = encodeFunctionData({ abi: abis.moduleAbi, functionName: 'prepareEvent', args })
    return [{ target: contracts.negRiskModule, data }]
  }
  const abi = abis.negRiskAdapterAbi
  const target = contracts.negRiskAdapter
  return [
    { target, data: encodeFunctionData({ abi, functionName: 'prepareMarket', args: [0n, metadata] }) },
    ...markets.map(() => ({
      target,
      data: encodeFunctionData({ abi, functionName: 'prepareQuestion', args: [eventId, '0x'] }),
    })),
  ]
}

const oracleCall = (calls: readonly OracleCall[], gas: bigint): Call => ({
  to: contracts.oracle,
  data: encodeFunctionData({ abi: abis.oracleAbi, functionName: 'execute', args: [calls] }),
  gas: atMost(gas),
})

export const prepareCall: CallFunctions['prepareCall'] = (markets) => {
  const count = markets.reduce((sum, each) => sum + ('markets' in each ? each.markets.length : 1), 0)
  if (count > preparedMax) throw new Error(`${count} conditions are more than ${preparedMax}.`)
  const calls = markets.flatMap((each) => ('markets' in each ? prepareEvent(each) : prepareMarket(each)))
  return oracleCall(calls, baseGas + gasOfPreparation * BigInt(count + calls.length))
}

const reportOf = (market: ChainMarket, outcome: 'yes' | 'no' | 'void'): OracleCall => {
  const [yes, no] = [outcome === 'no' ? 0n : 1n, outcome === 'yes' ? 0n : 1n]
  if (market.isNegRisk && outcome === 'void') throw new Error('A market of an event resolves to YES or NO.')
  if (market.protocol === 'v2') {
    const target = market.isNegRisk ? contracts.negRiskModule : contracts.binaryModule
    const args = [market.conditionId, yes, no] as const
    return { target, data: encodeFunctionData({ abi: abis.moduleAbi, functionName: 'report', args }) }
  }
  if (market.isNegRisk) {
    const args = [market.questionId, outcome === 'yes'] as const
    const abi = abis.negRiskAdapterAbi
    return {
      target: contracts.negRiskAdapter,
      data: encodeFunctionData({ abi, functionName: 'reportOutcome', args }),
    }
  }
  const args = [market.questionId, [yes, no]] as const
  return {
    target: contracts.conditionalTokens,
    data: encodeFunctionData({ abi: abis.conditionalAbi, functionName: 'reportPayouts', args }),
  }
}

export const reportCall: CallFunctions['reportCall'] = (market, outcome) =>
  oracleCall([reportOf(market, outcome)], baseGas * 2n)

export const deployWalletCall: CallFunctions['deployWalletCall'] = (owner) => ({
  to: contracts.walletFactory,
  data: encodeFunctionData({ abi: abis.walletAbi, functionName: 'deploy', args: [owner] }),
  gas: baseGas,
})

export const executeBatchCall: CallFunctions['executeBatchCall'] = (batch, signature) => ({
  to: batch.wallet,
  data: encodeFunctionData({ abi: abis.walletAbi, functionName: 'execute', args: [batch, signature] }),
  gas: atMost(baseGas + gasOfInnerCall * BigInt(batch.calls.length)),
})

export const executeSafeCall: CallFunctions['executeSafeCall'] = (transaction, signature) => {
  const { safe, to, value, data, operation } = transaction
  const refund = [0n, 0n, 0n, zeroAddress, zeroAddress] as const
  const args = [to, value, data, operation, ...refund, signature] as const
  return {
    to: safe,
    data: encodeFunctionData({ abi: abis.walletAbi, functionName: 'execTransaction', args }),
    gas: gasMax / 2n,
  }
}

export const autoRedeemCall: CallFunctions['autoRedeemCall'] = (owner, market) => {
  const abi = abis.autoRedeemAbi
  const data =
    market.protocol === 'v2'
      ? encodeFunctionData({ abi, functionName: 'redeemPositions', args: [owner, market.conditionId] })
      : encodeFunctionData({
          abi,
          functionName: 'redeemTokens',
          args: [owner, market.conditionId, market.isNegRisk],
        })
  return { to: contracts.autoRedeem, data, gas: baseGas * 5n }
}

const adapterOf = ({ isNegRisk }: ChainMarket): Address =>
  isNegRisk ? contracts.negRiskCollateralAdapter : contracts.collateralAdapter

const openOrClose = (
  market: ChainMarket,
  amount: bigint,
  [ofRouter, ofAdapter]: readonly ['split', 'splitPosition'] | readonly ['merge', 'mergePositions'],
): Call => {
  const gas = baseGas * 5n
  if (market.protocol === 'v2') {
    const args = [market.conditionId, amount] as const
    const data = encodeFunctionData({ abi: abis.routerAbi, functionName: ofRouter, args })
    return { to: contracts.router, data, gas }
  }
  const args = [contracts.pusd, zeroHash, market.conditionId, binarySets, amount] as const
  const data = encodeFunctionData({ abi: abis.conditionalAbi, functionName: ofAdapter, args })
  return { to: adapterOf(market), data, gas }
}

export const splitCall: CallFunctions['splitCall'] = (market, amount) =>
  openOrClose(market, amount, ['split', 'splitPosition'])

export const mergeCall: CallFunctions['mergeCall'] = (market, amount) =>
  openOrClose(market, amount, ['merge', 'mergePositions'])

export const redeemCalls: CallFunctions['redeemCalls'] = (market, amounts) => {
  const gas = baseGas * 5n
  if (market.protocol === 'v2')
    return amounts.flatMap((amount, outcome) => {
      if (amount === 0n) return []
      const args = [market.conditionId, BigInt(outcome), amount] as const
      const data = encodeFunctionData({ abi: abis.routerAbi, functionName: 'redeem', args })
      return [{ to: contracts.router, data, gas }]
    })
  const args = [contracts.pusd, zeroHash, market.conditionId, binarySets] as const
  const data = encodeFunctionData({ abi: abis.conditionalAbi, functionName: 'redeemPositions', args })
  return [{ to: adapterOf(market), data, gas }]
}

const rampCall = (
  ramp: 'onramp' | 'offramp',
  functionName: 'wrap' | 'unwrap',
  args: readonly [Address, Address, bigint],
): Call => ({
  to: contracts[ramp],
  data: encodeFunctionData({ abi: abis.rampAbi, functionName, args }),
  gas: baseGas * 2n,
})

export const wrapCall: CallFunctions['wrapCall'] = (asset, to, amount) =>
  rampCall('onramp', 'wrap', [asset, to, amount])

export const unwrapCall: CallFunctions['unwrapCall'] = (asset, to, amount) =>
  rampCall('offramp', 'unwrap', [asset, to, amount])

export const pauseRampCall: CallFunctions['pauseRampCall'] = (ramp, asset, state) => {
  const functionName = state === 'paused' ? 'pause' : 'unpause'
  const data = encodeFunctionData({ abi: abis.rampAbi, functionName, args: [asset] })
  return { to: contracts[ramp], data, gas: baseGas }
}

/** Spenders of pUSD, then operators of conditional tokens and of positions. */
export const tradingApprovals = {
  dollars: [
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

export const approveCall = (token: Address, spender: Address, amount: bigint): Call => ({
  to: token,
  data: encodeFunctionData({ abi: abis.erc20Abi, functionName: 'approve', args: [spender, amount] }),
  gas: baseGas,
})

const approveAllCall = (token: Address, operator: Address): Call => ({
  to: token,
  data: encodeFunctionData({
    abi: abis.erc1155Abi,
    functionName: 'setApprovalForAll',
    args: [operator, true],
  }),
  gas: baseGas,
})

const unlimited = 2n ** 256n - 1n

export const approvalCalls: CallFunctions['approvalCalls'] = () => [
  ...tradingApprovals.dollars.map((spender) => approveCall(contracts.pusd, spender, unlimited)),
  ...tradingApprovals.conditionalTokens.map((each) => approveAllCall(contracts.conditionalTokens, each)),
  ...tradingApprovals.positionManager.map((each) => approveAllCall(contracts.positionManager, each)),
]
