import { fixedPointDecimals, mulDiv, rescale, toFixedPoint, usdDecimals } from '#kernel/money/money.ts'
import type { ClosedTrade } from './account.ts'

/** Trades out of fills: an entry opens or increases a position, and the fills of one exit close it or a part of it. */

export type StrategyFill = {
  asset: string
  isBuy: boolean
  size: string
  price: string
  feeUsd: string
  /** An exit has realised this after fees and funding. */
  realizedUsd: string | null
  reason: string
  isExit: boolean
  executionId: string | null
  atMs: number
}

type Open = { size: bigint; costMicros: bigint; feesMicros: bigint; openedMs: number }
type Exit = { trade: ClosedTrade; executionId: string | null }

/** Fills of one exit follow each other within this time. */
const oneExitMs = 60_000

const micros = (usd: string): bigint => rescale(toFixedPoint(usd), fixedPointDecimals, usdDecimals)
export const worthOfFill = ({ size, price }: Pick<StrategyFill, 'size' | 'price'>): bigint =>
  rescale(toFixedPoint(size) * toFixedPoint(price), 2 * fixedPointDecimals, usdDecimals)

/** Takes fills with the oldest first. An exit whose entry is not among them has the worth of the exit as its cost. */
export function tradesOf(fills: readonly StrategyFill[]): ClosedTrade[] {
  const open = new Map<string, Open>()
  const last = new Map<string, Exit>()
  const exits: Exit[] = []
  for (const fill of fills) {
    const { asset, executionId } = fill
    if (!fill.isExit) {
      open.set(asset, entered(open.get(asset), fill))
      last.delete(asset)
      continue
    }
    const { trade, left } = closed(open.get(asset), fill)
    if (left) open.set(asset, left)
    else open.delete(asset)
    const before = last.get(asset)
    if (before && isSameExit(before, fill)) {
      before.trade = joined(before.trade, trade)
      continue
    }
    const exit = { trade, executionId }
    last.set(asset, exit)
    exits.push(exit)
  }
  return exits.map(({ trade }) => trade)
}

const entered = (held: Open | undefined, fill: StrategyFill): Open => ({
  size: (held?.size ?? 0n) + toFixedPoint(fill.size),
  costMicros: (held?.costMicros ?? 0n) + worthOfFill(fill),
  feesMicros: (held?.feesMicros ?? 0n) + micros(fill.feeUsd),
  openedMs: held?.openedMs ?? fill.atMs,
})

const isSameExit = ({ trade, executionId }: Exit, fill: StrategyFill): boolean =>
  executionId === fill.executionId && trade.reason === fill.reason && fill.atMs - trade.closedMs <= oneExitMs

function closed(held: Open | undefined, fill: StrategyFill): { trade: ClosedTrade; left: Open | undefined } {
  const worth = worthOfFill(fill)
  const size = toFixedPoint(fill.size)
  const part = (whole: bigint) => (held && size < held.size ? mulDiv(whole, size, held.size) : whole)
  const costMicros = held ? part(held.costMicros) : worth
  const feesBefore = held ? part(held.feesMicros) : 0n
  const feesMicros = feesBefore + micros(fill.feeUsd)
  const gross = fill.isBuy ? costMicros - worth : worth - costMicros
  const netMicros = fill.realizedUsd === null ? gross - feesMicros : micros(fill.realizedUsd)
  const trade: ClosedTrade = {
    asset: fill.asset,
    side: fill.isBuy ? 'short' : 'long',
    openedMs: held?.openedMs ?? fill.atMs,
    closedMs: fill.atMs,
    costMicros,
    netMicros,
    feesMicros,
    fundingMicros: held ? gross - feesMicros - netMicros : 0n,
    reason: fill.reason,
  }
  const isWhole = !held || size >= held.size
  return {
    trade,
    left: isWhole
      ? undefined
      : {
          size: held.size - size,
          costMicros: held.costMicros - costMicros,
          feesMicros: held.feesMicros - feesBefore,
          openedMs: held.openedMs,
        },
  }
}

const joined = (a: ClosedTrade, b: ClosedTrade): ClosedTrade => ({
  ...a,
  closedMs: b.closedMs,
  costMicros: a.costMicros + b.costMicros,
  netMicros: a.netMicros + b.netMicros,
  feesMicros: a.feesMicros + b.feesMicros,
  fundingMicros: a.fundingMicros + b.fundingMicros,
})
