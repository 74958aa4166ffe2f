import { fixedPointOne, fromUnits, toFixedPoint, usdDecimals } from '#kernel/money/money.ts'
import type { AccountFigures } from '#market/strategies/account-figures.ts'
import { type GuardUse, guardUses, type SetGuards } from '#market/strategies/guard-distance.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'
import type { Advice } from './advice.ts'
import type { DriftView } from './strategy-view-schemas.ts'

/** What to change about a strategy, as its account, its guards and its decisions show it. */

export type JudgedAccount = { mode: StrategyMode; figures: AccountFigures; drift: DriftView | null }
export type JudgedStrategy = {
  mode: StrategyMode
  budgetMicros: bigint | null
  /** What counts against the budget. */
  spentMicros: bigint
  guards: SetGuards
  accounts: readonly JudgedAccount[]
  /** The reasons of the newest decisions in a row that entered nothing, the newest first. */
  idleReasons: readonly string[]
}

/** Advice is given from this part of a limit on, in hundredths of a percent. */
const nearBps = 8_000n
const fullBps = 10_000n
const streakMin = 3
/** The newest decisions that are judged: as many without an entry are worth a look. */
export const idleMin = 50
const entriesMin = 5
const tradesMin = 10
/** A price that is worse by so many hundredths of a percent than in a backtest. */
const worsePriceBps = 20n * fixedPointOne
/** A mean result of a trade that is lower by half a percent of its worth. */
const lowerResult = fixedPointOne / 200n
const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)

const present = ({ accounts, mode }: JudgedStrategy): JudgedAccount | undefined =>
  accounts.find((account) => account.mode === mode)
const inMode = ({ mode }: JudgedAccount): string => (mode === 'paper' ? 'on paper' : 'live')

function guards(strategy: JudgedStrategy): Advice[] {
  const account = present(strategy)
  if (!account) return []
  const { equityMicros, guards: state } = account.figures
  const trip = state.tripped ?? state.trippedToday
  const worth = equityMicros === undefined ? [] : [`worth now: ${usd(equityMicros)} USD`]
  if (trip) {
    const at = new Date(trip.atMs).toISOString()
    return [
      {
        subject: `guard ${trip.guard} tripped at ${at}`,
        priority: 'now',
        category: 'risk',
        title: `The guard ${trip.guard} has tripped ${inMode(account)}`,
        why: 'It enters nothing more; what its runs said before shows how it came to that.',
        steps: [
          'Read the last runs by `schedules_executions`',
          'Change its settings by `schedules_update`, or end it by `schedules_disable`',
        ],
        evidence: [`\`${trip.guard}\` at ${at}`, ...worth],
      },
    ]
  }
  if (equityMicros === undefined) return []
  const near = guardUses(state, strategy.guards, equityMicros).find(({ usedBps }) => usedBps >= nearBps)
  return near ? [nearAdvice(near, worth)] : []
}

const nearAdvice = ({ guard, text }: GuardUse, worth: readonly string[]): Advice => ({
  subject: `guard ${guard} near`,
  priority: 'soon',
  category: 'risk',
  title: `The guard ${guard} is near`,
  why: `${text} are used. Once it trips, nothing more is entered.`,
  steps: ['Make its orders smaller, or let it rest, by `schedules_update` or `schedules_pause`'],
  evidence: [`\`${guard}\`: ${text}`, ...worth],
})

function budget(strategy: JudgedStrategy): Advice[] {
  const { budgetMicros, spentMicros: spent } = strategy
  if (budgetMicros === null || spent * fullBps < budgetMicros * nearBps) return []
  const left = budgetMicros > spent ? budgetMicros - spent : 0n
  return [
    {
      subject: `budget of ${usd(budgetMicros)}`,
      priority: left === 0n ? 'now' : 'soon',
      category: 'config',
      title: left === 0n ? 'Its budget is used' : 'Its budget is nearly used',
      why: `${usd(left)} of ${usd(budgetMicros)} USD are left. Runs that need more are skipped.`,
      steps: ['Raise `budget_usd` by `schedules_update`, or let it end'],
      evidence: [`spent: ${usd(spent)} USD`, `\`budget_usd\`: ${usd(budgetMicros)} USD`],
    },
  ]
}

