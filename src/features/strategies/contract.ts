import { GuardsRequest, StrategyRequest } from '#engines/strategy-terms/strategy-schemas.ts'
import { readFaults } from '#engines/venue/records/contract-schemas.ts'
import { group, type InputOf, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { DecIn, Nullable, OneOf, Text, Time } from '#kernel/contract/wire-types.ts'
import { decimalPattern } from '#kernel/money/money.ts'
import { candleSpans } from '#market/candle.ts'

export const backtestDaysMax = 366
const time = (description: string) =>
  T.String({ format: 'date-time', maxLength: 40, description, examples: ['2026-01-31T12:00:00.000Z'] })

const BacktestRequest = T.Object(
  {
    strategy: StrategyRequest,
    guards: T.Optional(GuardsRequest),
    from: time('Decisions begin here; 1,000 candles before it have to be there'),
    to: T.Optional(time('The end; left out: the newest close')),
    schedule: T.Optional(
      T.String({
        minLength: 1,
        maxLength: 200,
        pattern: '\\S',
        description: 'When `dca` and `rebalance` act, in words; the other types act on closes',
        examples: ['every day at 09:00'],
      }),
    ),
    timezone: T.Optional(
      T.String({
        minLength: 1,
        maxLength: 64,
        description: 'IANA name of the zone whose days count; left out: UTC',
        examples: ['America/New_York'],
      }),
    ),
    initial_usd: T.Optional(
      DecIn({
        minimum: 10,
        maximum: 100_000_000,
        places: 6,
        description: 'The money of the beginning, in USD; default 1000',
        example: '1000',
      }),
    ),
    budget_usd: T.Optional(
      DecIn({
        exclusiveMinimum: 0,
        maximum: 100_000_000,
        places: 6,
        description: 'What all entries may be worth together, in USD; left out: no bound',
        example: '500',
      }),
    ),
    slippage_bps: T.Optional(
      T.Integer({
        minimum: 0,
        maximum: 1_000,
        default: 5,
        description: 'What orders that take liquidity pay beyond the price, in hundredths of a percent',
      }),
    ),
    seed: T.Optional(
      T.Integer({
        minimum: 0,
        maximum: 2_147_483_647,
        default: 1,
        description: 'Of the interval of the expectancy, which is drawn from the trades',
      }),
    ),
  },
  {
    $id: 'StrategyBacktestRequest',
    additionalProperties: false,
    examples: [
      {
        strategy: { type: 'day_trade_farming', asset: 'BTC', order_notional_usd: '200' },
        from: '2026-01-01T00:00:00.000Z',
      },
    ],
  },
)

const ratio = (description: string) =>
  T.String({ pattern: decimalPattern, description: `${description}, as a fraction` })
const usd = (description: string) =>
  T.String({ pattern: decimalPattern, description: `${description}, in USD` })
const interval = (description: string) =>
  T.Union([T.Object({ low: ratio('Lower bound'), high: ratio('Upper bound') }), T.Null()], { description })
const BacktestResult = T.Object(
  {
    trades: T.Integer({ description: 'Positions, or parts of them, that were closed' }),
    win_rate: Nullable(ratio('Trades with a gain')),
    win_rate_interval: interval('Where the win rate is in 95 of 100 cases; null without a trade'),
    expectancy: Nullable(
      T.String({ description: 'Mean result of a trade after all costs, as a fraction of its worth' }),
    ),
    expectancy_interval: interval('Where the expectancy is in 95 of 100 cases; null without a trade'),
    total_return: ratio('What the money of the beginning has gained'),
    max_drawdown: ratio('Deepest fall from an earlier worth'),
    buy_and_hold: Nullable(ratio('What buying the first asset at the beginning would have gained')),
    fees_usd: usd('Fees of all orders'),
    funding_usd: usd('Funding that was paid; below zero, it was received'),
    exposure: T.String({ description: 'The part of the time in which something was open' }),
    decisions: T.Integer({ description: 'How often it decided' }),
    holds: T.Record(T.String(), T.Integer(), {
      description: 'How many decisions did nothing, by their reason',
    }),
    guard_trips: T.Array(T.Object({ guard: T.String({ description: 'Name of the guard' }), at: Time }), {
      description: 'Guards that have tripped',
    }),
    open_at_end: T.Integer({ description: 'Positions that were still open; their costs are counted' }),
    gaps: T.Integer({ description: 'Candles that were missing' }),
    final_usd: usd('What is there at the end, had everything been sold'),
    verdict: OneOf(['too_few', 'positive', 'negative', 'no_edge'], {
      description: 'What the interval of the expectancy says; `too_few` with fewer than 30 trades',
    }),
    log_sha256: T.String({ description: 'SHA-256 of all decisions: equal inputs give the same' }),
    data: T.Object({
      interval: OneOf(candleSpans, { description: 'The candles whose closes decided' }),
      execution_interval: OneOf(candleSpans, { description: 'The candles that filled the orders' }),
      from: Time,
      to: Time,
      source: T.String({ description: 'The venue of the candles' }),
    }),
    artifacts: T.Array(
      T.Object({
        name: Text,
        content_type: Text,
        size: T.Integer(),
        sha256: Text,
        url: T.String({ description: 'Opens the file for everyone who has it' }),
        expires_at: Time,
      }),
    ),
  },
  { $id: 'StrategyBacktestResult' },
)

export const contract = group('strategies', 'What trading by rules would have done.', {
  backtest: task('POST /v1/strategies/backtest', {
    isAddition: true,
    summary: 'What a strategy would have done, with its costs',
    description: `Use it before you let a strategy trade. Each decision is made from exactly 1,000 closed candles, and is filled at the next open, worse by the slippage; fees, funding, leverage, liquidation and guards count, and so do the costs of what is open at the end. At most ${backtestDaysMax} days over all assets together. It costs nothing, moves nothing and makes four files, whose links last for 15 minutes: a report, a curve of the worth, the trades, and the decisions with the hash of what each was made from. Next: \`markets_candles\` shows what it was decided from.`,
    access: 'chat',
    waitSeconds: 60,
    taskKind: 'strategy_backtest',
    body: BacktestRequest,
    output: TaskResponse,
    result: BacktestResult,
    faults: [...readFaults, 'market_closed', 'conflict'],
  }),
})

export type BacktestInput = InputOf<(typeof contract.entries)['backtest']>
