import * as T from '#kernel/contract/schema.ts'
import { Dec, DecIn, OneOf } from '#kernel/contract/wire-types.ts'
import { candleSpans } from '#market/candle.ts'
import { ruleIndicators } from '#market/strategies/window-indicators.ts'

/** The fields of a strategy, of which each type takes its own, and the guards of any of them. */

export const strategyTypes = ['dca', 'rebalance', 'condition', 'day_trade_farming'] as const
export const targetsMax = 10
const conditionsMax = 8
const usd = (description: string, example = '100') =>
  DecIn({
    exclusiveMinimum: 0,
    maximum: 1_000_000,
    places: 6,
    description: `${description}, in USD`,
    example,
  })
const asset = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'A perpetual market, as `perp_markets` lists it',
  examples: ['BTC'],
})

const figures = ['price', ...ruleIndicators] as const
const ConditionRequest = T.Object(
  {
    left: OneOf(figures, { description: 'The close, or an indicator at it' }),
    is: OneOf(['above', 'below', 'crosses_above', 'crosses_below'], {
      description: 'How it compares; a crossing also reads the close before',
    }),
    right: T.String({
      maxLength: 24,
      pattern: `^(${figures.join('|')}|-?(0|[1-9][0-9]{0,9})(\\.[0-9]{1,10})?)$`,
      description: 'What it is compared with: a figure, or a number as decimal text',
      examples: ['30'],
    }),
  },
  { $id: 'StrategyConditionRequest', additionalProperties: false },
)
const conditions = (description: string) =>
  T.Array(ConditionRequest, { minItems: 1, maxItems: conditionsMax, description })

/** The fields of every type; each type takes its own. */
export const strategyFields = {
  asset: T.Optional(asset),
  amount_usd: T.Optional(usd('Of `dca`: what each purchase is worth')),
  max_price: T.Optional(usd('Of `dca`: nothing is bought above this price', '90000')),
  partial: T.Optional(T.Boolean({ description: 'Of `dca`: true buys less where less is left' })),
  targets: T.Optional(
    T.Array(
      T.Object(
        {
          asset,
          share_pct: DecIn({
            exclusiveMinimum: 0,
            maximum: 100,
            places: 2,
            description: 'Of the whole, in percent',
            example: '50',
          }),
        },
        { $id: 'StrategyTargetRequest', additionalProperties: false },
      ),
      { minItems: 1, maxItems: targetsMax, description: 'Of `rebalance`: at most 100 % together' },
    ),
  ),
  band_pct: T.Optional(
    DecIn({
      exclusiveMinimum: 0,
      maximum: 50,
      places: 2,
      description:
        'Of `rebalance`: an asset is traded that is off by so many percent of the whole; default 5',
      example: '5',
    }),
  ),
  interval: T.Optional(
    OneOf(candleSpans, { description: 'Of `condition`: the candles whose closes decide; default 1h' }),
  ),
  side: T.Optional(OneOf(['long', 'short'], { description: 'Of `condition`; default long' })),
  enter_if: T.Optional(conditions('Of `condition`: all of them true on a close')),
  exit_if: T.Optional(conditions('Of `condition`: all of them true on a close')),
  stop_atr: T.Optional(
    DecIn({
      exclusiveMinimum: 0,
      maximum: 50,
      places: 2,
      description: 'Of `condition`: the distance of the stop from the entry, as a multiple of the ATR',
      example: '1.5',
    }),
  ),
  target_atr: T.Optional(
    DecIn({
      exclusiveMinimum: 0,
      maximum: 50,
      places: 2,
      description: 'Of `condition`: the distance of the target from the entry, as a multiple of the ATR',
      example: '2.5',
    }),
  ),
  order_notional_usd: T.Optional(usd('Of `condition` and `day_trade_farming`: what an entry is worth')),
  order_size: T.Optional(
    DecIn({
      exclusiveMinimum: 0,
      maximum: 1_000_000_000,
      places: 8,
      description: 'Of `day_trade_farming`, instead of the worth: the size of an entry in the asset',
      example: '0.01',
    }),
  ),
  slippage_pct: T.Optional(
    DecIn({
      exclusiveMinimum: 0,
      maximum: 10,
      places: 2,
      description:
        'Of `condition` and `day_trade_farming`: how far from the price an entry may fill, in percent; default 0.5',
      example: '0.5',
    }),
  ),
  leverage: T.Optional(
    T.Integer({
      minimum: 1,
      maximum: 50,
      description: 'Of `condition` and `day_trade_farming`; default 1. The market clips it',
    }),
  ),
  is_cross: T.Optional(
    T.Boolean({
      description:
        'Whether the whole account is behind a position; default true, and false where the market allows isolated margin only',
    }),
  ),
  tp_is_market: T.Optional(T.Boolean({ description: 'Of `day_trade_farming`; default true' })),
  sl_is_market: T.Optional(T.Boolean({ description: 'Of `day_trade_farming`; default true' })),
}

