import { rejectRequest } from '#world/venue-core/request-error.ts'
import { placeGroup } from './brackets.ts'
import { addTrade } from './candles.ts'
import { type Answer, perform, type Request } from './exchange.ts'
import { hourMs, payFunding, sampleEveryMs, samplePremiums } from './funding.ts'
import { liquidate } from './liquidation.ts'
import { pricedAt, resetAverages, setOracle, updateMark } from './mark.ts'
import { requote, tradeRandomly, walkPrices } from './market-maker.ts'
import { marketNamed, markets } from './markets.ts'
import { cancelAll } from './modify.ts'
import type { OrderWire } from './place-order.ts'
import type { Account, PayoutAttempt, Settings } from './state.ts'
import { credit, deposit, foreignTransfer } from './transfers.ts'
import { fireTriggers } from './triggers.ts'
import { runTwaps } from './twap.ts'
import { poolUsd, setMode } from './unified.ts'
import { commandHash, openAccount, stateOf, type Venue } from './venue.ts'

/** Every command that changes the venue. The log is a list of these, and replaying it gives the same venue. */
export type Command =
  | ({ kind: 'act' } & Request)
  | { kind: 'tick' }
  | { kind: 'price'; coin: string; usd: number; pin: boolean }
  | { kind: 'unpin'; coin: string }
  | { kind: 'credit'; user: string; coin: string; units: bigint }
  | { kind: 'deposit'; user: string; units: bigint; key: string }
  | { kind: 'scanned'; block: number }
  | { kind: 'paying'; id: number; attempt: PayoutAttempt | null }
  | { kind: 'paid'; id: number; hash: string }
  | { kind: 'funding' }
  | { kind: 'expireAgent'; address: string }
  | { kind: 'settings'; settings: Partial<Settings> }
  | { kind: 'accountMode'; user: string; mode: Account['abstraction'] }
  | { kind: 'foreignOrders'; user: string; orders: OrderWire[] }
  | { kind: 'foreignCancel'; user: string; oid: number }
  | { kind: 'foreignTransfer'; user: string; coin: string; units: bigint }

export const markEveryMs = 3_000

/** Everything that follows from a price change. */
const onMarksMoved = (venue: Venue): void => {
  for (const { asset } of markets) {
    updateMark(venue, asset)
    addTrade(stateOf(venue, asset).live, venue.state.nowMs, stateOf(venue, asset).mark, 0)
  }
  for (const { asset } of markets) fireTriggers(venue, asset)
  liquidate(venue)
  venue.events.push({ kind: 'prices' })
}

const runScheduledCancels = (venue: Venue): void => {
  for (const account of venue.state.accounts.values()) {
    if (account.cancelAtMs === null || account.cancelAtMs > venue.state.nowMs) continue
    account.cancelAtMs = null
    cancelAll(venue, account, 'scheduledCancel')
  }
}

const payDueFunding = (venue: Venue): void => {
  const { next, nowMs } = venue.state
  while (next.fundingMs <= nowMs) {
    payFunding(venue, next.fundingMs)
    next.fundingMs += hourMs
  }
}

const tick = (venue: Venue, sinceMs: number): void => {
  const { next, nowMs } = venue.state
  walkPrices(venue, Math.max(1, sinceMs / 1000))
  for (const market of markets) requote(venue, market)
  tradeRandomly(venue)
  if (nowMs >= next.sampleMs) {
    samplePremiums(venue)
    next.sampleMs = nowMs + sampleEveryMs
  }
  if (nowMs >= next.markMs) {
    onMarksMoved(venue)
    next.markMs = nowMs + markEveryMs
  }
  runTwaps(venue)
  payDueFunding(venue)
  runScheduledCancels(venue)
}

/** A price set by a test is the oracle price at once, the market maker quotes around it, and the averages restart. */
const setPrice = (venue: Venue, coin: string, usd: number, { pin }: { pin: boolean }): void => {
  const market = marketNamed(coin) ?? rejectRequest(`Unknown coin ${coin}`)
  if (!(usd > 0) || usd > 10_000_000) rejectRequest('The price must be above zero.')
  const state = stateOf(venue, market.asset)
  setOracle(state, pricedAt(market.asset, usd))
  state.pinned = pin
  resetAverages(state, venue.state.nowMs)
  requote(venue, market)
  onMarksMoved(venue)
}

const applyCommand = (venue: Venue, command: Command, sinceMs: number): Answer | undefined => {
  const { state } = venue
  if (command.kind === 'act') return perform(venue, command)
  if (command.kind === 'tick') tick(venue, sinceMs)
  else if (command.kind === 'price') setPrice(venue, command.coin, command.usd, { pin: command.pin })
  else if (command.kind === 'unpin') {
    const market = marketNamed(command.coin) ?? rejectRequest(`Unknown coin ${command.coin}`)
    stateOf(venue, market.asset).pinned = false
    resetAverages(stateOf(venue, market.asset), state.nowMs)
  } else if (command.kind === 'credit') credit(venue, command.user, command.coin, command.units)
  else if (command.kind === 'deposit') {
    if (state.bridge.credited.has(command.key)) return undefined
    state.bridge.credited.add(command.key)
    deposit(venue, command.user, command.units)
  } else if (command.kind === 'scanned') state.bridge.scanned = command.block
  else if (command.kind === 'paying') {
    const payout = state.bridge.payouts[command.id]
    if (payout) payout.attempt = command.attempt
  } else if (command.kind === 'paid') {
    const payout = state.bridge.payouts[command.id]
    if (payout) {
      payout.hash = command.hash
      payout.attempt = null
    }
  } else if (command.kind === 'funding') payFunding(venue, state.nowMs)
  else if (command.kind === 'expireAgent') {
    const agent = state.agents.get(command.address) ?? rejectRequest('No such agent')
    agent.validUntilMs = state.nowMs
  } else if (command.kind === 'accountMode') setMode(venue, openAccount(venue, command.user), command.mode)
  else if (command.kind === 'foreignOrders')
    placeGroup(venue, openAccount(venue, command.user), command.orders, { grouping: 'na', links: {} })
  else if (command.kind === 'foreignCancel')
    cancelAll(venue, openAccount(venue, command.user), 'canceled', ({ oid }) => oid === command.oid)
  else if (command.kind === 'foreignTransfer')
    foreignTransfer(venue, command.user, command.coin, command.units)
  else state.settings = { ...state.settings, ...command.settings }
  return undefined
}

const recordCandles = (venue: Venue): void => {
  for (const event of venue.events) {
    if (event.kind !== 'trade') continue
    const { trade } = event
    const market = marketNamed(trade.coin)
    if (market) addTrade(stateOf(venue, market.asset).live, trade.timeMs, trade.price, trade.size)
  }
}

/** Proceeds, credits and released holds of this command are added to the unified balance of their account. */
const poolUnifiedBalances = (venue: Venue): void => {
  for (const event of venue.events) {
    const account = 'user' in event ? venue.state.accounts.get(event.user) : undefined
    if (account) poolUsd(venue, account)
  }
}

/** One command at one instant. Time never goes back. */
export const apply = (venue: Venue, command: Command, atMs: number): Answer | undefined => {
  const { state } = venue
  const sinceMs = Math.max(0, atMs - state.nowMs)
  state.nowMs = Math.max(state.nowMs, atMs)
  state.sequence += 1
  venue.hash = commandHash(state.seed, state.sequence)
  venue.events = []
  try {
    return applyCommand(venue, command, sinceMs)
  } finally {
    recordCandles(venue)
    poolUnifiedBalances(venue)
  }
}
