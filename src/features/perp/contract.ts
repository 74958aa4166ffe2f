import { readFaults } from '#engines/venue/records/contract-schemas.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { group, type InputOf, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { ChainId, Dec, DecOrNull, Text, TextOrNull, Time } from '#kernel/contract/wire-types.ts'
import { cashEntries, setupEntries } from './account-contract.ts'
import { ordersEntries } from './orders-contract.ts'

const Market = T.Object(
  {
    symbol: Text,
    asset_key: Text,
    name: Text,
    chain_id: ChainId,
    size_decimals: T.Integer(),
    price_decimals_max: T.Integer(),
    max_leverage: T.Integer(),
    only_isolated: T.Boolean(),
    mark_price: Dec,
    oracle_price: Dec,
    mid_price: DecOrNull,
    funding_rate: T.String({ description: 'Funding of the hour, as a fraction' }),
    open_interest: Dec,
    volume_24h_usd: Dec,
    prev_day_price: Dec,
    min_order_usd: Dec,
    routable: T.Boolean(),
    reason: TextOrNull,
  },
  { $id: 'PerpMarket' },
)
setColumns(Market, [
  'symbol',
  'mark_price',
  'funding_rate',
  'volume_24h_usd',
  'open_interest',
  'max_leverage',
])

export const contract = group('perp', 'Perpetual futures: setup, funding, then orders.', {
  markets: read('GET /v1/perp/markets', {
    summary: 'Every perpetual market with its prices, funding and limits',
    mainTool: {
      text: 'The price of a coin now, such as BTC, ETH or SOL, and the funding rate, tick and maximum leverage of each perpetual market that trades. Take `markets_candles` for how a price moved.',
      fields: { search_text: 'Symbol or name, such as BTC' },
    },
    description:
      'Use it to choose a market and to see its tick, maximum leverage, minimum order in USD and hourly funding rate (a fraction). Next: `perp_setup_status`, then `perp_open`.',
    access: 'read',
    query: T.Object({
      search_text: T.Optional(
        T.String({ maxLength: 64, description: 'Part of a symbol or name, in any case' }),
      ),
    }),
    output: T.Object(
      { markets: T.Array(Market), total: T.Integer(), as_of: Time },
      { $id: 'PerpMarketsResponse' },
    ),
    faults: readFaults,
  }),
  ...setupEntries,
  ...ordersEntries,
  ...cashEntries,
})

export type PerpInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
