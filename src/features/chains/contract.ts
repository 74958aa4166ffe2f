import { chainOperations } from '#kernel/chains.ts'
import { group, read } from '#kernel/operation.ts'
import * as T from '#kernel/schema.ts'
import { ChainId, OneOf, TextOrNull } from '#kernel/wire-types.ts'

export const ChainInfo = T.Object(
  {
    chain_id: ChainId,
    name: T.String({ description: 'Internal name', examples: ['base'] }),
    display_name: T.String({ description: 'Name for people', examples: ['Base'] }),
    native_token: T.String({ description: 'Symbol of the native token', examples: ['ETH'] }),
    is_evm: T.Boolean(),
    supported_operations: T.Array(OneOf(chainOperations), { description: 'Only what has a route now' }),
    native_decimals: T.Integer(),
    explorer_url: TextOrNull,
    status: OneOf(['ok', 'degraded', 'down'] as const, {
      description: 'As seen by a probe of the last seconds',
    }),
    gasless: T.Boolean({ description: 'Transactions are paid for by the service' }),
  },
  { $id: 'ChainInfo', additionalProperties: true },
)

export const contract = group('chains', {
  list: read('GET /v1/chains', {
    summary: 'The chains that are served, and whether each answers',
    description:
      'Use it to learn which chain ids other calls accept and whether a chain answers now. It moves nothing. Next: `wallets_list` for your addresses.',
    access: 'public',
    output: T.Object({ chains: T.Array(ChainInfo) }, { $id: 'ChainsResponse' }),
  }),
})
