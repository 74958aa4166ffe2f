import type { JsonObject } from '#kernel/wire/json.ts'
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

const boughtOutcome: Formula = (context) => {
  const { slots, outputs } = context
  const rows = rowsAt(outputOf(outputs, 'found'), '/markets').map(({ row }) => row)
  const market = onlyRow(context, {
    rows: rows.filter((row) => row.accepting_orders === true),
    nameOf: (row) => row.question,
    none: 'The venue lists no market with these words that takes orders now',
  })
  if (isProblem(market)) return market
  const outcome = rowsAt(market, '/outcomes').find(({ row }) => isOutcome(slots.outcome, row.outcome))
  return outcome ? textAt(outcome.row, '/outcome_id') : stop('The market has no outcome of this name')
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
    none: 'You have no such shares',
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

export const predictionFormulas = {
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
