import {
  type Abi,
  decodeEventLog,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  numberToHex,
  toEventSelector,
} from 'viem'
import { artifact } from './artifact.ts'
import { type Address, chainOf, operator, usdcOf, vault, vaultChain } from './chains.ts'
import type { EvmNode } from './node.ts'
import type { Rpc } from './rpc.ts'
import { sendAndConfirm } from './seed-steps.ts'
import { growthPerSecond, yearlyBpsOf } from './yield.ts'

type MovedAssets = { owner: Address; assets: bigint; shares: bigint }

export type Effect = {
  event: string
  owner: Address
  assets_units: string
  shares_units: string
  tx_hash: Hex
  block_number: number
  log_index: number
}

const { abi } = artifact('Vault')
const deposited = toEventSelector('Deposit(address,address,uint256,uint256)')
const withdrawn = toEventSelector('Withdraw(address,address,address,uint256,uint256)')

const sendAsOperator = (
  rpc: Rpc,
  to: Address,
  code: Abi,
  { functionName, args }: { functionName: string; args: unknown[] },
) =>
  sendAndConfirm(rpc, {
    from: operator,
    to,
    data: encodeFunctionData({ abi: code, functionName, args }),
    gas: numberToHex(1_000_000),
  })

const read = async (rpc: Rpc, functionName: string): Promise<unknown> => {
  const call = { to: vault, data: encodeFunctionData({ abi, functionName }) }
  const data = (await rpc.call('eth_call', [call, 'latest'])) as Hex
  return decodeFunctionResult({ abi, functionName, data })
}

export const setYield = (rpc: Rpc, yearlyBps: number) =>
  sendAsOperator(rpc, vault, abi, { functionName: 'setGrowth', args: [growthPerSecond(yearlyBps)] })

export const setIlliquid = (rpc: Rpc, { illiquid }: { illiquid: boolean }) =>
  sendAsOperator(rpc, vault, abi, { functionName: 'setIlliquid', args: [illiquid] })

/** Adds dollars to the vault without a deposit. */
export const donate = (rpc: Rpc, units: bigint) => {
  const base = chainOf(vaultChain)
  if (!base) throw new Error('The vault has no chain.')
  return sendAsOperator(rpc, usdcOf(base).address, artifact('LocalUsdc').abi, {
    functionName: 'mint',
    args: [vault, units],
  })
}

export const readVault = async (rpc: Rpc) => ({
  drip_bps_per_year: yearlyBpsOf((await read(rpc, 'growthPerSecond')) as bigint),
  illiquid: (await read(rpc, 'illiquid')) as boolean,
  total_assets_units: String(await read(rpc, 'totalAssets')),
  total_shares_units: String(await read(rpc, 'totalSupply')),
})

/** State of the vault, read from the chain. */
export const vaultEffects = async (node: EvmNode, owner: string | undefined): Promise<Effect[]> => {
  const logs = await node.events(vault, [[deposited, withdrawn]])
  const effects = logs.map((log) => {
    const { eventName, args } = decodeEventLog({ abi, data: log.data, topics: log.topics })
    const { owner: whose, assets, shares } = args as unknown as MovedAssets
    return {
      event: String(eventName),
      owner: whose,
      assets_units: String(assets),
      shares_units: String(shares),
      tx_hash: log.transactionHash,
      block_number: Number(log.blockNumber),
      log_index: Number(log.logIndex),
    }
  })
  return owner === undefined
    ? effects
    : effects.filter((each) => each.owner.toLowerCase() === owner.toLowerCase())
}
