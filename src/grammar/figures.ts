import {
  computed,
  type FigureFormula,
  type Format,
  figureFormulas,
  printed,
  summed,
} from '#kernel/money/figure-format.ts'
import { fromUnits, isDecimal, toUnits } from '#kernel/money/money.ts'
import type { Asset, Names, TokenPlace } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import { parseAmount } from './parse-amount-text.ts'
import { type StepOutput, valueAt } from './step-outputs.ts'
import { periodOf, periodWords } from './times.ts'

/** Computes the figures of an answer, each from what an operation answered, at the JSON pointers that it names. */

export type Origin = {
  step: string
  operation: string
  pointers: readonly string[]
  formula: string | null
  fetchedAtMs: number
}
export type Scope = {
  step: string
  output: StepOutput
  base: string
  slots: Slots
  names: Names
  nowMs: number
  /** The positions of the rows that a sum adds up. */
  picked?: readonly number[]
}
export type Figure = { text: string; origin: Origin }

const call = /^([a-z]+)\(([^,()]+),([^,()]+)\)$/
const pointerOf = (base: string, path: string): string => (path.startsWith('/') ? path : `${base}/${path}`)

/** Converts smallest units of a token to a number by the token's decimals, which the registry knows. */
function unitsText(
  scope: Scope,
  [amountPath = '', chainField = '', tokenField = '']: readonly string[],
): { text: string; pointers: string[] } | undefined {
  const pointer = pointerOf(scope.base, amountPath)
  const units = valueAt(scope.output.output, pointer)
  const named = tokenNamed(scope, chainField, tokenField)
  if (typeof units !== 'string' || !/^\d{1,78}$/.test(units) || !named) return undefined
  const { asset, token } = named
  return {
    text: `${printed(fromUnits(BigInt(units), token.decimals), 'amount') ?? units} ${asset.symbol}`,
    pointers: [pointer],
  }
}

/** Finds the token of a row; if the row does not name its token, the token in the input of the call. */
function tokenNamed(
  { output, base, names }: Scope,
  chainField: string,
  tokenField: string,
): { asset: Asset; token: TokenPlace } | undefined {
  const read = (field: string): unknown => valueAt(output.output, `${base}/${field}`) ?? output.input?.[field]
  const chainId = read(chainField) ?? read('chain_id_in')
  const address = read(tokenField)
  if (typeof address !== 'string') return undefined
  for (const asset of names.universe.assets)
    for (const token of asset.tokens)
      if (token.chainId === chainId && token.address.toLowerCase() === address.toLowerCase())
        return { asset, token }
  return undefined
}

type Known = { value: string; at: number }
/** The figures over the picked rows of a list. */
const overRows: Readonly<Record<string, (values: readonly Known[]) => string | undefined>> = {
  sum: (values) => summed(values.map(({ value }) => value)),
  first: (values) => values[0]?.value,
  last: (values) => values.at(-1)?.value,
  max: (values) => extreme(values, 1n),
  min: (values) => extreme(values, -1n),
}
function extreme(values: readonly Known[], sign: bigint): string | undefined {
  const units = (text: string) => sign * toUnits(text, 18)
  return values.reduce<string | undefined>(
    (best, { value }) => (best === undefined || units(value) > units(best) ? value : best),
    undefined,
  )
}
const overRow = /^(sum|first|last|max|min)\(([^,()]+)\)$/

function ofRows(scope: Scope, [name = '', field = '']: readonly string[]) {
  const pointers = (scope.picked ?? []).map((at) => `${scope.base}/${at}/${field}`)
  const values = pointers.map((pointer, at) => ({ value: valueAt(scope.output.output, pointer), at }))
  const texts = values.flatMap(({ value, at }) => (typeof value === 'string' ? [{ value, at }] : []))
  const isNumeric = name === 'first' || name === 'last' || texts.every(({ value }) => isDecimal(value))
  return { value: isNumeric ? overRows[name]?.(texts) : undefined, pointers }
}

/** What the amount that the user said is worth at a price, and how much of the asset it buys. */
const withAmount: Readonly<Record<string, (price: string, slots: Slots) => string | undefined>> = {
  worth(price, { amount: text }) {
    const amount = parseAmount(text)
    return amount?.kind === 'token' ? computed('product', amount.value, price) : undefined
  },
  bought(price, { amount: text }) {
    const amount = parseAmount(text)
    return amount?.kind === 'usd' ? computed('ratio', amount.value, price) : undefined
  },
}
const withSaid = /^(worth|bought)\(([^,()]+)\)$/

/** Returns the figure that a placeholder names; undefined if it is not known. */
export function figure(scope: Scope, source: string, format: Format): Figure | undefined {
  const { output, base, step } = scope
  const { operation, fetchedAtMs } = output
  const made = (value: unknown, pointers: readonly string[], formula: string | null): Figure | undefined => {
    const text = printed(value, format)
    return text === undefined
      ? undefined
      : { text, origin: { step, operation, fetchedAtMs, pointers, formula } }
  }
  if (source.startsWith('units(')) {
    const found = unitsText(scope, source.slice(6, -1).split(','))
    const origin = { step, operation, fetchedAtMs, formula: 'units' }
    return found && { text: found.text, origin: { ...origin, pointers: found.pointers } }
  }
  if (source.startsWith('token(')) {
    const fields = source.slice(6, -1).split(',')
    const named = tokenNamed(scope, fields[0] ?? '', fields[1] ?? '')
    const pointers = fields.map((field) => pointerOf(base, field))
    return named && made(named.asset.symbol, pointers, 'token')
  }
  const list = overRow.exec(source)
  if (list) {
    const { value, pointers } = ofRows(scope, list.slice(1))
    return made(value, pointers, list[1] ?? null)
  }
  if (source === 'move(open,close)') {
    const [first, last] = [ofRows(scope, ['first', 'open']), ofRows(scope, ['last', 'close'])]
    return made(computed('change', last.value, first.value), [...first.pointers, ...last.pointers], 'change')
  }
  if (source === 'said(period)') {
    const { slots } = scope
    // Only reads of candles have a time of their own where the user said none.
    const isKnown = slots.period !== undefined || operation === 'market_candles'
    return made(isKnown ? periodWords(periodOf(slots)) : undefined, [''], 'said')
  }
  if (source === 'said(asset)') return made(scope.slots.asset, [''], 'said')
  const said = withSaid.exec(source)
  if (said) {
    const pointer = pointerOf(base, said[2] ?? '')
    const price = valueAt(output.output, pointer)
    const value = typeof price === 'string' ? withAmount[said[1] ?? '']?.(price, scope.slots) : undefined
    return made(value, [pointer], said[1] ?? null)
  }
  const formula = call.exec(source)
  if (formula) {
    const [, name = '', first = '', second = ''] = formula
    const pointers = [pointerOf(base, first), pointerOf(base, second)]
    const [a, b] = pointers.map((pointer) => valueAt(output.output, pointer))
    return made(name in figureFormulas ? computed(name as FigureFormula, a, b) : undefined, pointers, name)
  }
  const pointer = pointerOf(base, source)
  return made(valueAt(output.output, pointer), [pointer], null)
}
