import { fromUnits, toMicros, usdDecimals } from '#kernel/money/money.ts'
import { type AccountFigures, figuresOf, type ResultFigures } from '#market/strategies/account-figures.ts'
import { fromStoredRun } from '#market/strategies/stored-run.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'
import type { UserFacts } from './setup-checklist.ts'
import type { StoredAccount, StrategyColumns } from './strategy-columns.ts'
import type { StrategyView } from './strategy-view-schemas.ts'

/** Shows what the runs of a schedule have decided, and what they have, at the prices that were read last. */

type Facts = Pick<UserFacts, 'sizeDecimals'>
type LastDecision = NonNullable<StrategyView['last_decision']>

/** Returns the figures of an account; undefined where the market of a position is not known. */
export function accountFigures(
  { state, initial_usd }: StoredAccount,
  { sizeDecimals }: Facts,
): AccountFigures | undefined {
  const run = fromStoredRun(state)
  const initialMicros = initial_usd === null ? run.guards.startMicros : toMicros(initial_usd)
  return figuresOf(run, { decimals: sizeDecimals ?? {}, initialMicros })
}

const nothing: ResultFigures = { realized_usd: '0', unrealized_usd: '0', fees_usd: '0', funding_usd: '0' }

export function strategyView({ strategy }: StrategyColumns, facts: Facts): StrategyView {
  const { mode, accounts, decided } = strategy
  const figures = accounts.map((account) => ({ mode: account.mode, of: accountFigures(account, facts) }))
  const resultIn = (wanted: StrategyMode) => figures.find((each) => each.mode === wanted)?.of?.result
  const isKnown = figures.every(({ of }) => of !== undefined)
  const inMode = accounts.find((account) => account.mode === mode)
  return {
    position: isKnown
      ? figures.flatMap((each) => (each.of?.positions ?? []).map((one) => ({ ...one, mode: each.mode })))
      : null,
    pnl:
      figures.length === 0 || !isKnown
        ? null
        : { ...(resultIn('live') ?? nothing), paper: resultIn('paper') ?? null },
    ...budgetView(strategy),
    last_decision: decided && {
      at: new Date(decided.at).toISOString(),
      execution_id: decided.execution_id,
      mode: decided.mode,
      action: decided.decision.action as LastDecision['action'],
      reason: decided.decision.reason,
      text: decided.decision.text ?? null,
    },
    drift: inMode?.drift ?? null,
  }
}

/** What counts against the budget: live as the acceptance of orders counts it, on paper what entries were worth. */
export function budgetSpent({
  mode,
  spent_micros,
  accounts,
}: StrategyColumns['strategy']): bigint | undefined {
  if (spent_micros !== null) return BigInt(spent_micros)
  const account = accounts.find((each) => each.mode === mode)
  return account && BigInt(account.state.spent)
}

function budgetView(
  strategy: StrategyColumns['strategy'],
): Pick<StrategyView, 'budget_spent_usd' | 'budget_left_usd'> {
  const { budget_usd } = strategy
  const spent = budgetSpent(strategy)
  const left = budget_usd === null ? undefined : toMicros(budget_usd) - (spent ?? 0n)
  return {
    budget_spent_usd: spent === undefined ? null : fromUnits(spent, usdDecimals),
    budget_left_usd: left === undefined ? null : fromUnits(left < 0n ? 0n : left, usdDecimals),
  }
}
