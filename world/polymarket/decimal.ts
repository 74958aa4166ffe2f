/** Shares and dollars are whole numbers of 1e-6, prices of 1e-4. */
export const unit = 1_000_000
export const priceUnit = 10_000

const text = (value: bigint, decimals: number): string => {
  const negative = value < 0n
  const digits = (negative ? -value : value).toString().padStart(decimals + 1, '0')
  const fraction = digits.slice(-decimals).replace(/0+$/, '')
  const whole = digits.slice(0, -decimals)
  return `${negative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

export const unitsText = (units: number | bigint): string => text(BigInt(units), 6)

export const priceText = (price: number): string => text(BigInt(price), 4)

/** For the servers that answer numbers. */
export const unitsNumber = (units: number | bigint): number => Number(units) / unit

/** The cash of shares at a price. */
export const cashOf = (shares: number, price: number): number =>
  Number((BigInt(shares) * BigInt(price)) / BigInt(priceUnit))

/** The average price of a trade: up to six decimals. */
export const averagePrice = (cash: number, shares: number): string =>
  shares === 0 ? '0' : text((BigInt(cash) * BigInt(unit)) / BigInt(shares), 6)

/**
 * Quantities of a match are multiples of this, and prices multiples of 0.001, so that the cash of each is a whole number
 * of units.
 */
export const lot = 1_000
