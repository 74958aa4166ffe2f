import { later } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, notFound } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { StepResultOf, Steps, TaskView, Tx } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { fundedWallet } from './account-checks.ts'
import { chainShares, moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { heldOf, outcomesOf, sharesOfRow } from './positions.ts'
import { type RelayTaskData, relayDriver } from './relay-action.ts'
import { isWalletTaken } from './store/account-store.ts'
import { fillSums } from './store/fill-store.ts'
import { addRedemption, redemptionsOf } from './store/redemption-store.ts'
import type { VenueViews } from './venue-views.ts'

/** Shares of resolved markets become cash of the wallet; a redemption of the venue itself counts as done. */

type Target = {
  market_id: string
  shares: { outcome_id: string; units: string; payout: string }[]
  title: string
}
export type RedeemTaskData = RelayTaskData & {
  targets: Target[]
  /** The condition that was asked for; null for all. */
  asked: string | null
}
type RedeemTask = TaskView<RedeemTaskData>
type StepName = 'sign' | 'confirm'
type Result = StepResultOf<Partial<RedeemTaskData>, StepName>

const redeemMs = 48 * 3_600_000
/** One batch redeems at most so many markets; the rest is redeemed by another call. */
const marketsMax = 10
const dollar = 1_000_000n
const operation = 'predmkt_redeem'
/** The venue lists its own redemptions a little after the chain has them. */
const listedWithinMs = 10_000
/** A redemption that another task recorded so long before this one may be the same one. */
const overlapMs = 60_000
/** So many of the latest redemptions are compared. */
const rowsMax = 200
const pollBackoff = { firstMs: 500, maxMs: 8_000 }

type RedeemDeps = PredmktDeps & { views: Pick<VenueViews, 'takeRedemption'> }

export const createRedeem = (deps: RedeemDeps) =>
  taskOf({ admit: admitRedeem(deps), steps: redeemSteps(deps) })

const facts = (deps: PredmktDeps): Omit<PlannedAction, 'userId'> => ({
  operation,
  chainId: deps.chain.row.id,
  tokens: [moneyOf(deps).cashToken],
  recipients: [],
  usdMicros: 0n,
  exit: true,
})

const admitRedeem = (deps: RedeemDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    async check({ condition_id: conditionId, all }: PredmktInput<'redeem'>, { userId }) {
      if ((conditionId === undefined) === (all !== true))
        throw exactlyOneOf('condition_id', 'all', { hasBoth: conditionId !== undefined })
      const wallet = await fundedWallet(deps, userId)
      const data: RedeemTaskData = { wallet, targets: [], asked: conditionId ?? null }
      return { action: { userId, ...facts(deps) }, data }
    },
    async fund({ action: { userId }, data }) {
      deps.views.takeRedemption(userId)
      const targets =
        data.asked === null
          ? await allTargets(deps, userId, data.wallet.wallet)
          : [await oneTarget(deps, userId, data)]
      if (targets.length === 0)
        throw new Fault('no_position', 'There are no shares of a resolved market to redeem')
      return targets.slice(0, marketsMax)
    },
    start: ({ data }, targets): { first: StepName; deadlineMs: number; data: RedeemTaskData } => ({
      first: 'sign',
      deadlineMs: redeemMs,
      data: { ...data, targets },
    }),
  })

