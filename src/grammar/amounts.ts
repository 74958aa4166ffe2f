import { isDecimal, toUnits } from '#kernel/money/money.ts'
import { dollarSymbol } from './asset-and-chain-names.ts'
import { assetPositions, symbolOf, takeAsset } from './asset-readers.ts'
import { assetAt, indexOf, indexWhere, quantityAt, type Reader, type Slots, take } from './clause-reader.ts'
import { type Quantity, quantityText } from './quantity.ts'
import { has } from './tag.ts'

/** Reads amounts: which number of a clause is one, and which asset it counts. */

const isShare = ({ unit }: Quantity): boolean => unit === 'share' || unit === 'percent'

/**
 * Returns the position of the asset that a number counts: the next word, apart from `of`, `worth of` and articles.
 */
function countedAsset(reader: Reader, at: number): number {
  for (let next = at + 1; next <= at + 3; next++) {
    if (assetAt(reader, next)) return next
    if (!has(reader.tokens[next], 'FILLER', 'OF', 'MINE', 'TOKENWORD')) return -1
  }
  return -1
}

export type Amount = { text: string; at: number; asset: number; kind: 'usd' | 'token' | 'share' | 'number' }

/** Whether a number can be an amount: zero, a negative number and a share of more than all cannot. */
function isPossible({ unit, value }: Quantity): boolean {
  if (unit === 'share') return Number(value.split('/')[0]) <= Number(value.split('/')[1])
  if (!isDecimal(value)) return false
  const units = toUnits(value, 18)
  return units > 0n && (unit !== 'percent' || units <= toUnits('100', 18))
}

/** Finds the first amount of a clause, with the asset that it counts. */
export function findAmount(reader: Reader): Amount | undefined {
  const at = indexWhere(
    reader,
    ({ quantity }) =>
      quantity !== undefined && (['usd', 'number'].includes(quantity.unit) || isShare(quantity)),
  )
  const all = indexOf(reader, 'ALL')
  const rest = indexOf(reader, 'REST')
  const quantity = quantityAt(reader, at)
  if (quantity && (all < 0 || !isShare(quantity))) {
    if (!isPossible(quantity)) return undefined
    const asset = countedAsset(reader, at)
    const symbol = reader.tokens[asset]?.asset?.symbol
    if (quantity.unit === 'usd' || isShare(quantity))
      return { text: quantityText(quantity), at, asset, kind: quantity.unit === 'usd' ? 'usd' : 'share' }
    // A number right before a symbol counts that asset. In `100 of btc` the number may count dollars or coins, so its
    // kind is `number`.
    const isCounted = symbol !== undefined && !has(reader.tokens[at + 1], 'OF')
    return isCounted
      ? { text: `${quantity.value} ${symbol}`, at, asset, kind: 'token' }
      : { text: quantity.value, at, asset, kind: 'number' }
  }
  const word = rest >= 0 ? rest : all
  if (word < 0) return undefined
  return { text: rest >= 0 ? 'rest' : 'all', at: word, asset: countedAsset(reader, word), kind: 'share' }
}

/** Reads the amount of a slot that counts dollars: USDC are dollars there, and a bare number means dollars too. */
export function readDollars(reader: Reader, slots: Slots): void {
  const amount = findAmount(reader)
  const dollars = assetPositions(reader).filter((at) => symbolOf(reader, at) === dollarSymbol)
  if (!amount) {
    take(reader, ...dollars)
    return
  }
  const symbol = symbolOf(reader, amount.asset)
  take(reader, amount.at)
  if (symbol === dollarSymbol) take(reader, amount.asset)
  if (amount.kind === 'token') {
    const [value = '', counted] = amount.text.split(' ')
    slots.amount = counted === dollarSymbol ? `${value} usd` : amount.text
  } else slots.amount = amount.kind === 'number' ? `${amount.text} usd` : amount.text
  take(reader, ...dollars)
}

/** Reads one asset and its amount, as orders at the venue have them. */
export function readSized(reader: Reader, slots: Slots): void {
  const amount = findAmount(reader)
  const positions = assetPositions(reader)
  const isDollar = (at: number) => symbolOf(reader, at) === dollarSymbol
  takeAsset(
    reader,
    slots,
    positions.find((at) => !isDollar(at)),
  )
  // `100 of btc` and `btc 100` do not say whether dollars or coins are counted.
  if (!amount || amount.kind === 'number') return
  take(reader, amount.at)
  if (amount.asset >= 0 && isDollar(amount.asset)) {
    take(reader, amount.asset)
    slots.amount = amount.kind === 'token' ? `${amount.text.split(' ')[0]} usd` : amount.text
  } else slots.amount = amount.text
}
