import {
  type Cursor,
  isNext,
  skip,
  takeDollars,
  takePerp,
  takePhrase,
  takeQuantity,
} from './strategy-cursor.ts'

/** Reads conditions on figures: `when RSI is below 30 and the price is above the 50 EMA`. */

type Condition = {
  left: string
  is: 'above' | 'below' | 'crosses_above' | 'crosses_below'
  right: string
}

const conditionsMax = 8
const startWords = ['when', 'if', 'once', 'whenever']
const endWords = ['sell', 'close', 'exit', 'get out', 'leave', 'then']
/** The lengths of averages that rules may read. */
const averages: Readonly<Record<string, readonly string[]>> = {
  ema: ['12', '20', '26', '50'],
  sma: ['20', '50', '200'],
}
const averageWords: Readonly<Record<string, string>> = {
  ema: 'ema',
  'exponential moving average': 'ema',
  sma: 'sma',
  'simple moving average': 'sma',
  'moving average': 'sma',
}

/** Reads one or several conditions, each of which has to hold. */
export function readConditions(cursor: Cursor, asset: string): Condition[] | undefined {
  if (takePhrase(cursor, startWords) === undefined) return undefined
  const conditions: Condition[] = []
  for (;;) {
    const condition = readOne(cursor, asset)
    if (!condition || conditions.length === conditionsMax) return undefined
    conditions.push(condition)
    const { at } = cursor
    skip(cursor, [','])
    if (takePhrase(cursor, ['and']) === undefined || isNext(cursor, endWords)) {
      cursor.at = at
      return conditions
    }
    skip(cursor, startWords)
  }
}

function readOne(cursor: Cursor, asset: string): Condition | undefined {
  const left = readFigure(cursor, asset)
  if (left === undefined) return undefined
  const verb = takePhrase(cursor, [
    'is',
    'goes',
    'falls',
    'drops',
    'dips',
    'rises',
    'climbs',
    'gets',
    'closes',
    'trades',
    'crosses',
  ])
  if (verb === undefined) return undefined
  skip(cursor, ['down', 'up', 'back'])
  const side = takePhrase(cursor, ['below', 'under', 'beneath', 'less than', 'above', 'over', 'more than'])
  if (side === undefined) return undefined
  const isAbove = side === 'above' || side === 'over' || side === 'more than'
  const right = takeDollars(cursor) ?? takeQuantityOrFigure(cursor, asset)
  if (right === undefined || right === left) return undefined
  const direction = isAbove ? ('above' as const) : ('below' as const)
  return { left, is: verb === 'crosses' ? (`crosses_${direction}` as const) : direction, right }
}

/** Takes a figure, or a number that names none: `50` of `the 50 EMA` belongs to the figure. */
function takeQuantityOrFigure(cursor: Cursor, asset: string): string | undefined {
  const figure = readFigure(cursor, asset)
  return figure ?? takeQuantity(cursor, ['number'])
}

function readFigure(cursor: Cursor, asset: string): string | undefined {
  const { at } = cursor
  skip(cursor, ['the', 'its'])
  const figure = readAverage(cursor) ?? readNamed(cursor) ?? readPrice(cursor, asset)
  if (figure === undefined) cursor.at = at
  return figure
}

function readAverage(cursor: Cursor): string | undefined {
  const { at } = cursor
  const before = takeQuantity(cursor, ['number'])
  skip(cursor, ['period', '-'])
  const name = takePhrase(cursor, Object.keys(averageWords))
  const kind = name === undefined ? undefined : averageWords[name]
  const length = before ?? (kind === undefined ? undefined : takeQuantity(cursor, ['number']))
  if (kind !== undefined && length !== undefined && averages[kind]?.includes(length))
    return `${kind}_${length}`
  cursor.at = at
  return undefined
}

function readNamed(cursor: Cursor): string | undefined {
  const name = takePhrase(cursor, [
    'macd histogram',
    'macd signal',
    'macd',
    'rsi',
    'adx',
    'atr',
    'upper bollinger band',
    'lower bollinger band',
    'stochastic',
  ])
  if (name === undefined) return undefined
  const { at } = cursor
  const isLength = (name === 'rsi' || name === 'adx') && takeQuantity(cursor, ['number']) === '14'
  if (!isLength) cursor.at = at
  const figures: Readonly<Record<string, string>> = {
    'macd histogram': 'macd_histogram',
    'macd signal': 'macd_signal',
    macd: 'macd',
    rsi: 'rsi_14',
    adx: 'adx_14',
    atr: 'atr_14',
    'upper bollinger band': 'bollinger_upper',
    'lower bollinger band': 'bollinger_lower',
    stochastic: 'stochastic_k',
  }
  return figures[name]
}

function readPrice(cursor: Cursor, asset: string): string | undefined {
  const { at } = cursor
  const named = takePerp(cursor)
  if (named !== undefined && named !== asset) {
    cursor.at = at
    return undefined
  }
  const word = takePhrase(cursor, named === undefined ? ['price', 'it'] : ['price'])
  return named !== undefined || word !== undefined ? 'price' : undefined
}
