import { RequestError } from '#world/venue-core/request-error.ts'
import { type CancelResult, cancelOrders, cancelScope, endOrder, type Scope, wipeOrders } from './cancel.ts'
import type { SignedTransaction } from './chain/chain-terms.ts'
import { heartbeat, loseHeartbeats } from './heartbeats.ts'
import { creditLedger, settleOnLedger } from './ledger.ts'
import { identifyQuote, requote, walkPrices } from './market-maker.ts'
import { markets } from './markets.ts'
import { type Funds, type OrderInput, type OrderResult, placeOrder, releaseDelayed } from './place-order.ts'
import { foldActivity } from './positions.ts'
import type {
  Account,
  Activity,
  ApiKey,
  Bridge,
  Carry,
  Order,
  RelayTransaction,
  TradeStatus,
  VenueMode,
} from './state.ts'
import { changeTrade, isOpenTrade } from './trades.ts'
import {
  accountOf,
  addActivity,
  isUnderWay,
  marketOf,
  notify,
  samplePrices,
  stateOf,
  type Venue,
} from './venue.ts'

/** All that changes the venue. Everything that it did not decide itself is in the command, so that a replay is equal. */
export type Command =
  | { kind: 'tick' }
  | { kind: 'order'; order: OrderInput; funds: Funds }
  | { kind: 'cancel'; user: string; ids: string[] }
  | { kind: 'cancelScope'; user: string; scope: Scope }
  | { kind: 'wipe' }
  | { kind: 'key'; key: ApiKey }
  | { kind: 'builderKey'; key: ApiKey }
  | { kind: 'relayerKey'; key: string; address: string }
  | { kind: 'deleteKey'; key: string }
  | { kind: 'heartbeat'; user: string; given: string; next: string }
  | { kind: 'dropNotifications'; user: string; ids: number[] }
  | {
      kind: 'trade'
      id: string
      status: TradeStatus
      hash?: string
      error?: string
      attempt?: SignedTransaction | null
    }
  | { kind: 'settleOnLedger'; id: string }
  | { kind: 'credit'; wallet: string; asset: string; amount: string }
  | { kind: 'price'; conditionId: string; price: number; pin: boolean }
  | { kind: 'tickSize'; conditionId: string; tick: number }
  | { kind: 'resolve'; conditionId: string; payout: number }
  | { kind: 'reported'; conditionId: string }
  | { kind: 'mode'; name: VenueMode; forMs: number; next: VenueMode; nextMs: number }
  | {
      kind: 'account'
      wallet: string
      settings: { closedOnly?: boolean; banned?: boolean; phantomUsd?: number }
    }
  | { kind: 'relay'; transaction: RelayTransaction; quotaUntilMs: number }
  | { kind: 'relayerQuota'; resetsInMs: number }
  | { kind: 'relayChange'; id: string; change: Partial<RelayTransaction> }
  | { kind: 'bridge'; bridge: Bridge }
  | { kind: 'bridgeScanned'; chainId: string; block: number; carries: Carry[] }
  | { kind: 'carryChange'; key: string; change: Partial<Carry> }
  | { kind: 'scanned'; block: number; rows: Omit<Activity, 'id'>[] }
  | { kind: 'chainPrepared' }

export type Answer =
  | OrderResult
  | CancelResult
  | { error: string; id: string }
  | { count: number }
  | undefined

const doneMax = 30_000
const relayMax = 3_000

/** Made anew with the next order of its wallet. */
const isBlank = ({ open, matchedCash, matchedShares, phantomCash, closedOnly, banned }: Account): boolean =>
  open.size + matchedShares.size === 0 && matchedCash + phantomCash === 0n && !closedOnly && !banned

/** The oldest ended records go first; a Map lists in the order of entry. */
const prune = (venue: Venue): void => {
  const { state, bySeq } = venue
  for (const [id, order] of state.orders) {
    if (state.orders.size <= doneMax) break
    if (order.status === 'LIVE' || order.status === 'DELAYED') continue
    state.orders.delete(id)
    bySeq.delete(order.seq)
  }
  for (const [id, trade] of state.trades) {
    if (state.trades.size <= doneMax) break
    if (!isOpenTrade(trade)) state.trades.delete(id)
  }
  for (const [wallet, account] of state.accounts) {
    if (state.accounts.size <= doneMax) break
    if (isBlank(account)) state.accounts.delete(wallet)
  }
  foldActivity(venue)
}

