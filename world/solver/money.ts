import type { Currency } from './chains.ts'

/** Dollars are integers with this many digits after the point. */
const usdDecimals = 18
const shownUsdDecimals = 6

const powerOfTen = (digits: number): bigint => 10n ** BigInt(digits)

/** Decimal text to an integer with `decimals` digits after the point; further digits are cut off. */
export const parseDecimal = (text: string, decimals: number): bigint => {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'))
}

export const formatDecimal = (value: bigint, decimals: number): string => {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0')
  const fraction = decimals === 0 ? '' : digits.slice(-decimals).replace(/0+$/, '')
  const whole = digits.slice(0, digits.length - decimals)
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

export const parseUsd = (text: string): bigint => parseDecimal(text, usdDecimals)

export const formatUsd = (usd: bigint): string =>
  formatDecimal(usd / powerOfTen(usdDecimals - shownUsdDecimals), shownUsdDecimals)

export const usdOfUnits = (units: bigint, { decimals }: Currency, priceUsd: bigint): bigint =>
  (units * priceUsd) / powerOfTen(decimals)

/** Rounded down, as a payment of the solver is. */
export const unitsOfUsd = (usd: bigint, { decimals }: Currency, priceUsd: bigint): bigint =>
  (usd * powerOfTen(decimals)) / priceUsd

/** Rounded up, as a demand of the solver is. */
export const unitsCoveringUsd = (usd: bigint, { decimals }: Currency, priceUsd: bigint): bigint =>
  (usd * powerOfTen(decimals) + priceUsd - 1n) / priceUsd

export type AmountView = {
  currency: Currency
  amount: string
  amountFormatted: string
  amountUsd: string
  minimumAmount: string
}

export const amountView = (
  currency: Currency,
  units: bigint,
  priceUsd: bigint,
  minimumUnits = units,
): AmountView => ({
  currency,
  amount: String(units),
  amountFormatted: formatDecimal(units, currency.decimals),
  amountUsd: formatUsd(usdOfUnits(units, currency, priceUsd)),
  minimumAmount: String(minimumUnits),
})
