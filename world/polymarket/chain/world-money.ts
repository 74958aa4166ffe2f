import { encodeFunctionData } from 'viem'
import { multicall3 } from '#world/evm/chains.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import { erc20Abi, multicallAbi } from './abis.ts'
import { contracts } from './addresses.ts'
import { approveCall, wrapCall } from './calls.ts'
import type { Call, Sender, WorldMoney } from './chain-terms.ts'
import { safeOf } from './ids.ts'
import { safeProxyCode } from './wallets.ts'

/** What only a local world can do: any account may mint its dollars, and its node places code. */
export const createWorldMoney = (rpc: Rpc, sender: Sender): WorldMoney => {
  const mintCall = (asset: 'usdc' | 'usdce', to: `0x${string}`, amount: bigint): Call => ({
    to: contracts[asset],
    data: encodeFunctionData({ abi: erc20Abi, functionName: 'mint', args: [to, amount] }),
  })
  return {
    mintDollars: async (asset, to, amount) => {
      await sender.send('admin', mintCall(asset, to, amount))
    },
    mintPusd: async (to, amount) => {
      // All in one transaction, in the name of the contract that makes the calls.
      const calls = [
        mintCall('usdce', multicall3, amount),
        approveCall(contracts.usdce, contracts.onramp, amount),
        wrapCall(contracts.usdce, to, amount),
      ].map(({ to: target, data }) => ({ target, allowFailure: false, callData: data }))
      const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [calls] })
      await sender.send('admin', { to: multicall3, data })
    },
    placeSafe: async (owner) => {
      const safe = safeOf(owner)
      await rpc.call('anvil_setCode', [safe, safeProxyCode(owner)])
      return safe
    },
  }
}
