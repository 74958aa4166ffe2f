import { Fault, notFound } from '#kernel/contract/fault.ts'
import type { PredictionVenue } from '#kernel/money/prediction-venue.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { chainShares, moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { heldOf, outcomesOf, sharesOfRow } from './positions.ts'
import {
  listedRedemptions,
  type RedeemTaskData,
  rowsMax,
  sum,
  type Target,
  targetWith,
} from './redemption-proof.ts'
import { fillSums } from './store/fill-store.ts'
import { redemptionsOf } from './store/redemption-store.ts'
import { batchMax, type VenueViews } from './venue-views.ts'

/** Which shares a redemption is for. Each request to the venue counts towards the share of its user. */

/** One batch redeems at most so many markets; the rest is redeemed by another call. */
const marketsMax = 10

export type TargetDeps = PredmktDeps & { views: Pick<VenueViews, 'takeRedemption'> }

export async function oneTarget(deps: TargetDeps, userId: string, data: RedeemTaskData): Promise<Target> {
  deps.views.takeRedemption(userId)
  const market = await deps.venue.market({ marketId: data.asked! })
  if (!market) throw notFound('market', 'predmkt_positions')
  const target = await targetOf(deps, market, data.wallet.wallet)
  if (!target) {
    const redeemed = await targetOfVenue(deps, userId, { market, data })
    if (redeemed) return redeemed
    throw new Fault('no_position', 'There are no shares of this market to redeem')
  }
  if (!(await pays(deps, market, data.wallet.wallet, target)))
    throw new Fault('not_resolved', 'The chain has no result of this market yet, so its shares pay nothing')
  return target
}

/** The first markets that pay, of those that the user has traded before those that somebody may have sent. */
export async function allTargets(deps: TargetDeps, userId: string, wallet: string): Promise<Target[]> {
  const take = (requests: number) => deps.views.takeRedemption(userId, requests)
  const venue = {
    ...deps.venue,
    positions: (...page: Parameters<PredictionVenue['positions']>) => {
      take(1)
      return deps.venue.positions(...page)
    },
  }
  const sums = await fillSums(deps.db, { userId, venue: deps.venue.name })
  const outcomes = await outcomesOf({ venue }, wallet, sums)
  const units = await chainShares(deps, wallet, outcomes.map(sharesOfRow))
  const held = outcomes.filter((_, index) => units[index] !== 0n)
  const ids = [...new Set(held.map(({ market_id }) => market_id))]
  const targets: Target[] = []
  for (let at = 0; at < ids.length && targets.length < marketsMax; at += batchMax) {
    try {
      // A market that has closed costs a second request.
      take(2)
    } catch (fault) {
      if (targets.length === 0) throw fault
      break
    }
    targets.push(...(await payingTargets(deps, wallet, ids.slice(at, at + batchMax))))
  }
  return targets.slice(0, marketsMax)
}

async function payingTargets(deps: TargetDeps, wallet: string, ids: readonly string[]): Promise<Target[]> {
  const targets: Target[] = []
  for (const market of (await deps.venue.marketsById(ids)).values()) {
    const target = market.payoutMicros ? await targetOf(deps, market, wallet) : undefined
    if (target && (await pays(deps, market, wallet, target))) targets.push(target)
    if (targets.length === marketsMax) break
  }
  return targets
}

export async function targetOf(
  deps: PredmktDeps,
  market: PredictionMarket,
  wallet: string,
): Promise<Target | undefined> {
  const held = await chainShares(
    deps,
    wallet,
    market.outcomes.map(({ outcomeId }) => ({ market, outcomeId })),
  )
  return targetWith(market, held)
}

type Gone = { market: PredictionMarket; data: RedeemTaskData }

/** The shares that the venue has redeemed by itself, and that the record still has or no task has reported. */
async function targetOfVenue(
  deps: TargetDeps,
  userId: string,
  { market, data: { wallet } }: Gone,
): Promise<Target | undefined> {
  const owner = { userId, venue: deps.venue.name }
  deps.views.takeRedemption(userId)
  const [sums, rows, listed] = await Promise.all([
    fillSums(deps.db, owner),
    redemptionsOf(deps.db, owner, rowsMax),
    listedRedemptions(deps, { userId, wallet }),
  ])
  if (market.payoutMicros === null || !listed.has(market.marketId.toLowerCase())) return undefined
  const held = market.outcomes.map(({ outcomeId }) => {
    const fills = sums.find(({ outcome_id }) => outcome_id === outcomeId)
    const unreported = rows.filter((row) => row.outcome_id === outcomeId && row.task_id === null)
    return (fills ? heldOf(fills).units : 0n) + sum(unreported.map(({ shares }) => BigInt(shares)))
  })
  return targetWith(market, held)
}

export const callsOf = (deps: PredmktDeps, market: PredictionMarket, { shares }: Target) =>
  moneyOf(deps).redeemCalls(
    market,
    shares
      .filter(({ units }) => units !== '0')
      .map(({ outcome_id, units }) => ({ outcomeId: outcome_id, sizeUnits: BigInt(units) })),
  )

/** Whether the chain pays the shares out now. */
async function pays(
  deps: PredmktDeps,
  market: PredictionMarket,
  wallet: string,
  target: Target,
): Promise<boolean> {
  if (market.payoutMicros === null) return false
  return (await deps.chain.simulate(wallet, callsOf(deps, market, target))).ok
}
