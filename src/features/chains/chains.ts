import type { Chain, ChainStatus } from '#kernel/chains.ts'
import { fulfil } from '#kernel/operation.ts'
import { contract } from './contract.ts'

type Needs = { table: readonly Chain[]; status: (chainId: string) => ChainStatus }

export const infoOf = (chain: Chain, status: ChainStatus) => ({
  chain_id: chain.id,
  name: chain.name,
  display_name: chain.displayName,
  native_token: chain.native.symbol,
  is_evm: chain.family === 'evm',
  supported_operations: [...chain.supportedOperations],
  native_decimals: chain.native.decimals,
  explorer_url: chain.explorerUrl,
  status,
  // Until a sponsor pays on Solana, nothing can be sent there at all.
  gasless: chain.family === 'evm' && chain.delegate !== null,
})

export const chains = ({ table, status }: Needs) =>
  fulfil(contract, {
    list: async () => ({ chains: table.map((chain) => infoOf(chain, status(chain.id))) }),
  })
