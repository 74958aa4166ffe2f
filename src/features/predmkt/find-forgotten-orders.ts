import { Fault } from '#kernel/contract/fault.ts'
import type { OutcomeOrder, TakerFee } from '#kernel/money/prediction-views.ts'
import { query } from '#store/query.ts'
import type { PredictionAccountRow } from '#store/tables/predmkt.ts'
import type { PredmktDeps } from './deps.ts'
import { orderExecutionId, orderIdentities, unknownOrders } from './forgotten-order.ts'
import { usd } from './market-views.ts'
import { walletOfRow } from './store/account-store.ts'

/** Finds the orders of all accounts that no task has signed, after the database went back to an earlier state. */

export type FoundOutcomeOrder = {
  type: 'outcome_order'
  venue: string
  order_id: string
  market_id: string
  outcome_id: string
  outcome: string
  question: string
  protocol: string
  neg_risk: boolean
  fee: TakerFee | null
  side: 'buy' | 'sell'
  order_type: OutcomeOrder['timeInForce']
  price: string
  size: string
  matched: string
  status: OutcomeOrder['status']
  expires_at: string | null
  /** The execution id of a task in the database that places this order; null if the database lost the request. */
  task_execution_id: string | null
}
export type FoundPrediction = {
  executionId: string
  userId: string
  txHash: string | null
  executedAt: Date
  chainId: string
  venue: FoundOutcomeOrder
}
type Deps = Pick<PredmktDeps, 'db' | 'venue' | 'keys' | 'chain'>
/**
 * `done` has the users whose accounts were read, so that an aborted search continues with the others. `unlisted` has the
 * wallets of the accounts that the venue does not list, and what it said.
 */
type SearchRange = {
  point: Date | null
  signal: AbortSignal
  done: Set<string>
  unlisted: Map<string, string>
}

export const createForgottenOrderSearch =
  (deps: Deps) =>
  async (
    store: (found: readonly FoundPrediction[]) => Promise<void>,
    { point, signal, done, unlisted }: SearchRange,
  ): Promise<void> => {
    const { db, venue } = deps
    const accounts = await query<PredictionAccountRow>(
      db,
      'select * from prediction_account where venue = $1 order by user_id',
      [venue.name],
    )
    for (const row of accounts) {
      signal.throwIfAborted()
      if (done.has(row.user_id)) continue
      const found = await findOfAccount(deps, row, point).catch((fault: unknown) => {
        // An account that is refused for good, as one whose key was revoked, must not keep the others from the search.
        if (!(fault instanceof Fault) || fault.retryable) throw fault
        unlisted.set(row.wallet_address, fault.message)
        return []
      })
      await store(found)
      done.add(row.user_id)
    }
  }

async function findOfAccount(
  deps: Deps,
  row: PredictionAccountRow,
  point: Date | null,
): Promise<FoundPrediction[]> {
  const credentials = await deps.keys.of(row.user_id)
  if (!credentials) return []
  const since = earlier(point, row.trades_through)
  const orders = await unknownOrders(deps, { row, credentials }, { since })
  const found = await Promise.all(orders.map((order) => foundOf(deps, row, order)))
  return found.flatMap((each) => each ?? [])
}

const earlier = (one: Date | null, other: Date | null): Date | undefined =>
  one && (!other || one < other) ? one : (other ?? undefined)

async function foundOf(
  { db, venue, chain }: Deps,
  row: PredictionAccountRow,
  order: OutcomeOrder,
): Promise<FoundPrediction | undefined> {
  const market = await venue.market({ outcomeId: order.outcomeId })
  if (!market) return undefined
  const running = await query<{ execution_id: string }>(
    db,
    `select coalesce(t.execution_id, t.id) as execution_id from task_queue q join task t on t.id = q.task_id
       where q.user_id = $1`,
    [row.user_id],
  )
  const owner = running.find(
    ({ execution_id: id }) => venue.identityOf(order, walletOfRow(row), orderIdentities(id)) !== undefined,
  )
  return {
    executionId: orderExecutionId(order.orderId),
    userId: row.user_id,
    txHash: null,
    executedAt: order.createdAt,
    chainId: chain.row.id,
    venue: {
      type: 'outcome_order',
      venue: venue.name,
      order_id: order.orderId,
      market_id: market.marketId,
      outcome_id: order.outcomeId,
      outcome: order.outcome,
      question: market.question,
      protocol: market.protocol,
      neg_risk: market.isNegRisk,
      fee: market.fee,
      side: order.side,
      order_type: order.timeInForce,
      price: usd(order.priceMicros),
      size: usd(order.sizeUnits),
      matched: usd(order.matchedUnits),
      status: order.status,
      expires_at: order.expiresAt?.toISOString() ?? null,
      task_execution_id: owner?.execution_id ?? null,
    },
  }
}
