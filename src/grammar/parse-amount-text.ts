import { fromUnits, isDecimal, mulDiv, toUnits } from '#kernel/money/money.ts'

/** The amount that a slot holds as text: `50 usd`, `0.4 ETH`, `1/2`, `15%`, `all`, `rest`. */
export type AmountText =
  | { kind: 'usd'; value: string }
  | { kind: 'token'; value: string; symbol: string }
  | { kind: 'share'; over: bigint; under: bigint }
  | { kind: 'all' }
  | { kind: 'rest' }

export function parseAmount(text: string | undefined): AmountText | undefined {
  if (text === undefined) return undefined
  if (text === 'all' || text === 'rest') return { kind: text }
  const share = /^([1-9])\/([1-9]\d?)$/.exec(text)
  if (share) return { kind: 'share', over: BigInt(share[1] ?? 0), under: BigInt(share[2] ?? 1) }
  if (text.endsWith('%')) {
    const value = text.slice(0, -1)
    return isDecimal(value)
      ? { kind: 'share', over: toUnits(value, 18), under: 100n * 10n ** 18n }
      : undefined
  }
  const [value = '', symbol = ''] = text.split(' ')
  if (!isDecimal(value) || symbol === '') return undefined
  return symbol === 'usd' ? { kind: 'usd', value } : { kind: 'token', value, symbol }
}

export const isShare = (text: string | undefined): boolean => {
  const amount = parseAmount(text)
  return amount !== undefined && amount.kind !== 'usd' && amount.kind !== 'token'
}

/** Returns the part of some units that an amount names, rounded down, and never more than all of the units. */
export function partOf(units: bigint, amount: AmountText): bigint | undefined {
  if (amount.kind === 'all' || amount.kind === 'rest') return units
  if (amount.kind !== 'share' || amount.over < 0n || amount.over > amount.under) return undefined
  return mulDiv(units, amount.over, amount.under)
}

/**
 * Returns a part of a decimal, rounded down to `given` places; without `given`, to the places of the decimal
 * itself.
 */
export function partOfDecimal(text: string, amount: AmountText, given?: number): string | undefined {
  const own = text.split('.')[1]?.length ?? 0
  const places = given ?? own
  const whole = own > places ? text.slice(0, text.indexOf('.') + 1 + places) : text
  const part = partOf(toUnits(whole, places), amount)
  return part === undefined ? undefined : fromUnits(part, places)
}

/** Converts percent or basis points to a fraction: `12%` becomes 0.12. */
export function fractionText(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const percent = /^(\d+(?:\.\d+)?)(%| bps)$/.exec(text)
  if (!percent) return undefined
  const places = percent[2] === '%' ? 2 : 4
  const value = percent[1] ?? '0'
  if ((value.split('.')[1]?.length ?? 0) + places > 18) return undefined
  return fromUnits(toUnits(value, 18 - places), 18)
}
