import { ChainInfo } from '#kernel/contract/chain-info.ts'
import { group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'

export const contract = group('chains', 'The chains that are served.', {
  list: read('GET /v1/chains', {
    summary: 'The chains that are served, and whether each answers',
    description:
      'Use it to learn which chain ids other calls accept and whether a chain answers now. It moves nothing. Next: `wallets_list` for your addresses.',
    access: 'public',
    output: T.Object({ chains: T.Array(ChainInfo) }, { $id: 'ChainsResponse' }),
  }),
})
