import type { EventLog } from '#durable/events/event-log.ts'
import type { Transact } from '#durable/transactions.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Fill, Funding, Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { findAccount, type VenueAccount } from './account-store.ts'
import { fillRow, fundingRow, isOutgoingTransfer, ledgerUpdateRows } from './expected-balances.ts'
import { ownersOfOrders } from './order-store.ts'
import { realizedPnlOf } from './realized-pnl.ts'
import * as record from './record-store.ts'

/** Imports fills, funding and transfers as rows and events, idempotently. */

export type Facts = {
  fills?: readonly Fill[]
  fundings?: readonly Funding[]
  updates?: readonly LedgerUpdate[]
}
/** A fill or transfer by another holder of the account's key. It is uncertain until the venue shows the order. */
export type ForeignRecord = { code: 'foreign_fill' | 'foreign_transfer'; reason: string; isCertain: boolean }

export type IngestDeps = {
  db: Queryable
  transact: Transact
  venue: Pick<Hyperliquid, 'spots' | 'perps' | 'order'>
  events: Pick<EventLog, 'add' | 'notify'>
  /** Called for a record of a market that is not listed, such as one of a third-party perp exchange. */
  skipped: (record: { list: string; symbol: string }) => void
}

const marketsAgeMs = 3_600_000
/**
 * The time in force of the orders by which the venue liquidates an account. Their fills may not say that they are
 * liquidations.
 */
const liquidationTif = 'LiquidationMarket'

/** The owner of an order: `none` if no task placed it, `unknown` if the venue does not show the order (yet). */
type Owner = { taskId: string | null; leg: string | null } | 'none' | 'unknown'
type Owners = Map<number, Owner>
const isOurs = (owner: Owner | undefined): owner is Exclude<Owner, string> => typeof owner === 'object'

export const createIngest =
  (deps: IngestDeps) =>
  (account: VenueAccount, facts: Facts): Promise<ForeignRecord | undefined> =>
    ingest(deps, account, facts)
export type Ingest = ReturnType<typeof createIngest>

async function ingest(
  deps: IngestDeps,
  account: VenueAccount,
  facts: Facts,
): Promise<ForeignRecord | undefined> {
  const { db, transact, venue, events } = deps
  const since = Number(account.baseline_at_ms)
  const newFills = await onlyListed(
    deps,
    account,
    dedupe(facts.fills, since, ({ tradeId }) => tradeId),
  )
  const fundings = dedupe(facts.fundings, since, (each) => fundingRow(each).key)
  const updates = dedupe(facts.updates, since, (each) =>
    ledgerUpdateRows(each)
      .map(({ key }) => key)
      .join(),
  )
  const stored = await record.knownFills(
    db,
    account,
    newFills.map(({ tradeId }) => tradeId),
  )
  const unstored = newFills.filter(({ tradeId }) => !stored.has(tradeId))
  if (unstored.length + fundings.length + updates.length === 0) return undefined
  const { markets } = await venue.spots(marketsAgeMs)
  const spots = new Map(markets.map((market) => [market.coin, market]))
  const owners = await ownersOf(deps, account, unstored)
  const foreign = await findForeign(db, account, { fills: unstored, owners, updates })
  // Fills of an unknown owner are not stored, so that the next comparison reads them again.
  const fills = unstored.filter(({ tradeId }) => owners.get(tradeId) !== 'unknown')
  const emitted = await transact(async (tx) => {
    const current = await findAccount(tx, account.user_id, { lock: true })
    if (!current || current.baseline_at_ms !== account.baseline_at_ms) return 0
    const added = await record.addFills(
      tx,
      account,
      fills.map((fill) => fillRow(fill, spots)),
    )
    const changes = [...fundings.map(fundingRow), ...updates.flatMap(ledgerUpdateRows)]
    const changed = await record.addLedgerEntries(tx, account, changes)
    const newRecords = fills.filter(({ tradeId }) => added.has(tradeId))
    const liquidated = await newLiquidations(tx, account, newRecords)
    const list = [
      ...newRecords.flatMap((fill) => {
        const owner = owners.get(fill.tradeId)
        return fillEvents(fill, isOurs(owner) ? owner : noOwner, { isSpot: spots.has(fill.symbol) })
      }),
      ...liquidated.map(liquidationEvent),
      ...fundings.filter((each) => changed.has(fundingRow(each).key)).map(fundingEvent),
    ]
    await events.add(tx, account.user_id, list)
    return list.length
  })
  if (emitted > 0) events.notify(account.user_id)
  return foreign
}

async function ownersOf(deps: IngestDeps, account: VenueAccount, fills: readonly Fill[]): Promise<Owners> {
  const owners: Owners = new Map()
  const cloids = fills.flatMap(({ cloid }) => cloid ?? [])
  const tasks = await ownersOfOrders(deps.db, account.user_id, cloids)
  for (const { tradeId, orderId, cloid, cause } of fills) {
    const ours = cloid ? tasks.get(cloid) : undefined
    const lookUpOwner = () => (cause === 'order' ? ownerOfOrder(deps, account, { orderId, cloid }) : noOwner)
    owners.set(tradeId, ours ?? (await lookUpOwner()))
  }
  return owners
}

async function ownerOfOrder(
  { db, venue }: IngestDeps,
  account: VenueAccount,
  { orderId, cloid }: Pick<Fill, 'orderId' | 'cloid'>,
): Promise<Owner> {
  if (cloid) return 'none'
  // A fill may lack the client order id of its order.
  const found = await venue.order(account.account, orderId)
  if (!found) return 'unknown'
  if (found.order.tif === liquidationTif) return noOwner
  const known = found.order.cloid
  const owner = known ? (await ownersOfOrders(db, account.user_id, [known])).get(known) : undefined
  return owner ?? 'none'
}

