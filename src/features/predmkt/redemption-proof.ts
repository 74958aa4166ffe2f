import { later } from '#kernel/clock.ts'
import type { Shares } from '#kernel/money/prediction-setup.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { TaskView } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import type { RelayTaskData } from './relay-action.ts'
import { relayerOf } from './relay-outcome.ts'
import { redemptionsOf } from './store/redemption-store.ts'

/** What proves a redemption: the receipt of the own batch, or the transaction that the venue's record lists. */

export type Target = {
  market_id: string
  shares: { outcome_id: string; units: string; payout: string }[]
  title: string
}
export type RedeemTaskData = RelayTaskData & {
  targets: Target[]
  /** The condition that was asked for; null for all. */
  asked: string | null
  /** What the task's own batch has redeemed, as its receipt shows it. */
  own?: Target[]
  own_tx?: string | null
  /** When shares were first seen gone that the own batch did not redeem, in milliseconds. */
  gone_ms?: number
}
export type RedeemTask = TaskView<RedeemTaskData>

const dollar = 1_000_000n
/** A redemption that another task recorded so long before this one may be the same one. */
export const overlapMs = 60_000
/** So many of the latest redemptions are compared. */
export const rowsMax = 200

export const isOfMarket =
  ({ market_id: id }: Target) =>
  ({ market_id }: Target): boolean =>
    market_id === id

export function targetWith(
  market: PredictionMarket,
  held: readonly (bigint | undefined)[],
): Target | undefined {
  if (held.every((units) => units === 0n)) return undefined
  return {
    market_id: market.marketId,
    title: market.question,
    shares: market.outcomes.map(({ outcomeId }, index) => ({
      outcome_id: outcomeId,
      units: String(held[index] ?? 0n),
      payout: String(((held[index] ?? 0n) * (market.payoutMicros?.[index] ?? 0n)) / dollar),
    })),
  }
}

export type Redemption = { target: Target; by: 'us' | 'venue'; txHash: string | null }
export const byUs =
  (txHash: string | null) =>
  (target: Target): Redemption => ({ target, by: 'us', txHash })

type Listed = Pick<Redemption, 'by' | 'txHash'>

/**
 * The latest redemption of each market that the venue's record lists, without those that are booked already. A batch of
 * the gateway that this database has lost counts as its own.
 */
export async function listedRedemptions(
  deps: PredmktDeps,
  { userId, data: { wallet } }: Pick<RedeemTask, 'userId' | 'data'>,
  bookedHashes: ReadonlySet<string>,
): Promise<Map<string, Listed>> {
  const [{ items }, rows] = await Promise.all([
    deps.venue.activity(wallet.wallet, 100),
    redemptionsOf(deps.db, { userId, venue: deps.venue.name }, rowsMax),
  ])
  const isBooked = (marketId: string, txHash: string, at: Date): boolean =>
    bookedHashes.has(txHash) ||
    rows.some(
      (row) =>
        row.market_id.toLowerCase() === marketId &&
        (row.tx_hash?.toLowerCase() === txHash || at < later(row.at, -overlapMs)),
    )
  const latest = new Map<string, { txHash: string; at: Date }>()
  for (const { type, marketId, txHash, at } of items) {
    const id = marketId.toLowerCase()
    const hash = txHash?.toLowerCase()
    const known = latest.get(id)
    if (type !== 'redeem' || hash === undefined || isBooked(id, hash, at) || (known && known.at >= at))
      continue
    latest.set(id, { txHash: hash, at })
  }
  if (latest.size === 0) return new Map()
  const relayed = await relayerOf(deps).recent(wallet.owner)
  const isRelayed = (hash: string) => relayed.some(({ txHash }) => txHash?.toLowerCase() === hash)
  return new Map(
    [...latest].map(([id, { txHash }]) => [id, { by: isRelayed(txHash) ? 'us' : 'venue', txHash }]),
  )
}

export const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n)
export const payoutOf = ({ shares }: Target): bigint => sum(shares.map(({ payout }) => BigInt(payout)))

/** The cash that a transaction paid to the wallet. */
export function paidBy(deps: PredmktDeps, { wallet }: RedeemTaskData, receipt: Receipt): bigint {
  const cash = moneyOf(deps).cashToken.toLowerCase()
  const own = wallet.wallet.toLowerCase()
  const paid = deps.chain
    .transfers(receipt)
    .filter(({ token, to }) => token.toLowerCase() === cash && to.toLowerCase() === own)
  return sum(paid.map(({ amountUnits }) => amountUnits))
}

/** The shares of the targets that left the wallet in a transaction. */
export async function redeemedIn(
  deps: PredmktDeps,
  { targets, wallet }: RedeemTaskData,
  { logs }: Receipt,
): Promise<Target[]> {
  const sent = moneyOf(deps).sharesSent(wallet.wallet, logs)
  const found: Target[] = []
  for (const { market_id: marketId } of targets) {
    const market = await deps.venue.market({ marketId })
    const target = market && targetWith(market, market.outcomes.map(unitsIn(sent)))
    if (target) found.push(target)
  }
  return found
}

const unitsIn =
  (sent: readonly Shares[]) =>
  ({ outcomeId: id }: { outcomeId: string }): bigint =>
    sum(sent.filter(({ outcomeId }) => outcomeId === id).map(({ sizeUnits }) => sizeUnits))