async function oneTarget(deps: PredmktDeps, userId: string, data: RedeemTaskData): Promise<Target> {
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

async function allTargets(deps: PredmktDeps, userId: string, wallet: string): Promise<Target[]> {
  const sums = await fillSums(deps.db, { userId, venue: deps.venue.name })
  const outcomes = await outcomesOf(deps, wallet, sums)
  const units = await chainShares(deps, wallet, outcomes.map(sharesOfRow))
  const held = outcomes.filter((_, index) => units[index] !== 0n)
  const ids = [...new Set(held.map(({ market_id }) => market_id))]
  const targets: Target[] = []
  for (const market of (await deps.venue.marketsById(ids)).values()) {
    const target = market.payoutMicros ? await targetOf(deps, market, wallet) : undefined
    if (target && (await pays(deps, market, wallet, target))) targets.push(target)
    if (targets.length === marketsMax) break
  }
  return targets
}

async function targetOf(
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

function targetWith(market: PredictionMarket, held: readonly (bigint | undefined)[]): Target | undefined {
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

type Gone = { market: PredictionMarket; data: RedeemTaskData }

/** The shares that the record still has and the venue has redeemed by itself. */
async function targetOfVenue(
  deps: PredmktDeps,
  userId: string,
  { market, data }: Gone,
): Promise<Target | undefined> {
  const owner = { userId, venue: deps.venue.name }
  const [sums, byVenue] = await Promise.all([fillSums(deps.db, owner), venueRedemptions(deps, data, null)])
  if (market.payoutMicros === null || !byVenue.has(market.marketId.toLowerCase())) return undefined
  const held = market.outcomes.map(({ outcomeId }) => {
    const fills = sums.find(({ outcome_id }) => outcome_id === outcomeId)
    return fills ? heldOf(fills).units : 0n
  })
  return targetWith(market, held)
}

const callsOf = (deps: PredmktDeps, market: PredictionMarket, { shares }: Target) =>
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

function redeemSteps(deps: PredmktDeps): Steps<RedeemTaskData, StepName> {
  const effect = createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: relayDriver<RedeemTaskData, StepName>(deps, {
      async prove({ data }, receipt) {
        return receipt !== null && (await remaining(deps, data)).length === 0
      },
      // The venue may have redeemed between the reading and the batch.
      async onRejected(task, { code, message }) {
        return (await remaining(deps, task.data)).length > 0
          ? notExecuted({ code, message, retryable: true, upstream: 'Polymarket' })
          : redeemedByVenue(deps, task)
      },
    }),
    async plan(task) {
      const open = await remaining(deps, task.data)
      if (open.length === 0) return (await isTaken(deps, task)) ? waiting(task) : redeemedByVenue(deps, task)
      const calls = open.flatMap(({ market, target }) => callsOf(deps, market, target))
      return { calls, facts: facts(deps) }
    },
    settle: (task, { txHash, receipt }, { now }) => redeemed(deps, task, { txHash, receipt, now }),
  })
  return effect as Steps<RedeemTaskData, StepName>
}

/** Whether another task has an action of the wallet in flight, which may be the one that redeems these shares. */
const isTaken = ({ db, venue }: PredmktDeps, { id, userId }: RedeemTask): Promise<boolean> =>
  isWalletTaken(db, { userId, venue: venue.name }, id)

const waiting = (task: RedeemTask): Result => ({ ...pollAgain(task, 'sign', pollBackoff), state: 'waiting' })

/** The targets whose shares no other task of the user has redeemed meanwhile. */
async function unclaimed(deps: PredmktDeps, { id, userId, data, createdAt }: RedeemTask): Promise<Target[]> {
  const rows = await redemptionsOf(deps.db, { userId, venue: deps.venue.name }, rowsMax)
  const since = later(createdAt, -overlapMs)
  const claimed = rows.filter((row) => row.task_id !== id && row.at >= since)
  return data.targets.filter(({ shares }) =>
    shares.some(
      ({ outcome_id, units }) => units !== '0' && !claimed.some((row) => row.outcome_id === outcome_id),
    ),
  )
}

/** The targets of which the wallet still has shares. */
async function remaining(deps: PredmktDeps, { targets, wallet }: RedeemTaskData) {
  const open: { market: PredictionMarket; target: Target }[] = []
  const markets = await deps.venue.marketsById(targets.map(({ market_id }) => market_id))
  // Shares of a market that cannot be read are not gone.
  if (markets.size < targets.length)
    throw new Fault('unavailable', 'The venue does not list a market of this redemption now')
  for (const market of markets.values()) {
    const target = await targetOf(deps, market, wallet.wallet)
    if (target) open.push({ market, target })
  }
  return open
}

const redeemedByVenue = (deps: PredmktDeps, task: RedeemTask): Promise<Result> =>
  redeemed(deps, task, { txHash: null, receipt: null, now: deps.clock.now() })

/** The transactions by which the venue redeemed markets itself. */
async function venueRedemptions(
  deps: PredmktDeps,
  data: RedeemTaskData,
  ownHash: string | null,
): Promise<Map<string, string | null>> {
  const { items } = await deps.venue.activity(data.wallet.wallet, 100)
  const redemptions = items.filter(({ type, txHash }) => type === 'redeem' && txHash !== ownHash)
  return new Map(redemptions.map(({ marketId, txHash }) => [marketId.toLowerCase(), txHash]))
}

type Redeemed = { txHash: string | null; receipt: Receipt | null; now: Date }
const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n)
const payoutOf = ({ shares }: Target): bigint => sum(shares.map(({ payout }) => BigInt(payout)))

