import { Fault } from '#kernel/contract/fault.ts'
import type { OutcomeOrder } from '#kernel/money/prediction-views.ts'
import { addToResult, notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain, pollsOf } from '#kernel/task/poll-again.ts'
import {
  defineTaskKind,
  type StepContext,
  type StepResultOf,
  type TaskKind,
  type TaskView,
  type Tx,
} from '#kernel/task/task.ts'
import type { PredictionExitRow } from '#store/tables/predmkt.ts'
import { credentialsOf } from './account-checks.ts'
import { type SpendableShares, sharesAccount, sharesLedgerToken, sharesOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { judgeProfit, judgeStop } from './exit-prices.ts'
import { farText, leastUnits, notReachedText, sellableUnits } from './exit-rules.ts'
import type { OrderDeps } from './order-admission.ts'
import { orderSteps } from './order-steps.ts'
import { unwanted } from './order-submission.ts'
import type { OrderStepName, OrderTaskData } from './order-task.ts'
import { lockAccount } from './store/account-store.ts'
import { pairOf } from './store/exit-facts.ts'
import { exitOfTask, lockExecuted } from './store/exit-store.ts'
import { changeOrder, orderRow } from './store/order-store.ts'

/**
 * Sells the shares of a purchase by its take-profit or stop-loss. The order of the other one is cancelled and read
 * first, and the size is what is left then. A cancel of the user ends the task while nothing is signed.
 */

export const exitKind = 'predmkt_exit'
export type ExitTaskData = OrderTaskData & {
  /** Orders of the purchase's other exit, whose shares the sale needs. */
  replaces?: string[]
}
export type ExitStepName = 'release' | OrderStepName
type ExitTask = TaskView<ExitTaskData>
type Result = StepResultOf<Partial<ExitTaskData>, ExitStepName>

const pollBackoff = { firstMs: 300, maxMs: 5_000 }
/** So often an order is looked up that the venue has cancelled and does not show. */
const lookUpsMax = 5

export function createExitKind(deps: OrderDeps): TaskKind {
  const order = orderSteps(deps)
  return defineTaskKind<ExitTaskData, ExitStepName>({
    kind: exitKind,
    version: 1,
    priority: 0,
    retry: { attemptsMax: 1_000, firstMs: 300, maxMs: 10_000 },
    steps: {
      ...order,
      release: (task, context) => releaseShares(deps, task, context),
      sign: (task, context) => signSale(deps, task, { ...context, sign: order.sign }),
      async submit(task, context) {
        const exit = await exitOfTask(deps.db, task.id)
        return order.submit(exit?.state === 'executing' ? task : unwanted(task), context)
      },
    },
  })
}

const isExecuted = async ({ db }: PredmktDeps, task: ExitTask): Promise<boolean> =>
  (await exitOfTask(db, task.id))?.state === 'executing'

const cancelled = notExecuted({
  code: 'cancelled',
  message: 'The exit was cancelled before its sale was signed',
  retryable: false,
})
const expired = notExecuted({
  code: 'expired',
  message: 'The order of the other exit could not be cancelled in time',
  retryable: true,
})

async function releaseShares(deps: PredmktDeps, task: ExitTask, { now }: StepContext): Promise<Result> {
  const { venue } = deps
  const ids = task.data.replaces ?? []
  if (!(await isExecuted(deps, task))) return cancelled
  if (ids.length === 0) return { next: 'sign' }
  if (now > task.deadline) return expired
  const credentials = await credentialsOf(deps, task.userId)
  const reply = await venue.cancelOrders(ids, credentials)
  if (reply.type === 'rejected')
    return notExecuted({ code: reply.reason, message: reply.message, upstream: 'Polymarket' })
  const again = { ...pollAgain(task, 'release', pollBackoff), state: 'waiting' as const }
  if (reply.type !== 'answered') return again
  const orders = await Promise.all(ids.map((id) => venue.order(id, credentials)))
  // What was matched before the end counts, so that a reading from before the end does not.
  if (orders.some((order) => order?.status === 'live' || order?.status === 'delayed')) return again
  if (orders.includes(undefined) && pollsOf(task) < lookUpsMax) return again
  const matched = await Promise.all(
    orders.map(async (order, at) => order?.matchedUnits ?? (await listedUnits(deps, task, ids[at]!))),
  )
  return {
    next: 'sign',
    data: { polls: 0 },
    async writes(tx) {
      await lockAccount(tx, { userId: task.userId, venue: venue.name })
      for (const [at, orderId] of ids.entries())
        await changeOrder(tx, {
          orderId,
          status: endOf(orders[at]),
          matchedUnits: matched[at]!,
          isUnread: orders[at] === undefined,
          now,
        })
    },
  }
}

const endOf = (order: OutcomeOrder | undefined) => (order?.status === 'matched' ? 'matched' : 'cancelled')

/** What the trades of an order say that the venue does not show. */
async function listedUnits(
  deps: PredmktDeps,
  { userId, data: { wallet } }: ExitTask,
  orderId: string,
): Promise<bigint> {
  const { db, venue } = deps
  const row = await orderRow(db, orderId)
  if (!row) return 0n
  const credentials = await credentialsOf(deps, userId)
  const trades = await venue.trades({ marketId: row.market_id, since: row.at }, wallet, credentials)
  return trades
    .filter((trade) => trade.orderId.toLowerCase() === orderId.toLowerCase())
    .reduce((sum, { sizeUnits }) => sum + sizeUnits, 0n)
}

type Signing = StepContext & { sign: ReturnType<typeof orderSteps>['sign'] }

/** Signs the sale of what is left now; the transaction of the signature checks that again. */
async function signSale(deps: PredmktDeps, task: ExitTask, { sign, ...context }: Signing): Promise<Result> {
  const { db } = deps
  const { userId, data } = task
  const { wallet, terms, entry_order_id: entryId } = data
  const exit = await exitOfTask(db, task.id)
  if (exit?.state !== 'executing') return cancelled
  const pair = entryId === undefined ? undefined : await pairOf(db, entryId, context.now)
  if (!pair) return nothingLeft
  const { row } = pair
  const market = { protocol: row.protocol }
  const shares = await sharesOf(deps, { userId, wallet, market, outcomeId: row.outcome_id })
  const sizeUnits = sellableUnits(pair, shares.freeUnits)
  if (sizeUnits < leastUnits) return nothingLeft
  const judged = await judgeNow(deps, exit, { sizeUnits, rests: terms.timeInForce === 'gtc' })
  if (judged.type !== 'sell') return judged.type === 'far' ? tooFar : notReached
  const priceMicros = String(judged.priceMicros)
  const sized = { ...terms, sizeUnits: String(sizeUnits), priceMicros }
  const result = addToResult(await sign({ ...task, data: { ...data, terms: sized } }, context), {
    data: { terms: sized },
  })
  if (!('sign' in result) || !result.sign) return result
  const { build } = result.sign
  const checked: typeof build = async (tx) => {
    await lockAccount(tx, { userId, venue: deps.venue.name })
    await assertSellable(tx, { taskId: task.id, entryId: row.order_id, sizeUnits, now: context.now })
    await takeShares(deps, tx, task, { shares, sizeUnits, now: context.now })
    return build(tx)
  }
  return { ...result, sign: { ...result.sign, build: checked } }
}

/** Judges the exit by the book of this moment, because some time has passed since it was watched. */
async function judgeNow(
  { venue }: PredmktDeps,
  { leg, outcome_id: outcomeId, trigger_price: triggerMicros }: PredictionExitRow,
  sale: { sizeUnits: bigint; rests: boolean },
) {
  if (triggerMicros === null) throw new Error('an exit executes without a trigger')
  const triggered = { ...sale, triggerMicros }
  const book = await venue.book(outcomeId)
  return leg === 'sl' ? judgeStop(triggered, book) : judgeProfit(triggered, book)
}

const tooFar = notExecuted({ code: 'insufficient_liquidity', message: farText, retryable: true })
const notReached = notExecuted({ code: 'not_filled', message: notReachedText, retryable: true })

const nothingLeft = notExecuted({
  code: 'no_position',
  message: 'Nothing of the purchase is left to sell',
  retryable: false,
})

type Taken = { shares: SpendableShares; sizeUnits: bigint; now: Date }

/**
 * Refuses a sale whose shares others have reserved since they were read. The hold ends in the same commit, because the
 * order itself locks the shares; its end makes what was read of them before out of date for everybody.
 */
async function takeShares(
  deps: PredmktDeps,
  tx: Tx,
  task: ExitTask,
  { shares: { totalUnits, version }, sizeUnits, now }: Taken,
): Promise<void> {
  const { outcomeId } = task.data.terms
  const key = `${task.id}:sale:${task.version}`
  const spend = {
    account: sharesAccount(deps, task.userId, outcomeId),
    amountUnits: sizeUnits,
    token: sharesLedgerToken(outcomeId),
    seen: { totalUnits, version, reread: async () => ({ totalUnits, version }) },
    holdKey: key,
  }
  await deps.reserve(tx, task, spend, now).catch((fault: unknown) => {
    if (!(fault instanceof Fault) || fault.retryable) throw fault
    throw new Fault('unavailable', 'Other orders have reserved shares of the purchase since they were read')
  })
  await deps.ledger.apply(tx, [{ move: 'void', key }], { taskId: task.id, now })
}

type SignedSale = { taskId: string; entryId: string; sizeUnits: bigint; now: Date }

async function assertSellable(tx: Tx, { taskId, entryId, sizeUnits, now }: SignedSale): Promise<void> {
  const exit = await lockExecuted(tx, taskId)
  const pair = exit && (await pairOf(tx, entryId, now))
  if (pair && sellableUnits(pair, sizeUnits) === sizeUnits) return
  throw new Fault('conflict', 'The exit or its shares have changed; nothing was signed')
}
