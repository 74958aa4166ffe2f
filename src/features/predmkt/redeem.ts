import { later } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, notFound } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { StepContext, StepResultOf, Steps, Tx } from '#kernel/task/task.ts'
import { fundedWallet } from './account-checks.ts'
import { chainShares, moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { heldOf, outcomesOf, sharesOfRow } from './positions.ts'
import {
  byUs,
  isOfMarket,
  listedRedemptions,
  overlapMs,
  paidBy,
  payoutOf,
  type RedeemTask,
  type RedeemTaskData,
  type Redemption,
  redeemedIn,
  rowsMax,
  sum,
  type Target,
  targetWith,
} from './redemption-proof.ts'
import { relayDriver } from './relay-action.ts'
import { isWalletTaken } from './store/account-store.ts'
import { fillSums } from './store/fill-store.ts'
import { addRedemption, redemptionsOf } from './store/redemption-store.ts'
import type { VenueViews } from './venue-views.ts'

/** Shares of resolved markets become cash of the wallet; a redemption of the venue itself counts as done. */

type StepName = 'sign' | 'confirm' | 'attribute'
type Result = StepResultOf<Partial<RedeemTaskData>, StepName>

const redeemMs = 48 * 3_600_000
/** One batch redeems at most so many markets; the rest is redeemed by another call. */
const marketsMax = 10
const operation = 'predmkt_redeem'
/** The venue lists a redemption a little after the chain has it. */
const listedWithinMs = 10_000
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

type Gone = { market: PredictionMarket; data: RedeemTaskData }

/** The shares that the record still has and the venue has redeemed by itself. */
async function targetOfVenue(
  deps: PredmktDeps,
  userId: string,
  { market, data }: Gone,
): Promise<Target | undefined> {
  const owner = { userId, venue: deps.venue.name }
  const [sums, listed] = await Promise.all([
    fillSums(deps.db, owner),
    listedRedemptions(deps, { userId, data }, new Set()),
  ])
  if (market.payoutMicros === null || !listed.has(market.marketId.toLowerCase())) return undefined
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
      // An empty balance proves nothing: the shares may have been moved, or redeemed by somebody else.
      async prove({ data }, receipt) {
        if (!receipt?.success) return false
        const own = await redeemedIn(deps, data, receipt)
        const isPaid = paidBy(deps, data, receipt) >= sum(own.map(payoutOf))
        return isPaid && (own.length > 0 || (await remaining(deps, data)).length === 0)
      },
      // The venue may have redeemed between the reading and the batch.
      async onRejected({ data }, { code, message }) {
        return (await remaining(deps, data)).length > 0
          ? notExecuted({ code, message, retryable: true, upstream: 'Polymarket' })
          : gone(deps.clock.now())
      },
    }),
    async plan(task, { now }) {
      const open = await remaining(deps, task.data)
      if (open.length === 0) return (await isTaken(deps, task)) ? waiting(task) : gone(now)
      const calls = open.flatMap(({ market, target }) => callsOf(deps, market, target))
      return { calls, facts: facts(deps) }
    },
    async settle(task, { txHash, receipt }, { now }) {
      const own = await redeemedIn(deps, task.data, receipt!)
      const isAll = task.data.targets.every((target) => own.some(isOfMarket(target)))
      if (!isAll) return gone(now, { own, own_tx: txHash })
      return redeemed(deps, task, { redemptions: own.map(byUs(txHash)), isAll, now })
    },
  })
  return {
    ...effect,
    attribute: (task: RedeemTask, context: StepContext) => attribute(deps, task, context),
  } as Steps<RedeemTaskData, StepName>
}

/** Continues with the question who redeemed shares that are gone. */
const gone = (now: Date, own: Pick<RedeemTaskData, 'own' | 'own_tx'> = {}): Result => ({
  next: 'attribute',
  state: 'confirming',
  data: { ...own, gone_ms: now.getTime(), polls: 0 },
})

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

/** Books what the venue's record lists of shares that are gone, and what the own batch has redeemed. */
async function attribute(deps: PredmktDeps, task: RedeemTask, { now }: StepContext): Promise<Result> {
  const { own = [], own_tx: ownTx = null, gone_ms: goneMs = now.getTime() } = task.data
  const open = (await unclaimed(deps, task)).filter((target) => !own.some(isOfMarket(target)))
  if (own.length + open.length === 0)
    return notExecuted({ code: 'no_position', message: 'Another task has redeemed these shares meanwhile' })
  const bookedHashes = new Set(ownTx === null ? [] : [ownTx.toLowerCase()])
  const listed = await listedRedemptions(deps, task, bookedHashes)
  const found = open.flatMap((target): Redemption[] => {
    const redemption = listed.get(target.market_id.toLowerCase())
    return redemption ? [{ target, ...redemption }] : []
  })
  const isAll = found.length === open.length
  if (!isAll && now.getTime() - goneMs < listedWithinMs)
    return { ...pollAgain(task, 'attribute', pollBackoff), state: 'confirming' }
  const redemptions = [...own.map(byUs(ownTx)), ...found]
  if (redemptions.length === 0)
    return notExecuted({
      code: 'no_position',
      message: 'The shares have left the wallet without a payout that is known here',
    })
  return redeemed(deps, task, { redemptions, isAll, now })
}

type Redeemed = { redemptions: readonly Redemption[]; isAll: boolean; now: Date }

function redeemed(
  deps: PredmktDeps,
  { id: taskId, userId, data }: RedeemTask,
  { redemptions, isAll, now }: Redeemed,
): Result {
  const rows = redemptions.map(({ target, by, txHash }) => ({
    condition_id: target.market_id,
    shares: fromUnits(sum(target.shares.map(({ units }) => BigInt(units))), usdcDecimals),
    payout_usd: fromUnits(payoutOf(target), usdcDecimals),
    tx_hash: txHash,
    by,
  }))
  return {
    end: 'completed',
    outcome: isAll ? 'executed' : 'partial',
    result: {
      redeemed: rows,
      payout_usd: fromUnits(sum(redemptions.map(({ target }) => payoutOf(target))), usdcDecimals),
      condition_id: data.asked,
      tx_hash: rows[0]?.tx_hash ?? null,
    },
    data: { progress: null },
    async writes(tx: Tx) {
      for (const { target, by, txHash } of redemptions)
        for (const { outcome_id, units, payout } of target.shares)
          if (units !== '0')
            await addRedemption(tx, {
              userId,
              venue: deps.venue.name,
              taskId,
              marketId: target.market_id,
              outcomeId: outcome_id,
              title: target.title,
              sharesUnits: BigInt(units),
              payoutUnits: BigInt(payout),
              by,
              txHash,
              now,
            })
    },
  }
}
