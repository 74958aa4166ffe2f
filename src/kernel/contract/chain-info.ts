import { chainOperations } from '#kernel/money/chains.ts'
import { setColumns } from './columns.ts'
import * as T from './schema.ts'
import { ChainId, OneOf, TextOrNull } from './wire-types.ts'

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
setColumns(ChainInfo, ['chain_id', 'display_name', 'native_token', 'supported_operations', 'status'])
