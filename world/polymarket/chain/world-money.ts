import { encodeFunctionData } from 'viem'
import { multicall3 } from '#world/evm/chains.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import { erc20Abi, multicallAbi } from './abis.ts'
import { contracts } from './addresses.ts'
import { approveCall, wrapCall } from './calls.ts'
import type { Address, Call, Sender, WorldMoney } from './chain-terms.ts'
import { safeOf } from './ids.ts'
import { safeProxyCode } from './wallets.ts'

/** What only a local world can do: any account may mint its dollars, and its node places code. */

export const mintCall = (token: Address, to: Address, amount: bigint): Call => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'mint', args: [to, amount] }),
})

/** One transaction, in the name of the contract that makes the calls. */
export const mintPusdCall = (to: Address, amount: bigint): Call => {
  const calls = [
    mintCall(contracts.usdce, multicall3, amount),
    approveCall(contracts.usdce, contracts.onramp, amount),
    wrapCall(contracts.usdce, to, amount),
  ].map(({ to: target, data }) => ({ target, allowFailure: false, callData: data }))
  return {
    to: multicall3,
    data: encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [calls] }),
  }
}

export const createWorldMoney = (rpc: Rpc, sender: Sender): WorldMoney => ({
  mintDollars: async (asset, to, amount) => {
    await sender.send('admin', mintCall(contracts[asset], to, amount))
  },
  mintPusd: async (to, amount) => {
    await sender.send('admin', mintPusdCall(to, amount))
  },
  placeSafe: async (owner) => {
    const safe = safeOf(owner)
    await rpc.call('anvil_setCode', [safe, safeProxyCode(owner)])
    return safe
  },
})
