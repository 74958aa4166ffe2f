import { one } from './decimal.ts'

/** Prices: at most five significant figures and a limited number of decimals; whole numbers always. */
export type Grid = { sizeDecimals: number; priceDecimals: number }

const figures = 100_000

const finest = ({ sizeDecimals, priceDecimals }: Grid): number =>
  10 ** (8 - Math.max(0, priceDecimals - sizeDecimals))

export const isOnTick = (price: number, grid: Grid): boolean => {
  if (price % one === 0) return true
  if (price % finest(grid) !== 0) return false
  let significant = price
  while (significant % 10 === 0) significant /= 10
  return significant < figures
}

export const tickAt = (price: number, grid: Grid): number => {
  let step = 1
  while (price / step >= figures) step *= 10
  return Math.min(one, Math.max(step, finest(grid)))
}

export const toTick = (price: number, grid: Grid): number => {
  const tick = tickAt(price, grid)
  return Math.max(tick, Math.round(price / tick) * tick)
}
