import { mulDiv } from '#kernel/money/money.ts'
import { million } from './entry.ts'
import type { MarketRules } from './strategy.ts'

/**
 * The account of a simulation, to the unit: cash in micro-dollars, sizes in lots of their market, prices in units of
 * eight decimals. Every function returns a new account; each rounds against the account.
 */

export const priceDecimals = 8
const usdPlaces = 6
const priceOne = 10 ** priceDecimals
export const priceUnitsOf = (price: number): bigint => BigInt(Math.round(price * priceOne))
export const priceOfUnits = (units: bigint): number => Number(units) / priceOne

export type Protective = { priceUnits: bigint; isMarket: boolean }
export type OpenPosition = {
  isLong: boolean
  sizeUnits: bigint
  /** What the position was worth where it was opened. */
  costMicros: bigint
  leverage: number
  isCross: boolean
  openedMs: number
  /** A target counts from this time on: within a candle nobody knows whether it came before the entry. */
  targetFromMs: number
  feesMicros: bigint
  /** What the position has paid; below zero, it has received. */
  fundingMicros: bigint
  stop?: Protective
  target?: Protective
}
export type ClosedTrade = {
  asset: string
  side: 'long' | 'short'
  openedMs: number
  closedMs: number
  costMicros: bigint
  /** The result after fees and funding. */
  netMicros: bigint
  feesMicros: bigint
  fundingMicros: bigint
  reason: string
}
export type Account = {
  cashMicros: bigint
  positions: ReadonlyMap<string, OpenPosition>
  feesMicros: bigint
  fundingMicros: bigint
  /** What entries were worth together. */
  spentMicros: bigint
}
export type Marks = ReadonlyMap<string, bigint>
export type MarketTable = Readonly<Record<string, MarketRules>>

export const openAccount = (cashMicros: bigint): Account => ({
  cashMicros,
  positions: new Map(),
  feesMicros: 0n,
  fundingMicros: 0n,
  spentMicros: 0n,
})

export const worthMicros = (
  sizeUnits: bigint,
  priceUnits: bigint,
  { size_decimals }: Pick<MarketRules, 'size_decimals'>,
  rounding: 'down' | 'up' = 'down',
): bigint =>
  mulDiv(sizeUnits * priceUnits, 1n, 10n ** BigInt(size_decimals + priceDecimals - usdPlaces), rounding)

export const feeOf = (micros: bigint, ppm: bigint): bigint => mulDiv(micros, ppm, million, 'up')

/** Returns what a position has won at a price, before the costs of closing it. */
export function unrealizedMicros(
  position: OpenPosition,
  priceUnits: bigint,
  rules: Pick<MarketRules, 'size_decimals'>,
): bigint {
  const { isLong, sizeUnits, costMicros } = position
  return isLong
    ? worthMicros(sizeUnits, priceUnits, rules) - costMicros
    : costMicros - worthMicros(sizeUnits, priceUnits, rules, 'up')
}

export function equityMicros({ cashMicros, positions }: Account, marks: Marks, markets: MarketTable): bigint {
  let sum = cashMicros
  for (const [asset, position] of positions) {
    const [mark, rules] = [marks.get(asset), markets[asset]]
    if (mark !== undefined && rules) sum += unrealizedMicros(position, mark, rules)
  }
  return sum
}

export const marginMicros = ({ costMicros, leverage }: OpenPosition): bigint =>
  mulDiv(costMicros, 1n, BigInt(leverage), 'up')

/** Returns the equity less the margins of all positions, at least 0. */
export function availableMicros(account: Account, equity: bigint): bigint {
  let free = equity
  for (const position of account.positions.values()) free -= marginMicros(position)
  return free < 0n ? 0n : free
}

export type SimulatedFill = {
  asset: string
  isBuy: boolean
  sizeUnits: bigint
  valueMicros: bigint
  feeMicros: bigint
  atMs: number
  reason: string
}
export type EntryTerms = Pick<OpenPosition, 'leverage' | 'isCross' | 'targetFromMs' | 'stop' | 'target'>

/** Opens or increases a position. An order against a position is no entry: it reduces, by `applyExit`. */
export function applyEntry(account: Account, fill: SimulatedFill, terms: EntryTerms): Account {
  const { asset, isBuy, sizeUnits, valueMicros, feeMicros, atMs } = fill
  const held = account.positions.get(asset)
  if (held && held.isLong !== isBuy) throw new Error(`an entry against the position in ${asset}`)
  const position: OpenPosition = {
    ...terms,
    isLong: isBuy,
    sizeUnits: (held?.sizeUnits ?? 0n) + sizeUnits,
    costMicros: (held?.costMicros ?? 0n) + valueMicros,
    openedMs: held?.openedMs ?? atMs,
    feesMicros: (held?.feesMicros ?? 0n) + feeMicros,
    fundingMicros: held?.fundingMicros ?? 0n,
  }
  return {
    ...account,
    cashMicros: account.cashMicros - feeMicros,
    feesMicros: account.feesMicros + feeMicros,
    spentMicros: account.spentMicros + valueMicros,
    positions: new Map(account.positions).set(asset, position),
  }
}