const expire = (venue: Venue, order: Order): void => {
  const { nowMs } = venue.state
  if (order.status === 'DELAYED' && order.releaseMs <= nowMs) {
    releaseDelayed(venue, order, identifyQuote(venue))
    return
  }
  if (order.expiresMs > 0 && order.expiresMs <= nowMs) endOrder(venue, order, 'CANCELED')
}

const changeMode = ({ state }: Venue): void => {
  const { mode } = state
  if (mode.untilMs === 0 || state.nowMs < mode.untilMs) return
  const untilMs = mode.nextMs === 0 ? 0 : mode.untilMs + mode.nextMs
  state.mode = { name: mode.next, untilMs, next: 'open', nextMs: 0 }
}

const tick = (venue: Venue): void => {
  const { state } = venue
  changeMode(venue)
  loseHeartbeats(venue)
  if (state.mode.name !== 'restarting')
    for (const id of [...state.timed]) {
      const order = state.orders.get(id)
      if (order) expire(venue, order)
      else state.timed.delete(id)
    }
  walkPrices(venue)
  samplePrices(venue)
  prune(venue)
}

const requireMarket = (venue: Venue, conditionId: string) => {
  const state = venue.state.markets.get(conditionId)
  if (!state) throw new RequestError(`There is no market ${conditionId}`)
  return { market: marketOf(conditionId), state }
}

const changeTick = (venue: Venue, conditionId: string, to: number): void => {
  const { market, state } = requireMarket(venue, conditionId)
  const from = state.tick
  state.tick = to
  state.changedMs = venue.state.nowMs
  venue.events.push({ kind: 'tick', conditionId, from, to, atMs: venue.state.nowMs })
  requote(venue, market)
}

/** Orders end and the result is known; the chain learns of it by a report of its own. */
const resolve = (venue: Venue, conditionId: string, payout: number): void => {
  const { market, state } = requireMarket(venue, conditionId)
  if (state.payout !== null) throw new RequestError('This market is resolved')
  state.isClosed = true
  state.payout = payout
  state.fair = Math.max(state.tick, Math.min(10_000 - state.tick, payout))
  state.lastPrice = payout
  state.resolvedMs = venue.state.nowMs
  state.changedMs = venue.state.nowMs
  wipeOrders(venue, 'CANCELED_MARKET_RESOLVED', conditionId)
  requote(venue, market)
  venue.events.push({ kind: 'resolved', conditionId, atMs: venue.state.nowMs })
  const payload = {
    market: conditionId,
    question: market.question,
    outcome: winnerOf(market.outcomes, payout),
  }
  const users = new Set([...venue.state.keys.values()].map(({ address }) => address))
  for (const user of users) notify(venue, user, { type: 4, payload })
}

const winnerOf = (outcomes: readonly [string, string], payout: number): string =>
  payout === 5_000 ? '' : payout > 5_000 ? outcomes[0] : outcomes[1]

const setPrice = (venue: Venue, { conditionId, price, pin }: Extract<Command, { kind: 'price' }>): void => {
  const { market, state } = requireMarket(venue, conditionId)
  state.fair = price
  state.isPinned = pin
  state.changedMs = venue.state.nowMs
  requote(venue, market)
}

const changeAccount = (venue: Venue, { wallet, settings }: Extract<Command, { kind: 'account' }>): void => {
  const account = accountOf(venue, wallet)
  const { closedOnly, banned, phantomUsd } = settings
  if (closedOnly !== undefined) account.closedOnly = closedOnly
  if (banned !== undefined) account.banned = banned
  if (phantomUsd !== undefined) account.phantomCash = BigInt(Math.round(phantomUsd * 1_000_000))
}

const startMode = (venue: Venue, { name, forMs, next, nextMs }: Extract<Command, { kind: 'mode' }>): void => {
  const { state } = venue
  state.mode = { name, untilMs: forMs === 0 ? 0 : state.nowMs + forMs, next, nextMs }
  if (name === 'open' || name === 'postOnly') for (const market of markets) requote(venue, market)
}