/**
 * Returns the fills of listed markets and of the gateway's own orders. Other fills are of exchanges that the gateway
 * does not serve.
 */
async function onlyListed(
  { db, venue, skipped }: IngestDeps,
  { user_id }: VenueAccount,
  fills: readonly Fill[],
): Promise<readonly Fill[]> {
  if (fills.length === 0) return fills
  const [{ markets: spots }, { markets: perps }] = await Promise.all([
    venue.spots(marketsAgeMs),
    venue.perps(marketsAgeMs),
  ])
  const names = new Set([...spots.map(({ coin }) => coin), ...perps.map(({ symbol }) => symbol)])
  const rest = fills.filter(({ symbol }) => !names.has(symbol))
  if (rest.length === 0) return fills
  const cloids = rest.flatMap(({ cloid }) => cloid ?? [])
  const ours = await ownersOfOrders(db, user_id, cloids)
  return fills.filter(({ symbol, cloid }) => {
    if (names.has(symbol) || (cloid && ours.has(cloid))) return true
    skipped({ list: 'fills', symbol })
    return false
  })
}

async function findForeign(
  db: Queryable,
  account: VenueAccount,
  { fills, owners, updates }: { fills: readonly Fill[]; owners: Owners; updates: readonly LedgerUpdate[] },
): Promise<ForeignRecord | undefined> {
  const foreign = (owner: 'none' | 'unknown') => fills.find(({ tradeId }) => owners.get(tradeId) === owner)
  const fill = foreign('none') ?? foreign('unknown')
  if (fill)
    return {
      code: 'foreign_fill',
      reason: `order ${fill.orderId} in ${fill.symbol} was filled and was not placed by this gateway`,
      isCertain: owners.get(fill.tradeId) === 'none',
    }
  for (const update of updates.filter(isOutgoingTransfer))
    if (!(await record.signatureOf(db, account.account, update.nonce)))
      return {
        code: 'foreign_transfer',
        reason: `money left the account by a ${update.type} that this gateway did not sign`,
        isCertain: true,
      }
  return undefined
}

/** Returns the records after the baseline without duplicates, because pages of a list overlap. */
const dedupe = <T extends { atMs: number }>(
  list: readonly T[] = [],
  since: number,
  keyOf: (each: T) => unknown,
): T[] => [...new Map(list.filter(({ atMs }) => atMs > since).map((each) => [keyOf(each), each])).values()]

/** Returns one fill of each liquidation that has no event yet. */
async function newLiquidations(
  tx: Parameters<typeof record.reportedOrders>[0],
  account: VenueAccount,
  fresh: readonly Fill[],
) {
  const forced = fresh.filter(({ cause }) => cause === 'liquidation')
  if (forced.length === 0) return []
  const orders = [...new Set(forced.map(({ orderId }) => orderId))]
  const reported = await record.reportedOrders(
    tx,
    account,
    orders,
    forced.map(({ tradeId }) => tradeId),
  )
  return orders.flatMap((id) =>
    reported.has(id) ? [] : (forced.find(({ orderId }) => orderId === id) ?? []),
  )
}

const isoTime = (atMs: number) => new Date(atMs).toISOString()
const venueField = { venue: 'hyperliquid' }

const noOwner = { taskId: null, leg: null }

/**
 * Returns the name of a leg without its number. A repair numbers its legs: `tp2` is the second take-profit, and
 * `close1` the first close.
 */
export const baseLeg = (leg: string | null): string | null => leg?.replace(/\d+$/, '') ?? null

function fillEvents(
  fill: Fill,
  { taskId, leg }: Exclude<Owner, string>,
  { isSpot }: { isSpot: boolean },
): NewEvent[] {
  const { symbol, orderId, tradeId, cloid, isBuy, price, size, startSize, feeUsd, feeToken } = fill
  const common = { ...venueField, asset: symbol, fill_id: String(tradeId), at: isoTime(fill.atMs) }
  const filled: NewEvent = {
    type: 'order.filled',
    subject: { kind: 'order', id: String(orderId) },
    ...(taskId && { taskId }),
    data: {
      ...common,
      order_id: String(orderId),
      cloid,
      task_id: taskId,
      leg: baseLeg(leg),
      side: isBuy ? 'buy' : 'sell',
      size,
      price,
      fee: feeUsd,
      fee_token: feeToken,
      ...realizedPnlOf([fill]),
    },
  }
  if (isSpot) return [filled]
  const moved: NewEvent = {
    type: 'position.changed',
    subject: { kind: 'position', id: symbol },
    ...(taskId && { taskId }),
    data: { ...common, size_before: startSize, change: isBuy ? size : `-${size}`, cause: fill.cause },
  }
  return [filled, moved]
}

const liquidationEvent = ({ symbol, orderId, atMs }: Fill): NewEvent => ({
  type: 'position.liquidated',
  subject: { kind: 'position', id: symbol },
  data: { ...venueField, asset: symbol, order_id: String(orderId), at: isoTime(atMs) },
})

const fundingEvent = ({ symbol, paidUsd, rate, atMs }: Funding): NewEvent => ({
  type: 'funding.paid',
  subject: { kind: 'position', id: symbol },
  data: { ...venueField, asset: symbol, amount_usd: paidUsd, rate, at: isoTime(atMs) },
})
