import { type OwnPosition, ownPosition } from '#engines/venue/records/reducible-part.ts'
import { fromUnits } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type OpenPosition, priceDecimals } from '#market/strategies/account.ts'
import { unitsOfSize } from '#market/strategies/matching.ts'
import type { MarketRules, OrderIntent } from '#market/strategies/strategy.ts'
import { applyFundingRate, applyGuards, type StrategyRun } from '#market/strategies/strategy-run.ts'
import type { StrategyAccount } from './account-store.ts'
import { applyLostPart, applyOwnFills, type LiveFillRow } from './live-account.ts'
import { fillsFromMs, type LiveCursor, liveCursorOf, storedCursor } from './live-cursor.ts'
import {
  comparedThroughMs,
  isActing,
  liquidationSince,
  marketsOfOpenTasks,
  type OwnOrder,
  openOrdersOf,
  settleSpend,
  unappliedFills,
} from './live-records.ts'
import type { StrategyTerms, Synced } from './mode-driver.ts'

/** Brings a locked live account up to date: own fills, parts that are gone, funding, prices and guards. */

export type HourlyFunding = { asset: string; atMs: number; rateUnits: bigint }
export type LiveReading = {
  terms: StrategyTerms
  nowMs: number
  marks: ReadonlyMap<string, bigint>
  funding: readonly HourlyFunding[]
  dayEndsMs: number
  /** Whether the guards are read: the end of a run leaves them to the watch, which says that they have tripped. */
  readsGuards: boolean
}
type Syncing = { run: StrategyRun; cursor: LiveCursor; rows: LiveFillRow[] }

/** A part is gone if the record shows it as long as this. */
const lostAfterMs = 2_000

export async function applyLiveReading(
  tx: Tx,
  locked: StrategyAccount,
  reading: LiveReading,
): Promise<Synced> {
  const { terms, nowMs, marks, dayEndsMs } = reading
  const { userId, strategyId, config } = terms
  const assets = Object.keys(config.decision.markets)
  const before = liveCursorOf(locked.cursor, nowMs)
  const comparedMs = await comparedThroughMs(tx, userId)
  const fills = await unappliedFills(tx, { userId, strategyId, assets, sinceMs: before.fills_from_ms })
  const withMarks = { ...locked.run, marks: new Map([...locked.run.marks, ...marks]) }
  const applied = applyOwnFills(withMarks, fills, { config, counted: before.counted })
  const filled: Syncing = {
    run: applied.run,
    rows: [...applied.rows],
    cursor: {
      ...before,
      counted: applied.counted,
      fills_from_ms: fillsFromMs(before, { nowMs, comparedMs }),
    },
  }
  const synced = applyFunding(await applyLostParts(tx, filled, reading), reading)
  const open = await openOrdersOf(tx, { userId, strategyId, assets })
  const acting = synced.cursor.run !== undefined && (await isActing(tx, synced.cursor.run))
  const orders = { pending: acting ? synced.run.pending : [], resting: restingEntries(open) }
  const ordered = { ...synced.run, ...orders }
  const run = reading.readsGuards ? applyGuards(ordered, nowMs, { config, dayEndsMs }) : ordered
  await settleSpend(tx, strategyId, new Date(nowMs))
  const rows = synced.rows.map((row) => ({ ...row, strategy_id: strategyId, mode: 'live' as const }))
  const hasChanged =
    rows.length > 0 ||
    run.account !== locked.run.account ||
    run.guards !== locked.run.guards ||
    run.pending.length !== locked.run.pending.length ||
    run.resting.length !== locked.run.resting.length ||
    synced.cursor.less !== before.less
  return { account: { ...locked, run, cursor: storedCursor(synced.cursor) }, fills: rows, hasChanged }
}

/** The orders that rest to enter, as the venue has them by the record. */
const restingEntries = (orders: readonly OwnOrder[]): OrderIntent[] =>
  orders.flatMap(({ asset, is_buy, size, price, trigger_price, reduce_only }) =>
    reduce_only || trigger_price !== null
      ? []
      : [
          {
            asset,
            side: is_buy ? ('buy' as const) : ('sell' as const),
            order_type: 'limit' as const,
            size,
            price,
            reduce_only: false,
          },
        ],
  )

/** Closes what the account still has although the record of the venue has less: a person has sold it, or the venue. */
async function applyLostParts(tx: Tx, syncing: Syncing, reading: LiveReading): Promise<Syncing> {
  const { terms, nowMs } = reading
  const { userId, strategyId, config } = terms
  const positions = [...syncing.run.account.positions]
  if (positions.length === 0)
    return hasKeys(syncing.cursor.less) ? { ...syncing, cursor: { ...syncing.cursor, less: {} } } : syncing
  const busy = await marketsOfOpenTasks(tx, { userId, strategyId })
  const less: Record<string, { units: string; since_ms: number }> = {}
  let { run } = syncing
  const rows = [...syncing.rows]
  for (const [n, [asset, position]] of positions.entries()) {
    const rules = config.decision.markets[asset]
    if (!rules || busy.has(asset)) continue
    const own = await ownPosition(tx, { userId, symbol: asset, schedule: strategyId })
    const gone = goneUnits(position, own, rules)
    if (gone <= 0n) continue
    const known = syncing.cursor.less[asset]
    if (known?.units !== String(gone) || nowMs - known.since_ms < lostAfterMs) {
      less[asset] = known?.units === String(gone) ? known : { units: String(gone), since_ms: nowMs }
      continue
    }
    const liquidated = await liquidationSince(tx, { userId, asset, sinceMs: position.openedMs })
    const price = liquidated ?? fromUnits(run.marks.get(asset) ?? 0n, priceDecimals)
    const reason = liquidated === undefined ? 'by_hand' : 'liquidation'
    const lost = { asset, units: gone, price, atMs: nowMs, reason } as const
    const closed = applyLostPart(run, lost, { config, fillId: -(BigInt(nowMs) * 100n + BigInt(n)) })
    run = closed.run
    rows.push(...closed.rows)
  }
  const isSame = !hasKeys(less) && !hasKeys(syncing.cursor.less)
  return { run, rows, cursor: isSame ? syncing.cursor : { ...syncing.cursor, less } }
}

const hasKeys = (object: object): boolean => Object.keys(object).length > 0

/** What of a position the record does not have; nothing while orders are open whose fills are not known. */
function goneUnits(position: OpenPosition, own: OwnPosition | undefined, rules: MarketRules): bigint {
  if (!own || own.isLong !== position.isLong) return position.sizeUnits
  return own.isSettled ? position.sizeUnits - unitsOfSize(own.size, rules) : 0n
}

function applyFunding(syncing: Syncing, { terms, funding }: LiveReading): Syncing {
  let { run } = syncing
  let fundingMs = syncing.cursor.funding_ms
  for (const { asset, atMs, rateUnits } of funding) {
    // Another reading has applied it meanwhile.
    if (atMs <= syncing.cursor.funding_ms) continue
    const held = run.account.positions.get(asset)
    if (held && held.openedMs < atMs) run = applyFundingRate(run, { asset, rateUnits }, terms.config)
    fundingMs = Math.max(fundingMs, atMs)
  }
  return { ...syncing, run, cursor: { ...syncing.cursor, funding_ms: fundingMs } }
}
