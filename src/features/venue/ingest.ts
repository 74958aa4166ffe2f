import type { Events } from '#durable/events.ts'
import type { Transact } from '#durable/transactions.ts'
import type { NewEvent } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Fill, Funding, Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { accountFor, type VenueAccount } from './account-store.ts'
import { fillRow, fundingRow, leaves, updateRows } from './agreement.ts'
import * as record from './record-store.ts'
import { tasksOfOrders } from './store.ts'

/** Facts of the venue become rows and events, each of them once, by whatever way and how often they arrive. */

export type Facts = {
  fills?: readonly Fill[]
  fundings?: readonly Funding[]
  updates?: readonly LedgerUpdate[]
}
/** Certain at once: somebody else holds a key of the account. */
export type Foreign = { code: 'foreign_fill' | 'foreign_transfer'; reason: string }

export type IngestNeeds = {
  on: Queryable
  transact: Transact
  venue: Pick<Hyperliquid, 'spots' | 'order'>
  events: Pick<Events, 'add' | 'told'>
}

const marketsAgeMs = 3_600_000

/** The task of each fill; undefined for those that no order of ours explains. */
type Owners = Map<number, { taskId: string | null } | undefined>

export function ingesting({ on, transact, venue, events }: IngestNeeds) {
  const ownersOf = async (account: VenueAccount, fills: readonly Fill[]): Promise<Owners> => {
    const owners: Owners = new Map()
    const cloids = fills.flatMap(({ cloid }) => cloid ?? [])
    const tasks = await tasksOfOrders(on, account.user_id, cloids)
    for (const { tradeId, orderId, cloid, cause } of fills) {
      // A fill may come without the client id that its order has.
      const known =
        cloid ?? (cause === 'order' ? (await venue.order(account.account, orderId))?.order.cloid : null)
      const more = known && !cloid ? await tasksOfOrders(on, account.user_id, [known]) : tasks
      const taskId = known ? more.get(known) : undefined
      owners.set(tradeId, taskId || cause !== 'order' ? { taskId: taskId ?? null } : undefined)
    }
    return owners
  }

  const foreignOf = async (
    account: VenueAccount,
    { fills, owners, updates }: { fills: readonly Fill[]; owners: Owners; updates: readonly LedgerUpdate[] },
  ): Promise<Foreign | undefined> => {
    const fill = fills.find(({ tradeId }) => owners.get(tradeId) === undefined)
    if (fill)
      return {
        code: 'foreign_fill',
        reason: `order ${fill.orderId} in ${fill.symbol} was filled and is none of ours`,
      }
    for (const update of updates.filter(leaves))
      if (!(await record.wasSigned(on, account.account, update.nonce)))
        return {
          code: 'foreign_transfer',
          reason: `money left the account by a ${update.type} that is none of ours`,
        }
    return undefined
  }

  return async (account: VenueAccount, facts: Facts): Promise<Foreign | undefined> => {
    const since = Number(account.baseline_ms)
    const [told, fundings, updates] = [
      once(facts.fills, since, ({ tradeId }) => tradeId),
      once(facts.fundings, since, (each) => fundingRow(each).key),
      once(facts.updates, since, (each) =>
        updateRows(each)
          .map(({ key }) => key)
          .join(),
      ),
    ]
    const stored = await record.knownFills(
      on,
      account,
      told.map(({ tradeId }) => tradeId),
    )
    const fills = told.filter(({ tradeId }) => !stored.has(tradeId))
    if (fills.length + fundings.length + updates.length === 0) return undefined
    const { markets } = await venue.spots(marketsAgeMs)
    const spots = new Map(markets.map((market) => [market.coin, market]))
    const owners = await ownersOf(account, fills)
    const foreign = await foreignOf(account, { fills, owners, updates })
    const emitted = await transact(async (tx) => {
      const current = await accountFor(tx, account.user_id, true)
      if (!current || current.baseline_ms !== account.baseline_ms) return 0
      const added = await record.addFills(
        tx,
        account,
        fills.map((fill) => fillRow(fill, spots)),
      )
      const changes = [...fundings.map(fundingRow), ...updates.flatMap(updateRows)]
      const changed = await record.addChanges(tx, account, changes)
      const fresh = fills.filter(({ tradeId }) => added.has(tradeId))
      const liquidated = await firstOf(tx, account, fresh)
      const list = [
        ...fresh.flatMap((fill) =>
          fillEvents(fill, owners.get(fill.tradeId)?.taskId ?? null, spots.has(fill.symbol)),
        ),
        ...liquidated.map(liquidationEvent),
        ...fundings.filter((each) => changed.has(fundingRow(each).key)).map(fundingEvent),
      ]
      await events.add(tx, account.user_id, list)
      return list.length
    })
    if (emitted > 0) events.told(account.user_id)
    return foreign
  }
}
export type Ingest = ReturnType<typeof ingesting>

/** What came after the baseline, each of it once: pieces of a list overlap. */
const once = <T extends { atMs: number }>(
  list: readonly T[] = [],
  since: number,
  keyOf: (each: T) => unknown,
): T[] => [...new Map(list.filter(({ atMs }) => atMs > since).map((each) => [keyOf(each), each])).values()]

/** One fill of each liquidation that was not told before. */
async function firstOf(
  tx: Parameters<typeof record.ordersTold>[0],
  account: VenueAccount,
  fresh: readonly Fill[],
) {
  const forced = fresh.filter(({ cause }) => cause === 'liquidation')
  if (forced.length === 0) return []
  const orders = [...new Set(forced.map(({ orderId }) => orderId))]
  const told = await record.ordersTold(
    tx,
    account,
    orders,
    forced.map(({ tradeId }) => tradeId),
  )
  return orders.flatMap((id) => (told.has(id) ? [] : (forced.find(({ orderId }) => orderId === id) ?? [])))
}

const at = (atMs: number) => new Date(atMs).toISOString()
const place = { venue: 'hyperliquid' }

function fillEvents(fill: Fill, taskId: string | null, isSpot: boolean): NewEvent[] {
  const { symbol, orderId, tradeId, cloid, isBuy, price, size, startSize, feeUsd, feeToken } = fill
  const common = { ...place, asset: symbol, fill_id: String(tradeId), at: at(fill.atMs) }
  const filled: NewEvent = {
    ...{ type: 'order.filled', subject: { kind: 'order', id: String(orderId) } },
    data: {
      ...{ ...common, order_id: String(orderId), cloid, task_id: taskId, side: isBuy ? 'buy' : 'sell' },
      ...{ size, price, fee: feeUsd, fee_token: feeToken },
    },
  }
  if (isSpot) return [filled]
  const moved: NewEvent = {
    ...{ type: 'position.changed', subject: { kind: 'position', id: symbol } },
    data: { ...common, size_before: startSize, change: isBuy ? size : `-${size}`, cause: fill.cause },
  }
  return [filled, moved]
}

const liquidationEvent = ({ symbol, orderId, atMs }: Fill): NewEvent => ({
  ...{ type: 'position.liquidated', subject: { kind: 'position', id: symbol } },
  data: { ...place, asset: symbol, order_id: String(orderId), at: at(atMs) },
})

const fundingEvent = ({ symbol, paidUsd, rate, atMs }: Funding): NewEvent => ({
  ...{ type: 'funding.paid', subject: { kind: 'position', id: symbol } },
  data: { ...place, asset: symbol, amount_usd: paidUsd, rate, at: at(atMs) },
})
