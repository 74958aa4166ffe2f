import type { JsonObject } from '#kernel/wire/json.ts'
import { wordsInCommon } from './answer-row-filters.ts'
import { type Formula, type FormulaContext, isProblem, type Problem, stop } from './input-formula.ts'
import { parseAmount, partOfDecimal } from './parse-amount-text.ts'
import { sharesSymbol } from './prediction-readers.ts'
import { outputOf, rowsAt, textAt } from './step-outputs.ts'

/** Fills the fields of orders at a prediction market. Nothing is chosen among several markets: the user is asked. */

const choicesMax = 4

type Rows = { rows: readonly JsonObject[]; nameOf: (row: JsonObject) => unknown; none: string }

/** Returns the only row that is meant; of several rows, the one that the user has chosen. */
function onlyRow({ slots }: FormulaContext, { rows, nameOf, none }: Rows): JsonObject | Problem {
  const chosen = rows.filter(({ outcome_id, condition_id }) =>
    [outcome_id, condition_id].includes(slots.market_id ?? ''),
  )
  const [only, ...others] = slots.market_id === undefined ? rows : chosen
  if (!only) return stop(none)
  if (others.length === 0) return only
  return {
    problem: 'ask',
    slot: 'market_id',
    question: 'Which one do you mean?',
    choices: rows.slice(0, choicesMax).map((row) => ({
      label: String(nameOf(row)),
      fill: { market_id: String(row.outcome_id ?? row.condition_id) },
    })),
  }
}

const isOutcome = (said: string | undefined, outcome: unknown): boolean =>
  said === undefined || String(outcome).toLowerCase() === said

/** Returns the markets that were found, those alone that have the most words of the question. */
function marketsFound({ slots, outputs }: FormulaContext): JsonObject[] {
  const rows = ['found', 'again'].flatMap((step) =>
    rowsAt(outputOf(outputs, step), '/markets').map(({ row }) => row),
  )
  const counted = rows.map((row) => ({ row, count: wordsInCommon(row, slots.question) }))
  const most = Math.max(0, ...counted.map(({ count }) => count))
  return counted.filter(({ count }) => count === most).map(({ row }) => row)
}

/** Returns the outcome that is bought: the one that was said, one that the question names, or Yes. */
function outcomeOf(
  market: JsonObject,
  { outcome, question = '' }: FormulaContext['slots'],
): JsonObject | Problem {
  const rows = rowsAt(market, '/outcomes').map(({ row }) => row)
  const nameOf = (row: JsonObject) => String(row.outcome).toLowerCase()
  const found =
    rows.find((row) => nameOf(row) === outcome) ??
    (outcome === undefined
      ? (rows.find((row) => question.includes(nameOf(row))) ?? rows.find((row) => nameOf(row) === 'yes'))
      : undefined)
  if (found) return found
  return {
    problem: 'ask',
    slot: 'outcome',
    question: 'On which outcome?',
    choices: rows
      .slice(0, choicesMax)
      .map((row) => ({ label: String(row.outcome), fill: { outcome: nameOf(row) } })),
  }
}

const boughtOutcome: Formula = (context) => {
  const market = onlyRow(context, {
    rows: marketsFound(context).filter((row) => row.accepting_orders === true),
    nameOf: (row) => row.question,
    none: 'The venue lists no market with these words that takes orders now: ask "what can i bet on"',
  })
  if (isProblem(market)) return market
  const outcome = outcomeOf(market, context.slots)
  return isProblem(outcome) ? outcome : textAt(outcome, '/outcome_id')
}

const soldPosition = (context: FormulaContext): JsonObject | Problem => {
  const { slots, outputs } = context
  const words = (slots.question ?? '').split(' ').filter((word) => word !== '')
  const rows = rowsAt(outputOf(outputs, 'held'), '/positions').map(({ row }) => row)
  return onlyRow(context, {
    rows: rows.filter(
      ({ title, outcome }) =>
        isOutcome(slots.outcome, outcome) &&
        words.every((word) => String(title).toLowerCase().includes(word)),
    ),
    nameOf: ({ outcome, title }) => `${outcome}: ${title}`,
    none: 'You have no such shares: "my bets" lists what you have',
  })
}

const soldShares: Formula = (context) => {
  const position = soldPosition(context)
  if (isProblem(position)) return position
  const size = textAt(position, '/size')
  const amount = parseAmount(context.slots.amount ?? 'all')
  if (size === undefined || !amount) return stop('The position could not be read')
  if (amount.kind === 'token' && amount.symbol === sharesSymbol) return amount.value
  if (amount.kind === 'usd' || amount.kind === 'token') return stop('Say how many shares, or a part of them.')
  return amount.kind === 'share' ? partOfDecimal(size, amount) : size
}

const dollars: Formula = ({ slots }) => {
  const amount = parseAmount(slots.amount)
  return amount?.kind === 'usd' ? amount.value : stop('Say the amount in dollars.')
}

const isMarketless = ({ outputs }: FormulaContext): boolean =>
  outputs.found !== undefined && rowsAt(outputOf(outputs, 'found'), '/markets').length === 0

export const predictionFormulas = {
  nothing_found: (context) => context.slots.question !== undefined && isMarketless(context),
  longest_word: ({ slots }) =>
    (slots.question ?? '').split(' ').toSorted((a, b) => b.length - a.length)[0] ?? '',
  has_prediction_orders: ({ outputs }) => rowsAt(outputOf(outputs, 'resting'), '/orders').length > 0,
  bought_outcome: boughtOutcome,
  sold_outcome: (context) => {
    const position = soldPosition(context)
    return isProblem(position) ? position : textAt(position, '/outcome_id')
  },
  sold_shares: soldShares,
  prediction_dollars: dollars,
  prediction_cash: (context) => {
    const amount = parseAmount(context.slots.amount)
    if (!amount || amount.kind === 'usd' || amount.kind === 'token') return dollars(context)
    const cash = textAt(outputOf(context.outputs, 'status'), '/spendable_cash_usd')
    return cash === undefined ? stop('The account could not be read') : partOfDecimal(cash, amount)
  },
} satisfies Record<string, Formula>
export type PredictionFormulaName = keyof typeof predictionFormulas