/** The cash that a transaction paid to the wallet. */
function paidBy(deps: PredmktDeps, { wallet }: RedeemTaskData, receipt: Receipt | null): bigint {
  if (!receipt) return 0n
  const cash = moneyOf(deps).cashToken.toLowerCase()
  const own = wallet.wallet.toLowerCase()
  const paid = deps.chain
    .transfers(receipt)
    .filter(({ token, to }) => token.toLowerCase() === cash && to.toLowerCase() === own)
  return sum(paid.map(({ amountUnits }) => amountUnits))
}

type Paid = Redeemed & { targets: readonly Target[]; paidUnits: bigint; isOwn: boolean }

/** Says who redeemed a market: the chain redeems shares that are gone without a payout, where the venue was faster. */
async function attribution(
  deps: PredmktDeps,
  { data, createdAt }: RedeemTask,
  { targets, txHash, receipt, paidUnits, isOwn, now }: Paid,
) {
  const own = { by: 'us' as const, txHash }
  if (isOwn) return () => own
  const byVenue = await venueRedemptions(deps, data, txHash)
  const hashOf = ({ market_id }: Target) => byVenue.get(market_id.toLowerCase())
  const isAllByVenue = receipt === null || paidUnits === 0n
  const isListed = targets.every((target) => !isAllByVenue || hashOf(target) !== undefined)
  if (!isListed && now < later(createdAt, listedWithinMs))
    throw new Fault('unavailable', 'The venue does not list its redemption yet')
  return (target: Target) =>
    isAllByVenue || hashOf(target) !== undefined
      ? { by: 'venue' as const, txHash: hashOf(target) ?? null }
      : own
}

async function redeemed(
  deps: PredmktDeps,
  task: RedeemTask,
  { txHash, receipt, now }: Redeemed,
): Promise<Result> {
  const { data, userId } = task
  const paidUnits = paidBy(deps, data, receipt)
  const isOwn = receipt !== null && paidUnits >= sum(data.targets.map(payoutOf))
  const targets = isOwn ? data.targets : await unclaimed(deps, task)
  if (targets.length === 0)
    return notExecuted({ code: 'no_position', message: 'Another task has redeemed these shares meanwhile' })
  const redemptionOf = await attribution(deps, task, { targets, txHash, receipt, paidUnits, isOwn, now })
  const payoutOfVenue = sum(targets.filter((each) => redemptionOf(each).by === 'venue').map(payoutOf))
  const rows = targets.map((target) => {
    const { by, txHash } = redemptionOf(target)
    return {
      condition_id: target.market_id,
      shares: fromUnits(sum(target.shares.map(({ units }) => BigInt(units))), usdcDecimals),
      payout_usd: fromUnits(payoutOf(target), usdcDecimals),
      tx_hash: txHash,
      by,
    }
  })
  return {
    end: 'completed',
    outcome: 'executed',
    result: {
      redeemed: rows,
      payout_usd: fromUnits(paidUnits + payoutOfVenue, usdcDecimals),
      condition_id: data.asked,
      tx_hash: rows[0]?.tx_hash ?? null,
    },
    data: { progress: null },
    async writes(tx: Tx) {
      for (const target of targets)
        for (const { outcome_id, units, payout } of target.shares)
          if (units !== '0')
            await addRedemption(tx, {
              userId,
              venue: deps.venue.name,
              taskId: task.id,
              marketId: target.market_id,
              outcomeId: outcome_id,
              title: target.title,
              sharesUnits: BigInt(units),
              payoutUnits: BigInt(payout),
              ...redemptionOf(target),
              now,
            })
    },
  }
}
