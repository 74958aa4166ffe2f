import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { OutcomeOrder, PredictionMarket } from '#kernel/money/prediction-views.ts'
import { cloidExecutionId } from '#kernel/task/execution-id.ts'
import { isLookingUp, lookUpAgain, outsideId } from '#kernel/task/forgotten-execution.ts'
import type { Effect, StepContext, Tx } from '#kernel/task/task.ts'
import { recordFoundEffect, replaceAdopted } from '#store/record-found-effect.ts'
import type { PredictionAccountRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { credentialsOf } from './account-checks.ts'
import type { PredmktDeps } from './deps.ts'
import type { OrderStepName, OrderStepResult, OrderTask, OrderTaskData } from './order-task.ts'
import { nonceKind } from './signed-effect.ts'
import { accountOf, scheduleSync, walletOfRow } from './store/account-store.ts'
import {
  type FoundOrder,
  idsOfUnknownFills,
  noteFoundOrder,
  ordersToRecognise,
  withoutRow,
} from './store/forgotten-order-store.ts'

/**
 * Finds an order that an earlier task of the same execution has placed, and that this database has lost. The venue
 * lists no mark of ours, so that orders without a task are recognised by their hash.
 */

/** A task signs an order, and once another one in place of an order that never rested. */
const signaturesMax = 2
export const orderIdentity = (executionId: string, signed: number): string => `${executionId}:${signed}`
export const orderIdentities = (executionId: string): string[] =>
  Array.from({ length: signaturesMax }, (_, signed) => orderIdentity(executionId, signed))

/** The execution id of an order whose task is unknown. */
export const orderExecutionId = (orderId: string): string => cloidExecutionId(orderId.slice(0, 34))

/** Trades are read again from so long before the last reading, because the venue lists some late. */
const overlapMs = 120_000

type Deps = Pick<PredmktDeps, 'db' | 'venue'>
type Account = { row: PredictionAccountRow; credentials: VenueCredentials }
type Of = { outcomeId?: string; marketId?: string; since?: Date | undefined }

/** The orders of an account that have no row here: those in the book, and those that matched. */
export async function unknownOrders(
  { db, venue }: Deps,
  { row, credentials }: Account,
  { outcomeId, marketId, since }: Of = {},
): Promise<OutcomeOrder[]> {
  const from = later(since ?? row.trades_through ?? row.created_at, -overlapMs)
  const filter = marketId === undefined ? {} : { marketId }
  const owner = { userId: row.user_id, venue: venue.name, outcomeId: outcomeId ?? null }
  const [open, trades, filled] = await Promise.all([
    venue.openOrders(filter, credentials),
    venue.trades({ ...filter, since: from }, walletOfRow(row), credentials),
    idsOfUnknownFills(db, owner),
  ])
  const named = [...open, ...trades].map(({ orderId }) => orderId)
  const ids = await withoutRow(db, [...named, ...filled])
  const listed = new Map(open.map((order) => [order.orderId, order]))
  const orders: OutcomeOrder[] = []
  for (const id of ids) {
    const order = listed.get(id) ?? (await venue.order(id, credentials))
    if (order) orders.push(order)
  }
  return orders
}

const orderOfRow = (row: PredictionOrderRow): FoundOrder => ({
  orderId: row.order_id,
  marketId: row.market_id,
  outcomeId: row.outcome_id,
  outcome: row.outcome,
  side: row.side,
  timeInForce: row.order_type,
  sizeUnits: BigInt(row.size),
  priceMicros: row.price,
  expiresAt: row.expires_at,
  createdAt: row.at,
})

type Forgotten = { order: FoundOrder; market: PredictionMarket }

async function findForgotten(
  deps: Deps & Pick<PredmktDeps, 'keys'>,
  { id: taskId, userId, executionId, effects, data: { wallet, terms } }: OrderTask,
): Promise<Forgotten | undefined> {
  const { db, venue } = deps
  const { outcomeId, side } = terms
  const owner = { userId, venue: venue.name }
  const [row, credentials, market] = await Promise.all([
    accountOf(db, owner),
    credentialsOf(deps, userId),
    venue.market({ outcomeId }),
  ])
  if (!row || !market) return undefined
  const identities = orderIdentities(executionId)
  const signed = new Set(effects.map(({ externalId }) => externalId))
  const isOwn = (order: FoundOrder) =>
    !signed.has(order.orderId) &&
    order.outcomeId === outcomeId &&
    order.side === side &&
    venue.identityOf(order, wallet, identities) !== undefined
  const noted = (await ordersToRecognise(db, { ...owner, outcomeId, taskId })).map(orderOfRow).find(isOwn)
  if (noted) return { order: noted, market }
  const { marketId } = market
  const found = (await unknownOrders(deps, { row, credentials }, { outcomeId, marketId })).find(isOwn)
  return found && { order: found, market }
}

/**
 * Looks up an order of an earlier task before anything is signed or sent. Returns the result of the step if there is
 * one, or if the look-up has to be repeated; undefined if this task may go on.
 */
export async function lookUpForgotten(
  deps: PredmktDeps,
  task: OrderTask,
  { now }: Pick<StepContext, 'now'>,
  unsettled?: Effect,
): Promise<OrderStepResult | undefined> {
  if (outsideId(task) === undefined || task.data.looked_up) return undefined
  let forgotten: Forgotten | undefined
  try {
    forgotten = await findForgotten(deps, task)
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    const context = { now, steps: { sign: unsettled ? ('submit' as const) : ('sign' as const) } }
    return lookUpAgain<OrderTaskData, OrderStepName>(
      { task, context },
      {
        state: fault.retryable ? 'reconciling' : 'review',
        note: `Looks up at the venue whether this order was placed before: ${fault.message}`,
        sought: { chain_id: deps.chain.row.id, kind: 'prediction_order' },
      },
    )
  }
  if (forgotten) return settleForgotten(deps, task, { ...forgotten, now, unsettled })
  // A cancel or the deadline comes first once nothing was found.
  if (!unsettled && isLookingUp(task))
    return {
      next: 'sign',
      state: 'held',
      data: { polls: 0, note: null, looked_up: true, sought: null },
    }
  return undefined
}

type Settled = Forgotten & { now: Date; unsettled: Effect | undefined }

function settleForgotten(
  { venue }: PredmktDeps,
  task: OrderTask,
  { order, market, now, unsettled }: Settled,
): OrderStepResult {
  const { userId, data } = task
  const owner = { userId, venue: venue.name }
  const { orderId } = order
  return {
    park: { afterMs: 0, next: 'settle' },
    state: 'confirming',
    ...(unsettled && { effects: [{ effectId: unsettled.id, status: 'rejected' }] }),
    data: {
      order_id: orderId,
      market_id: market.marketId,
      protocol: market.protocol,
      was_found: true,
      polls: 0,
      note: null,
      progress: null,
    },
    async writes(tx: Tx) {
      await noteFoundOrder(tx, {
        ...owner,
        taskId: task.id,
        order,
        market,
        status: 'delayed',
        matchedUnits: 0n,
        now,
      })
      await recordFoundEffect(tx, {
        taskId: task.id,
        step: 'sign',
        kind: 'prediction_order',
        externalId: orderId,
        intent: {},
        nonceSequence: { kind: nonceKind, chain: venue.name, signer: data.wallet.owner.toLowerCase() },
        nonce: BigInt(order.createdAt.getTime()),
        proof: {},
        at: order.createdAt,
      })
      await replaceAdopted(tx, task.id, [orderExecutionId(orderId)])
      await scheduleSync(tx, owner, now)
    },
  }
}
