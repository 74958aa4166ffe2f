import { setColumns } from '#kernel/contract/columns.ts'
import { group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { ChainId, Dec, Nullable, OneOf, Text, Time, TimeOrNull } from '#kernel/contract/wire-types.ts'

export const partNames = ['wallets', 'vault', 'perp', 'spot', 'predictions', 'in_flight'] as const
export type PartName = (typeof partNames)[number]
/** More assets than these are one sum, the least valuable ones first. */
export const assetsMax = 100
/** More tasks than these are not read. */
export const pendingMax = 100

const Share = T.Union([T.String(), T.Null()], { description: 'Of the total, as a fraction; 0.25 is 25 %' })

const Part = T.Object(
  {
    place: OneOf(partNames, {
      description:
        'wallets are your own ones; vault are its shares; perp is the value of the account, open profit included; spot are the balances there; predictions are cash and shares; in_flight has left one of them and not arrived in another',
    }),
    value_usd: Nullable(T.String({ description: 'Null where it could not be read' })),
    share: Share,
    as_of: TimeOrNull,
  },
  { $id: 'PortfolioPart' },
)
setColumns(Part, ['place', 'value_usd', 'share'])
const Place = T.Object(
  {
    chain_id: Nullable(ChainId, { description: 'Null for money in flight' }),
    name: Text,
    value_usd: Dec,
    share: Share,
  },
  { $id: 'PortfolioChain' },
)
setColumns(Place, ['name', 'value_usd', 'share'])
const AssetSum = T.Object(
  {
    symbol: Text,
    name: Text,
    amount: Nullable(T.String({ description: 'Null where units of several kinds are summed' })),
    value_usd: Dec,
    share: Share,
  },
  { $id: 'PortfolioAsset' },
)
setColumns(AssetSum, ['symbol', 'amount', 'value_usd', 'share'])
const Pending = T.Object(
  {
    task_id: Text,
    kind: Text,
    state: Text,
    value_usd: Nullable(
      T.String({ description: 'What of it is in flight; 0 before anything left, null where it is unknown' }),
    ),
    created_at: Time,
  },
  { $id: 'PortfolioPending' },
)
setColumns(Pending, ['kind', 'state', 'value_usd', 'created_at'])
const Unread = T.Object(
  {
    place: OneOf(partNames, { description: 'The part that lacks it' }),
    chain_id: Nullable(ChainId),
    message: Text,
  },
  { $id: 'PortfolioUnread' },
)
setColumns(Unread, ['place', 'message'])

export const Portfolio = T.Object(
  {
    total_usd: T.String({ description: 'The sum of the parts that were read' }),
    complete: T.Boolean({
      description: 'Every part was read now, everything has a price, and what is in flight is known',
    }),
    as_of: T.String({ format: 'date-time', description: 'When the oldest of its parts was true' }),
    parts: T.Array(Part, { description: 'Each place that this gateway serves' }),
    by_chain: T.Array(Place, { description: 'The most valuable first' }),
    by_asset: T.Array(AssetSum, { description: 'The most valuable first, at most 100' }),
    other_assets_usd: T.String({ description: 'The sum of the assets that `by_asset` leaves out' }),
    unread: T.Array(Unread, { description: 'What could not be read, or is shown as it was' }),
    unpriced: T.Array(Text, { description: 'Symbols of what has no price and counts as nothing' }),
    pending: T.Array(Pending, { description: 'Tasks under way that move money, the newest first' }),
  },
  { $id: 'PortfolioResponse' },
)
setColumns(Portfolio, ['total_usd', 'complete', 'parts', 'by_chain', 'by_asset', 'unread', 'pending'])
export type PortfolioView = T.Static<typeof Portfolio>

export const contract = group('portfolio', 'What you have everywhere, as one sum.', {
  show: read('GET /portfolio', {
    isAddition: true,
    summary: 'What you have in wallets, vault, perps, spot, predictions and in flight, summed up',
    mainTool: {
      text: 'Your portfolio and net worth: wallets, vault, perps, spot, predictions and money in flight in one sum, by chain and asset.',
    },
    description:
      'Use it for net worth, and for what lies on a chain or in an asset. `total_usd` is the sum of `parts`; `by_chain` and `by_asset` divide the same sum. Where `complete` is false, `unread`, `unpriced` and `pending` say what is missing or uncertain. Next: `wallets_holdings` or `perp_orders` for the rows of a part, `tasks_get` for one of `pending`.',
    access: 'read',
    output: Portfolio,
  }),
})