function losses(strategy: JudgedStrategy): Advice[] {
  const account = present(strategy)
  const count = account?.figures.guards.lossesInRow ?? 0
  if (!account || count < streakMin) return []
  return [
    {
      subject: 'losses in a row',
      priority: 'soon',
      category: 'logic',
      title: `${count} trades in a row had a loss ${inMode(account)}`,
      why: 'A backtest of the newest time says whether its rule still has an edge.',
      steps: [
        'Run `strategies_backtest` from the last weeks on',
        'Set `max_consecutive_losses` by `schedules_update`',
      ],
      evidence: [`losses in a row: ${count}`, `realized: ${account.figures.result.realized_usd} USD`],
    },
  ]
}

function drift(strategy: JudgedStrategy): Advice[] {
  const account = present(strategy)
  const seen = account?.drift
  if (!account || !seen) return []
  const price = seen.entry_price_bps
  const isWorsePrice = price !== null && seen.entries >= entriesMin && toFixedPoint(price) >= worsePriceBps
  const isWorse = seen.trades >= tradesMin && isLower(seen.trade_result, seen.backtest_trade_result)
  if (!isWorsePrice && !isWorse) return []
  return [
    {
      subject: 'drift from the backtest',
      priority: 'soon',
      category: 'execution',
      title: `It does worse ${inMode(account)} than in a backtest of the same time`,
      why: isWorsePrice
        ? `Its entries were ${price} hundredths of a percent worse on average.`
        : 'The mean result of a trade is lower by more than half a percent of its worth.',
      steps: ['Make its orders smaller, or take a market with more in its book, by `schedules_update`'],
      evidence: [
        `${seen.entries} entries compared, from ${seen.from} until ${seen.to}`,
        `entry price: ${price ?? 'not known'} hundredths of a percent worse`,
        `mean result of a trade: ${seen.trade_result ?? 'none'}, in the backtest ${seen.backtest_trade_result ?? 'none'}`,
      ],
    },
  ]
}

const isLower = (here: string | null, there: string | null): boolean =>
  here !== null && there !== null && toFixedPoint(there) - toFixedPoint(here) >= lowerResult

function paperBetter({ mode, accounts }: JudgedStrategy): Advice[] {
  const [live, paper] = (['live', 'paper'] as const).map(
    (each) => accounts.find((one) => one.mode === each)?.drift,
  )
  if (mode !== 'live' || !live || !paper) return []
  if (live.trades < tradesMin || paper.trades < tradesMin) return []
  if (!isLower(live.trade_result, paper.trade_result)) return []
  return [
    {
      subject: 'paper better than live',
      priority: 'soon',
      category: 'research',
      title: 'It did better on paper than it does live',
      why: 'The mean result of a live trade is lower by more than half a percent of its worth.',
      steps: ['Let it go on with `mode: paper` by `schedules_update` until you know why'],
      evidence: [
        `on paper: ${paper.trades} trades, mean result ${paper.trade_result}`,
        `live: ${live.trades} trades, mean result ${live.trade_result}`,
      ],
    },
  ]
}

const shownReasons = 3

function idle({ idleReasons }: JudgedStrategy): Advice[] {
  if (idleReasons.length < idleMin) return []
  const counts = new Map<string, number>()
  for (const reason of idleReasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, shownReasons)
  return [
    {
      subject: 'no entries',
      priority: 'later',
      category: 'logic',
      title: `It entered nothing in ${idleMin} runs`,
      why: 'Its conditions may be too narrow for this market.',
      steps: ['See by `strategies_backtest` how often they were true, and change them by `schedules_update`'],
      evidence: most.map(([reason, count]) => `${count} times \`${reason}\``),
    },
  ]
}

export const strategyAdvice = (strategy: JudgedStrategy | undefined): Advice[] =>
  strategy ? [guards, budget, losses, drift, paperBetter, idle].flatMap((rule) => rule(strategy)) : []
