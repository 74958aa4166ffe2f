import { type Abi, decodeFunctionResult, encodeFunctionData } from 'viem'
import type { Rpc } from '#world/evm/rpc.ts'
import * as abis from './abis.ts'
import { type Address, contracts, type Hex } from './addresses.ts'
import { tradingApprovals } from './calls.ts'
import type { Approval, ChainMarket, Reads } from './chain-terms.ts'

type View = { to: Address; abi: Abi; functionName: string; args?: readonly unknown[] }

const ownerSharesMax = 1_000

export const createReads = (rpc: Rpc): Reads => {
  /** One round trip. */
  const viewAll = async (views: readonly View[]): Promise<unknown[]> => {
    const answers = (await rpc.batch(
      views.map(({ to, abi, functionName, args = [] }) => ({
        method: 'eth_call',
        params: [{ to, data: encodeFunctionData({ abi, functionName, args }) }, 'latest'],
      })),
    )) as Hex[]
    return views.map(({ abi, functionName }, i) =>
      decodeFunctionResult({ abi, functionName, data: answers[i] as Hex }),
    )
  }
  const view = async (one: View): Promise<unknown> => (await viewAll([one]))[0]

  const balance = (token: Address, owner: Address): View => ({
    to: token,
    abi: abis.erc20Abi,
    functionName: 'balanceOf',
    args: [owner],
  })

  const shares: Reads['shares'] = async (owner, outcomeIds) => {
    if (outcomeIds.length > ownerSharesMax) throw new Error(`More than ${ownerSharesMax} ids at once.`)
    const isOfV2 = (id: bigint) => ((id >> 40n) & ((1n << 64n) - 1n)) === 0n
    return (await viewAll(
      outcomeIds.map((id) => ({
        to: isOfV2(id) ? contracts.positionManager : contracts.conditionalTokens,
        abi: abis.erc1155Abi,
        functionName: 'balanceOf',
        args: [owner, id],
      })),
    )) as bigint[]
  }

  const approvals: Reads['approvals'] = async (owner) => {
    const wanted = (['pusd', 'conditionalTokens', 'positionManager'] as const).flatMap((name) => {
      const kind: Approval['kind'] = name === 'pusd' ? 'erc20' : 'erc1155'
      return tradingApprovals[name].map((spender) => ({ token: contracts[name], spender, kind }))
    })
    const found = await viewAll(
      wanted.map(({ token, spender, kind }) => ({
        to: token,
        abi: kind === 'erc20' ? abis.erc20Abi : abis.erc1155Abi,
        functionName: kind === 'erc20' ? 'allowance' : 'isApprovedForAll',
        args: [owner, spender],
      })),
    )
    return wanted.map((each, i) => ({ ...each, allowance: BigInt(found[i] as bigint | boolean) }))
  }

  const resolution: Reads['resolution'] = async ({ protocol, isNegRisk, conditionId }: ChainMarket) => {
    if (protocol === 'v2') {
      const module = {
        to: isNegRisk ? contracts.negRiskModule : contracts.binaryModule,
        abi: abis.moduleAbi,
        args: [conditionId],
      }
      const [isPrepared, payouts] = (await viewAll([
        { ...module, functionName: 'isPrepared' },
        { ...module, functionName: 'payoutsOf' },
      ])) as [boolean, [bigint, bigint]]
      return { isPrepared, payouts, denominator: payouts[0] + payouts[1] }
    }
    const tokens = { to: contracts.conditionalTokens, abi: abis.conditionalAbi }
    const [slots, denominator] = (await viewAll([
      { ...tokens, functionName: 'getOutcomeSlotCount', args: [conditionId] },
      { ...tokens, functionName: 'payoutDenominator', args: [conditionId] },
    ])) as [bigint, bigint]
    if (slots === 0n) return { isPrepared: false, payouts: [0n, 0n], denominator: 0n }
    const payouts = (await viewAll(
      [0n, 1n].map((i) => ({ ...tokens, functionName: 'payoutNumerators', args: [conditionId, i] })),
    )) as [bigint, bigint]
    return { isPrepared: true, payouts, denominator }
  }

  const ofExchange = (exchange: keyof typeof contracts, functionName: string, id: Hex) =>
    view({ to: contracts[exchange], abi: abis.exchangeAbi, functionName, args: [id] })

  /** A wallet that is not deployed has made no batch. */
  const nonceOf = async (wallet: Address): Promise<bigint> => {
    const data = encodeFunctionData({ abi: abis.walletAbi, functionName: 'nonce' })
    const answer = (await rpc.call('eth_call', [{ to: wallet, data }, 'latest'])) as Hex
    return answer === '0x' ? 0n : BigInt(answer)
  }

  return {
    shares,
    approvals,
    resolution,
    dollars: async (owner) => {
      const tokens = [contracts.pusd, contracts.usdc, contracts.usdce]
      const found = (await viewAll(tokens.map((token) => balance(token, owner)))) as [bigint, bigint, bigint]
      return { pusd: found[0], usdc: found[1], usdce: found[2] }
    },
    filled: async (exchange, orderHash) => (await ofExchange(exchange, 'filled', orderHash)) as bigint,
    isSettled: async (exchange, key) => (await ofExchange(exchange, 'settled', key)) as boolean,
    isDeployed: async (address) => (await rpc.call('eth_getCode', [address, 'latest'])) !== '0x',
    walletNonce: nonceOf,
    safeNonce: nonceOf,
    isRampPaused: async (ramp, asset) =>
      (await view({
        to: contracts[ramp],
        abi: abis.rampAbi,
        functionName: 'paused',
        args: [asset],
      })) as boolean,
    backing: async () => {
      const dollar = { to: contracts.pusd, abi: abis.erc20Abi }
      const [supply, locked, usdc, usdce] = (await viewAll([
        { ...dollar, functionName: 'totalSupply' },
        { ...dollar, functionName: 'locked' },
        balance(contracts.usdc, contracts.vault),
        balance(contracts.usdce, contracts.vault),
      ])) as [bigint, bigint, bigint, bigint]
      return { supply, locked, usdc, usdce }
    },
  }
}