const addRelay = (
  { state }: Venue,
  { transaction, quotaUntilMs }: Extract<Command, { kind: 'relay' }>,
): void => {
  put(state.relay, transaction.id, transaction, relayMax)
  const { untilMs, count } = state.relayed
  state.relayed = { untilMs: quotaUntilMs, count: untilMs === quotaUntilMs ? count + 1 : 1 }
}

/** What was taken of the quota stays taken until its new end. */
const endQuota = ({ state }: Venue, resetsInMs: number): void => {
  const { untilMs, count } = state.relayed
  state.relayed = { untilMs: state.nowMs + resetsInMs, count: state.nowMs < untilMs ? count : 0 }
}

/** The oldest record makes place for one too many. */
const put = <T>(records: Map<string, T>, key: string, record: T, max = doneMax): void => {
  records.set(key, record)
  const [first] = records.keys()
  if (records.size > max && first !== undefined) records.delete(first)
}

type Handlers = {
  [Kind in Command['kind']]: (venue: Venue, command: Extract<Command, { kind: Kind }>) => Answer | void
}

const handlers: Handlers = {
  tick,
  order: (venue, { order, funds }) => placeOrder(venue, order, { funds, identify: identifyQuote(venue) }),
  cancel: (venue, { user, ids }) => cancelOrders(venue, user, ids),
  cancelScope: (venue, { user, scope }) => cancelScope(venue, user, scope),
  wipe: (venue) => ({ count: wipeOrders(venue, 'CANCELED') }),
  key: ({ state }, { key }) => {
    state.keys.set(key.key, key)
  },
  builderKey: ({ state }, { key }) => {
    state.builderKeys.set(key.key, key)
  },
  relayerKey: ({ state }, { key, address }) => {
    state.relayerKeys.set(key, { address, createdMs: state.nowMs })
  },
  deleteKey: ({ state }, { key }) => {
    state.keys.delete(key)
    state.builderKeys.delete(key)
  },
  heartbeat,
  dropNotifications: ({ state }, { user, ids }) => {
    const list = state.notifications.get(user) ?? []
    const remaining = list.filter(({ id }) => !ids.includes(id))
    state.notifications.set(user, remaining)
  },
  trade: (venue, command) => changeTrade(venue, command.id, command),
  settleOnLedger: (venue, { id }) => settleOnLedger(venue, id),
  credit: creditLedger,
  price: setPrice,
  tickSize: (venue, { conditionId, tick: size }) => changeTick(venue, conditionId, size),
  resolve: (venue, { conditionId, payout }) => resolve(venue, conditionId, payout),
  reported: (venue, { conditionId }) => {
    stateOf(venue, conditionId).isReported = true
  },
  mode: startMode,
  account: changeAccount,
  relay: addRelay,
  relayerQuota: (venue, { resetsInMs }) => endQuota(venue, resetsInMs),
  relayChange: ({ state }, { id, change }) => {
    const transaction = state.relay.get(id)
    if (!transaction) return
    Object.assign(transaction, change, { updatedMs: state.nowMs })
    // What can not be sent any more needs no bytes.
    if (!isUnderWay(transaction)) Object.assign(transaction, { attempt: null, body: {} })
  },
  bridge: ({ state }, { bridge }) => {
    put(state.bridges, bridge.evm, bridge)
  },
  bridgeScanned: ({ state }, { chainId, block, carries }) => {
    for (const carry of carries) put(state.carries, carry.key, carry)
    state.bridgeBlocks.set(chainId, block)
  },
  carryChange: ({ state }, { key, change }) => {
    const carry = state.carries.get(key)
    if (carry) Object.assign(carry, change)
    if (carry && !isUnderWay(carry)) carry.attempt = null
  },
  scanned: (venue, { block, rows }) => {
    venue.state.scannedBlock = block
    for (const row of rows) addActivity(venue, row)
  },
  chainPrepared: ({ state }) => {
    state.chainPrepared = true
  },
}

type Handler = (venue: Venue, command: Command) => Answer | void

export const apply = (venue: Venue, command: Command, atMs: number): Answer => {
  venue.events = []
  venue.state.nowMs = Math.max(venue.state.nowMs, atMs)
  venue.state.sequence += 1
  return (handlers[command.kind] as Handler)(venue, command) ?? undefined
}
