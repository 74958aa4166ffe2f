import { implement, sharedRead } from '#kernel/contract/operation.ts'
import type { Chain, ChainStatus } from '#kernel/money/chains.ts'
import { contract } from './contract.ts'

type ChainsDeps = { chainRows: readonly Chain[]; status: (chainId: string) => ChainStatus }

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
  gasless: chain.family === 'evm' ? chain.delegate !== null : chain.isSponsored,
})

export const createChains = ({ chainRows, status }: ChainsDeps) => ({
  operations: implement(contract, {
    list: sharedRead(
      () => chainRows.map(({ id }) => status(id)).join(),
      async () => ({ chains: chainRows.map((chain) => infoOf(chain, status(chain.id))) }),
    ),
  }),
  facts: { ids: chainRows.map(({ id }) => id) },
})