type Exited = { account: Account; trade?: ClosedTrade }

/** Reduces a position by at most what it is; the part that is closed takes its share of cost, fees and funding. */
export function applyExit(account: Account, fill: SimulatedFill): Exited {
  const held = account.positions.get(fill.asset)
  if (!held || held.isLong === fill.isBuy) return { account }
  const isWhole = fill.sizeUnits >= held.sizeUnits
  const part = (micros: bigint) => (isWhole ? micros : (micros * fill.sizeUnits) / held.sizeUnits)
  const cost = part(held.costMicros)
  const gross = held.isLong ? fill.valueMicros - cost : cost - fill.valueMicros
  const positions = new Map(account.positions)
  const feesBefore = part(held.feesMicros)
  const funding = part(held.fundingMicros)
  if (isWhole) positions.delete(fill.asset)
  else
    positions.set(fill.asset, {
      ...held,
      sizeUnits: held.sizeUnits - fill.sizeUnits,
      costMicros: held.costMicros - cost,
      feesMicros: held.feesMicros - feesBefore,
      fundingMicros: held.fundingMicros - funding,
    })
  const feesMicros = feesBefore + fill.feeMicros
  return {
    account: {
      ...account,
      cashMicros: account.cashMicros + gross - fill.feeMicros,
      feesMicros: account.feesMicros + fill.feeMicros,
      positions,
    },
    trade: {
      asset: fill.asset,
      side: held.isLong ? 'long' : 'short',
      openedMs: held.openedMs,
      closedMs: fill.atMs,
      costMicros: cost,
      netMicros: gross - feesMicros - funding,
      feesMicros,
      fundingMicros: funding,
      reason: fill.reason,
    },
  }
}

export const fundingDecimals = 10
const fundingOne = 10n ** BigInt(fundingDecimals)
export const fundingUnitsOf = (rate: number): bigint => BigInt(Math.round(rate * 10 ** fundingDecimals))

/** Pays the funding of a position: longs pay a rate above zero, shorts one below it. */
export function applyFunding(
  account: Account,
  { asset, rateUnits, priceUnits }: { asset: string; rateUnits: bigint; priceUnits: bigint },
  markets: MarketTable,
): Account {
  const [held, rules] = [account.positions.get(asset), markets[asset]]
  if (!held || !rules || rules.kind === 'spot' || rateUnits === 0n) return account
  const worth = worthMicros(held.sizeUnits, priceUnits, rules)
  const paid = mulDiv(worth * (held.isLong ? rateUnits : -rateUnits), 1n, fundingOne, 'up')
  const position = { ...held, fundingMicros: held.fundingMicros + paid }
  return {
    ...account,
    cashMicros: account.cashMicros - paid,
    fundingMicros: account.fundingMicros + paid,
    positions: new Map(account.positions).set(asset, position),
  }
}

/**
 * Returns the price at which the margin of a position is down to what the venue requires; undefined where no price does
 * that. A cross position has all cash behind it, an isolated one its own margin.
 */
export function liquidationPriceUnits(
  account: Account,
  asset: string,
  rules: MarketRules,
): bigint | undefined {
  const held = account.positions.get(asset)
  if (!held || rules.kind === 'spot') return undefined
  const behind = held.isCross ? account.cashMicros : marginMicros(held) - held.fundingMicros
  const twice = 2n * BigInt(rules.venue_leverage_max)
  // Long: behind + size * price - cost = size * price / twice; short: behind + cost - size * price = the same.
  const worth = held.isLong
    ? mulDiv(held.costMicros - behind, twice, twice - 1n, 'up')
    : mulDiv(held.costMicros + behind, twice, twice + 1n)
  if (worth <= 0n) return undefined
  const scale = 10n ** BigInt(rules.size_decimals + priceDecimals - usdPlaces)
  return mulDiv(worth * scale, 1n, held.sizeUnits, held.isLong ? 'up' : 'down')
}

/** Takes a position over for the venue: what is left of its margin is lost. */
export function applyLiquidation(account: Account, asset: string, atMs: number): Exited {
  const held = account.positions.get(asset)
  if (!held) return { account }
  const positions = new Map(account.positions)
  positions.delete(asset)
  const margin = marginMicros(held) - held.fundingMicros
  const behind = held.isCross || margin > account.cashMicros ? account.cashMicros : margin
  const lost = behind > 0n ? behind : 0n
  return {
    account: { ...account, cashMicros: account.cashMicros - lost, positions },
    trade: {
      asset,
      side: held.isLong ? 'long' : 'short',
      openedMs: held.openedMs,
      closedMs: atMs,
      costMicros: held.costMicros,
      netMicros: -lost - held.feesMicros - held.fundingMicros,
      feesMicros: held.feesMicros,
      fundingMicros: held.fundingMicros,
      reason: 'liquidation',
    },
  }
}
