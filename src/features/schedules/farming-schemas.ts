import * as T from '#kernel/contract/schema.ts'
import { Dec, DecIn, Nullable, OneOf, Text, Time } from '#kernel/contract/wire-types.ts'
import { decimalPattern } from '#kernel/money/money.ts'
import { modes, scheduleStatuses } from './schedule-schemas.ts'

/** The records of day trades, whose fields are those of the interface. */

const flag = (description: string) => T.Optional(T.Boolean({ default: true, description }))

export const FarmingConfigRequest = T.Object(
  {
    chain_id: T.Optional(
      T.String({
        minLength: 1,
        maxLength: 64,
        default: 'hyperliquid',
        description: 'The venue: `hyperliquid`, or its chain id 999',
        examples: ['hyperliquid'],
      }),
    ),
    asset: T.Optional(
      T.String({
        minLength: 1,
        maxLength: 64,
        default: 'hl:perp:BTC',
        description: 'BTC, ETH or SOL, also as `hl:perp:BTC`',
        examples: ['hl:perp:BTC'],
      }),
    ),
    order_notional_usd: T.Optional(
      Nullable(
        DecIn({
          exclusiveMinimum: 0,
          maximum: 1_000_000,
          places: 6,
          description: 'What an entry is worth in USD; either this or `order_size`',
          example: 200,
        }),
      ),
    ),
    order_size: T.Optional(
      Nullable(
        DecIn({
          exclusiveMinimum: 0,
          maximum: 1_000_000_000,
          places: 8,
          description: 'The size of an entry in the asset',
          example: 0.01,
        }),
      ),
    ),
    leverage: T.Optional(
      T.Integer({ minimum: 1, maximum: 50, default: 1, description: 'The market clips it' }),
    ),
    is_cross: flag('Whether the whole account is behind a position'),
    slippage_pct: T.Optional(
      DecIn({
        exclusiveMinimum: 0,
        maximum: 10,
        places: 2,
        default: 0.5,
        description: 'How far from the price an entry may fill, in percent',
        example: 0.5,
      }),
    ),
    tp_is_market: flag('Whether the target is a market order'),
    sl_is_market: flag('Whether the stop is a market order'),
  },
  {
    $id: 'DayTradeFarmingConfigPayload',
    additionalProperties: false,
    description: 'What the day trades are; it replaces the whole configuration',
  },
)

export const Farming = T.Object(
  {
    schedule_id: Text,
    version: T.Integer(),
    enabled: T.Boolean({ description: 'Whether it is active' }),
    farming_config: T.Object(
      {
        chain_id: Text,
        asset: Text,
        order_notional_usd: Nullable(T.Number(), { description: 'What an entry is worth, in USD' }),
        order_notional_usd_decimal: Nullable(Dec, { description: 'The same in USD, as exact text' }),
        order_size: Nullable(T.Number(), { description: 'The size of an entry in the asset' }),
        order_size_decimal: Nullable(Dec, { description: 'The same in the asset, as exact text' }),
        leverage: T.Integer(),
        is_cross: T.Boolean(),
        slippage_pct: T.Number({ description: 'In percent: 0.5 is half a percent' }),
        tp_is_market: T.Boolean(),
        sl_is_market: T.Boolean(),
      },
      { $id: 'DayTradeFarmingConfig' },
    ),
    effective_leverage: T.Integer({ description: 'The leverage that entries have' }),
    clipped_by: Nullable(
      OneOf(['market'], { description: 'What makes it lower than `leverage`; null: nothing' }),
    ),
    per_day_max_usd: T.String({
      pattern: decimalPattern,
      description: 'What all entries of a day may be worth together, in USD',
    }),
    mode: OneOf(modes, { description: 'Whether it trades on paper or live' }),
    status: OneOf(scheduleStatuses),
    status_reason: Nullable(T.String(), { description: 'Why it has this status, where that is not plain' }),
    next_runs: T.Array(Time),
    updated_at: Time,
  },
  { $id: 'DayTradeFarming' },
)
export type FarmingView = T.Static<typeof Farming>
