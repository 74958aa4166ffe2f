import { later } from '#kernel/clock.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { Shares } from '#kernel/money/prediction-setup.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { TaskView } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import type { RelayTaskData } from './relay-action.ts'
import { type NewRedemption, redemptionsOf } from './store/redemption-store.ts'

/** What proves a redemption: the receipt of the own batch, or the transaction that the venue's record lists. */

type TargetShares = {
  outcome_id: string
  units: string
  payout: string
  /** What the venue says that a share pays, in millionths of a dollar: it divides what the chain has paid. */
  per_share?: string
}
export type Target = { market_id: string; shares: TargetShares[]; title: string }
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
      per_share: String(market.payoutMicros?.[index] ?? 0n),
    })),
  }
}

export type Redemption = { target: Target; by: 'us' | 'venue'; txHash: string }
export const byUs =
  (txHash: string) =>
  (target: Target): Redemption => ({ target, by: 'us', txHash })

type Listed = Pick<Redemption, 'by' | 'txHash'>
type WalletOf = { userId: string; wallet: VenueWallet }

/**
 * The latest redemption of each market that the venue's record lists, without those that a task has reported already. A
 * batch of the gateway that this database has lost counts as its own.
 */
export async function listedRedemptions(
  deps: PredmktDeps,
  { userId, wallet }: WalletOf,
): Promise<Map<string, Listed>> {
  const [{ items }, rows] = await Promise.all([
    deps.venue.activity(wallet.wallet, 100),
    redemptionsOf(deps.db, { userId, venue: deps.venue.name }, rowsMax),
  ])
  const reported = rows.filter((row) => row.task_id !== null)
  const isBooked = (marketId: string, txHash: string, at: Date): boolean =>
    reported.some(
      (row) =>
        row.market_id.toLowerCase() === marketId &&
        (row.tx_hash === txHash || at < later(row.at, -overlapMs)),
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
  const relayed = (await deps.venue.setup?.relayer?.recent(wallet.owner)) ?? []
  const isRelayed = (hash: string) => relayed.some(({ txHash }) => txHash?.toLowerCase() === hash)
  return new Map(
    [...latest].map(([id, { txHash }]) => [id, { by: isRelayed(txHash) ? 'us' : 'venue', txHash }]),
  )
}

/** The listed redemptions of these targets that the chain shows, with what it shows of them. */
export async function provenRedemptions(
  deps: PredmktDeps,
  { wallet, userId }: WalletOf,
  targets: readonly Target[],
): Promise<Redemption[]> {
  const listed = await listedRedemptions(deps, { userId, wallet })
  const sought = targets.flatMap((target) => {
    const found = listed.get(target.market_id.toLowerCase())
    return found ? [{ target, ...found }] : []
  })
  if (sought.length === 0) return []
  const { receipts } = await deps.chain.receipts(sought.map(({ txHash }) => txHash))
  return sought.flatMap(({ target, by, txHash }, index) => {
    const receipt = receipts[index]
    const [redeemed] = receipt?.success ? redeemedIn(deps, { targets: [target], wallet }, receipt) : []
    // Shares that were moved, and that pay, are no redemption.
    return redeemed && (payoutOf(redeemed) > 0n || payoutOf(target) === 0n)
      ? [{ target: redeemed, by, txHash }]
      : []
  })
}

type RowOf = { userId: string; venue: string; taskId: string | null; now: Date }
export const rowsOf = ({ target, by, txHash }: Redemption, row: RowOf): NewRedemption[] =>
  target.shares
    .filter(({ units }) => units !== '0')
    .map(({ outcome_id: outcomeId, units, payout }) => ({
      ...row,
      marketId: target.market_id,
      outcomeId,
      title: target.title,
      sharesUnits: BigInt(units),
      payoutUnits: BigInt(payout),
      by,
      txHash,
    }))

export const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n)
export const payoutOf = ({ shares }: Target): bigint => sum(shares.map(({ payout }) => BigInt(payout)))

/** The cash that these logs paid to the wallet. */
function paidBy(deps: PredmktDeps, wallet: string, receipt: Receipt): bigint {
  const cash = moneyOf(deps).cashToken.toLowerCase()
  const paid = deps.chain
    .transfers(receipt)
    .filter(({ token, to }) => token.toLowerCase() === cash && to.toLowerCase() === wallet.toLowerCase())
  return sum(paid.map(({ amountUnits }) => amountUnits))
}

type Part = { sent: Shares[]; paidUnits: bigint }

/** Divides a transaction by its payments: each pays for the shares that left the wallet since the one before it. */
function partsOf(deps: PredmktDeps, wallet: string, receipt: Receipt): Part[] {
  const parts: Part[] = []
  let sent: Shares[] = []
  for (const log of receipt.logs) {
    sent.push(...moneyOf(deps).sharesSent(wallet, [log]))
    const paidUnits = paidBy(deps, wallet, { ...receipt, logs: [log] })
    if (paidUnits === 0n) continue
    parts.push({ sent, paidUnits })
    sent = []
  }
  return sent.length > 0 ? [...parts, { sent, paidUnits: 0n }] : parts
}

/**
 * The shares of the targets that left the wallet in a transaction, with what it has paid: the venue's word of a payout
 * can be early or wrong, and only divides a payment among the outcomes that it pays for.
 */
export function redeemedIn(
  deps: PredmktDeps,
  { targets, wallet }: Pick<RedeemTaskData, 'targets' | 'wallet'>,
  receipt: Receipt,
): Target[] {
  const perShare = new Map(
    targets.flatMap(({ shares }) =>
      shares.map(({ outcome_id: id, per_share: micros = '0' }) => [id, micros]),
    ),
  )
  const units = new Map<string, bigint>()
  const payouts = new Map<string, bigint>()
  const add = (sums: Map<string, bigint>, id: string, more: bigint) =>
    sums.set(id, (sums.get(id) ?? 0n) + more)
  for (const { sent, paidUnits } of partsOf(deps, wallet.wallet, receipt)) {
    const shares = divided(paidUnits, sent, (id) => BigInt(perShare.get(id) ?? 0))
    for (const { outcomeId, sizeUnits, payoutUnits } of shares) {
      add(units, outcomeId, sizeUnits)
      add(payouts, outcomeId, payoutUnits)
    }
  }
  return targets.flatMap((target) => {
    const shares = target.shares.map((each) => ({
      ...each,
      units: String(units.get(each.outcome_id) ?? 0n),
      payout: String(payouts.get(each.outcome_id) ?? 0n),
    }))
    return shares.some((each) => each.units !== '0') ? [{ ...target, shares }] : []
  })
}

/** Divides a payment in proportion to what the shares are said to pay, or else to their number. */
export function divided(
  paidUnits: bigint,
  sent: readonly Shares[],
  perShareOf: (outcomeId: string) => bigint,
): (Shares & { payoutUnits: bigint })[] {
  const said = sent.map(({ outcomeId, sizeUnits }) => sizeUnits * perShareOf(outcomeId))
  const weights = sum(said) > 0n ? said : sent.map(({ sizeUnits }) => sizeUnits)
  let weightLeft = sum(weights)
  let unitsLeft = paidUnits
  return sent.map((shares, index) => {
    const weight = weights[index]!
    const payoutUnits = weightLeft === 0n ? 0n : (unitsLeft * weight) / weightLeft
    weightLeft -= weight
    unitsLeft -= payoutUnits
    return { ...shares, payoutUnits }
  })
}
