import { later } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, notFound } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { Shares } from '#kernel/money/prediction-setup.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { StepContext, StepResultOf, Steps, TaskView, Tx } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { fundedWallet } from './account-checks.ts'
import { chainShares, moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { heldOf, outcomesOf, sharesOfRow } from './positions.ts'
import { type RelayTaskData, relayDriver } from './relay-action.ts'
import { relayerOf } from './relay-outcome.ts'
import { isWalletTaken } from './store/account-store.ts'
import { fillSums } from './store/fill-store.ts'
import { addRedemption, redemptionsOf } from './store/redemption-store.ts'

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
  /** What the task's own batch has redeemed, as its receipt shows it. */
  own?: Target[]
  own_tx?: string | null
  /** When shares were first seen gone that the own batch did not redeem, in milliseconds. */
  gone_ms?: number
}
type RedeemTask = TaskView<RedeemTaskData>
type StepName = 'sign' | 'confirm' | 'attribute'
type Result = StepResultOf<Partial<RedeemTaskData>, StepName>

const redeemMs = 48 * 3_600_000
/** One batch redeems at most so many markets; the rest is redeemed by another call. */
const marketsMax = 10
const dollar = 1_000_000n
const operation = 'predmkt_redeem'
/** The venue lists a redemption a little after the chain has it. */
const listedWithinMs = 10_000
/** A redemption that another task recorded so long before this one may be the same one. */
const overlapMs = 60_000
/** So many of the latest redemptions are compared. */
const rowsMax = 200
const pollBackoff = { firstMs: 500, maxMs: 8_000 }

export const createRedeem = (deps: PredmktDeps) =>
  taskOf({ admit: admitRedeem(deps), steps: redeemSteps(deps) })

const facts = (deps: PredmktDeps): Omit<PlannedAction, 'userId'> => ({
  operation,
  chainId: deps.chain.row.id,
  tokens: [moneyOf(deps).cashToken],
  recipients: [],
  usdMicros: 0n,
  exit: true,
})

const admitRedeem = (deps: PredmktDeps) =>
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
  for (const marketId of ids) {
    const market = await deps.venue.market({ marketId })
    const target = market?.payoutMicros ? await targetOf(deps, market, wallet) : undefined
    if (market && target && (await pays(deps, market, wallet, target))) targets.push(target)
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

const isOfMarket =
  ({ market_id: id }: Target) =>
  ({ market_id }: Target): boolean =>
    market_id === id

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
  for (const { market_id: marketId } of targets) {
    const market = await deps.venue.market({ marketId })
    const target = market && (await targetOf(deps, market, wallet.wallet))
    if (market && target) open.push({ market, target })
  }
  return open
}

type Redemption = { target: Target; by: 'us' | 'venue'; txHash: string | null }
const byUs =
  (txHash: string | null) =>
  (target: Target): Redemption => ({ target, by: 'us', txHash })

type Listed = Pick<Redemption, 'by' | 'txHash'>

/**
 * The latest redemption of each market that the venue's record lists, without those that are booked already. A batch of
 * the gateway that this database has lost counts as its own.
 */
async function listedRedemptions(
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

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n)
const payoutOf = ({ shares }: Target): bigint => sum(shares.map(({ payout }) => BigInt(payout)))

/** The cash that a transaction paid to the wallet. */
function paidBy(deps: PredmktDeps, { wallet }: RedeemTaskData, receipt: Receipt): bigint {
  const cash = moneyOf(deps).cashToken.toLowerCase()
  const own = wallet.wallet.toLowerCase()
  const paid = deps.chain
    .transfers(receipt)
    .filter(({ token, to }) => token.toLowerCase() === cash && to.toLowerCase() === own)
  return sum(paid.map(({ amountUnits }) => amountUnits))
}

/** The shares of the targets that left the wallet in a transaction. */
async function redeemedIn(
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
