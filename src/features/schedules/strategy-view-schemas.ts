import { setColumns } from '#kernel/contract/columns.ts'
import * as T from '#kernel/contract/schema.ts'
import { Dec, DecOrNull, Nullable, OneOf, Text, TextOrNull, Time } from '#kernel/contract/wire-types.ts'

/** The fields of a schedule that show what its runs have decided, and what they have. */

const mode = OneOf(['paper', 'live'], { description: '`paper`: without money; `live`: on the account' })
const signed = (description: string) => T.Unsafe<string>({ ...Dec, description })

const Position = T.Object(
  {
    asset: Text,
    mode,
    side: OneOf(['long', 'short']),
    size: Dec,
    entry_price: Dec,
    mark_price: DecOrNull,
    unrealized_pnl_usd: DecOrNull,
    stop_price: DecOrNull,
    target_price: DecOrNull,
    opened_at: Time,
  },
  { $id: 'SchedulePosition' },
)
setColumns(Position, ['asset', 'side', 'size', 'entry_price', 'stop_price', 'target_price', 'opened_at'])

const resultFields = {
  realized_usd: signed('Won or lost for good, in USD after all fees and funding'),
  unrealized_usd: T.Unsafe<string | null>({
    ...DecOrNull,
    description: 'Of what is open, in USD at the prices that were read last; null where one is not known',
  }),
  fees_usd: signed('Fees of all orders, in USD'),
  funding_usd: signed('Funding that was paid, in USD; below zero, it was received'),
}
const PaperResult = T.Object(resultFields, { $id: 'SchedulePaperResult' })
const Result = T.Object(
  {
    ...resultFields,
    paper: Nullable(PaperResult, { description: 'The same on paper; null: it never ran there' }),
  },
  { $id: 'ScheduleResult' },
)

const LastDecision = T.Object(
  {
    at: Time,
    execution_id: Text,
    mode,
    action: OneOf(['enter', 'exit', 'adjust', 'hold', 'notify']),
    reason: Text,
    text: T.Unsafe<string | null>({ ...TextOrNull, description: 'Of a strategy: the same in words' }),
  },
  { $id: 'ScheduleLastDecision' },
)

const Drift = T.Object(
  {
    at: Time,
    from: Time,
    to: Time,
    entries: T.Integer({ description: 'Entries that the backtest has as well' }),
    entries_only_here: T.Integer(),
    entries_only_in_backtest: T.Integer(),
    entry_price_bps: T.Unsafe<string | null>({
      ...DecOrNull,
      description:
        'How much worse the prices of entries were on average, in hundredths of a percent; below zero, better',
    }),
    trades: T.Integer(),
    backtest_trades: T.Integer(),
    trade_result: T.Unsafe<string | null>({
      ...DecOrNull,
      description: 'Mean result of a trade after all costs, as a fraction of its worth',
    }),
    backtest_trade_result: DecOrNull,
  },
  { $id: 'ScheduleDrift' },
)
export type DriftView = T.Static<typeof Drift>

export const strategyViewFields = {
  position: T.Unsafe<T.Static<typeof Position>[] | null>({
    ...Nullable(T.Array(Position)),
    description: 'What its runs hold; null while the markets of the venue are not known',
  }),
  pnl: T.Unsafe<T.Static<typeof Result> | null>({
    ...Nullable(Result),
    description: 'What its runs have won; null where none has traded by rules',
  }),
  budget_spent_usd: T.Unsafe<string | null>({
    ...DecOrNull,
    description: 'What its entries were worth, in USD',
  }),
  budget_left_usd: T.Unsafe<string | null>({
    ...DecOrNull,
    description: 'What is left of `budget_usd`; null without one',
  }),
  last_decision: Nullable(LastDecision),
  drift: T.Unsafe<DriftView | null>({
    ...Nullable(Drift),
    description: 'How its fills differ from a backtest of the same time; null before they were compared',
  }),
}
const StrategyView = T.Object(strategyViewFields)
export type StrategyView = T.Static<typeof StrategyView>