const strategyType = OneOf(strategyTypes, {
  description:
    '`dca`: buys for an amount at each time; `rebalance`: holds shares; `condition`: enters where conditions are true on a close; `day_trade_farming`: day trades with pullbacks of a trend',
})
export const StrategyRequest = T.Object(
  { type: strategyType, ...strategyFields },
  { $id: 'StrategyRequest', additionalProperties: false },
)
export type StrategyType = (typeof strategyTypes)[number]
export type StrategyInput = T.Static<typeof StrategyRequest>
/** The fields of a strategy without its type, as a schedule has them. */
export const StrategyFieldsRequest = T.Object(strategyFields, {
  $id: 'StrategyFieldsRequest',
  additionalProperties: false,
  description:
    'Of every type but `prompt`: what the strategy does. It replaces the whole configuration; each type takes its own fields',
})
export type StrategyFields = T.Static<typeof StrategyFieldsRequest>

const count = (description: string) => T.Optional(T.Integer({ minimum: 1, maximum: 10_000, description }))
/** The fields of the guards of a strategy. */
export const guardFields = {
  max_loss_usd: T.Optional(usd('The loss since the beginning')),
  max_drawdown_pct: T.Optional(
    DecIn({
      exclusiveMinimum: 0,
      maximum: 100,
      places: 2,
      description: 'The fall from the highest worth, in percent',
      example: '10',
    }),
  ),
  daily_loss_usd: T.Optional(usd('The loss of a local day, of which another begins anew')),
  max_trades_per_day: count('Entries of a local day'),
  max_consecutive_losses: count('Trades with a loss in a row'),
  max_open_positions: count('Positions at once'),
  cooldown_seconds: T.Optional(
    T.Integer({ minimum: 0, maximum: 2_592_000, description: 'No entry for so long after one' }),
  ),
  on_trip: T.Optional(
    OneOf(['stop_entries', 'flatten'], {
      description:
        'What a loss guard does: no more entries, or every position is closed as well; default flatten',
    }),
  ),
}
export const GuardsRequest = T.Object(guardFields, {
  $id: 'StrategyGuardsRequest',
  additionalProperties: false,
})
export type GuardsInput = T.Static<typeof GuardsRequest>

type Described = { description?: string }
const optionalText = (description: string) => T.Optional(T.String({ ...Dec, description }))
/** Returns the amounts of a request as answers have them: decimal text, described alike. */
const asText = <const K extends string>(fields: Readonly<Record<K, T.TSchema>>, keys: readonly K[]) =>
  Object.fromEntries(
    keys.map((key) => [key, optionalText(String((fields[key] as Described).description))]),
  ) as Record<K, ReturnType<typeof optionalText>>

/** The fields of a strategy in answers, where every amount is decimal text. */
export const StrategyFieldsShown = T.Object(
  {
    ...strategyFields,
    ...asText(strategyFields, [
      'amount_usd',
      'max_price',
      'band_pct',
      'stop_atr',
      'target_atr',
      'order_notional_usd',
      'order_size',
      'slippage_pct',
    ]),
    targets: T.Optional(
      T.Array(T.Object({ asset: T.String(), share_pct: Dec }, { $id: 'StrategyTarget' }), {
        description: 'Of `rebalance`: the share of each asset',
      }),
    ),
  },
  { $id: 'StrategyFields' },
)
/** The guards in answers. */
export const GuardsShown = T.Object(
  {
    ...guardFields,
    ...asText(guardFields, ['max_loss_usd', 'max_drawdown_pct', 'daily_loss_usd']),
  },
  { $id: 'ScheduleGuards' },
)
