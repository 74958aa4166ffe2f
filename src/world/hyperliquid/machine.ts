import { cancelAll } from './amending.ts'
import type { Attempt } from './bridge.ts'
import { touch } from './candles.ts'
import { type Answer, perform, type Request } from './exchange.ts'
import { hourMs, payFunding, sampleEveryMs, samplePremiums } from './funding.ts'
import { placeGroup } from './groups.ts'
import { liquidate } from './liquidation.ts'
import { requote, strangers, walk } from './maker.ts'
import { forgetAverages, pricedAt, setOracle, updateMark } from './mark.ts'
import { marketNamed, markets } from './markets.ts'
import type { OrderWire } from './placing.ts'
import { refuseAll } from './refusals.ts'
import type { Account, Settings } from './state.ts'
import { credit, deposit, foreignTransfer } from './transfers.ts'
import { fireTriggers } from './triggers.ts'
import { runTwaps } from './twap.ts'
import { pool, setMode } from './unified.ts'
import { commandHash, openAccount, stateOf, type Venue } from './venue.ts'

/** The only ways anything changes. The log is a list of these, and replaying it gives the same venue. */
export type Command =
  | ({ kind: 'act' } & Request)
  | { kind: 'tick' }
  | { kind: 'price'; coin: string; usd: number; pin: boolean }
  | { kind: 'unpin'; coin: string }
  | { kind: 'credit'; user: string; coin: string; units: bigint }
  | { kind: 'deposit'; user: string; units: bigint; key: string }
  | { kind: 'scanned'; block: number }
  | { kind: 'paying'; id: number; attempt: Attempt | null }
  | { kind: 'paid'; id: number; hash: string }
  | { kind: 'funding' }
  | { kind: 'expireAgent'; address: string }
  | { kind: 'settings'; settings: Partial<Settings> }
  | { kind: 'accountMode'; user: string; mode: Account['abstraction'] }
  | { kind: 'foreignOrders'; user: string; orders: OrderWire[] }
  | { kind: 'foreignTransfer'; user: string; coin: string; units: bigint }

export const markEveryMs = 3_000

/** Everything that follows from a price that moved. */
const marksMoved = (venue: Venue): void => {
  for (const { asset } of markets) {
    updateMark(venue, asset)
    touch(stateOf(venue, asset).live, venue.state.nowMs, stateOf(venue, asset).mark, 0)
  }
  for (const { asset } of markets) fireTriggers(venue, asset)
  liquidate(venue)
  venue.happenings.push({ kind: 'prices' })
}

const scheduledCancels = (venue: Venue): void => {
  for (const account of venue.state.accounts.values()) {
    if (account.cancelAtMs === null || account.cancelAtMs > venue.state.nowMs) continue
    account.cancelAtMs = null
    cancelAll(venue, account, 'scheduledCancel')
  }
}

const fundingDue = (venue: Venue): void => {
  const { next, nowMs } = venue.state
  while (next.fundingMs <= nowMs) {
    payFunding(venue, next.fundingMs)
    next.fundingMs += hourMs
  }
}

const tick = (venue: Venue, sinceMs: number): void => {
  const { next, nowMs } = venue.state
  walk(venue, Math.max(1, sinceMs / 1000))
  for (const market of markets) requote(venue, market)
  strangers(venue)
  if (nowMs >= next.sampleMs) {
    samplePremiums(venue)
    next.sampleMs = nowMs + sampleEveryMs
  }
  if (nowMs >= next.markMs) {
    marksMoved(venue)
    next.markMs = nowMs + markEveryMs
  }
  runTwaps(venue)
  fundingDue(venue)
  scheduledCancels(venue)
}

/** A test's price is the oracle at once, the maker quotes around it, and the averages start anew. */
const setPrice = (venue: Venue, coin: string, usd: number, pin: boolean): void => {
  const market = marketNamed(coin) ?? refuseAll(`Unknown coin ${coin}`)
  if (!(usd > 0) || usd > 10_000_000) refuseAll('The price must be above zero.')
  const state = stateOf(venue, market.asset)
  setOracle(state, pricedAt(market.asset, usd))
  state.pinned = pin
  forgetAverages(state, venue.state.nowMs)
  requote(venue, market)
  marksMoved(venue)
}

const run = (venue: Venue, command: Command, sinceMs: number): Answer | undefined => {
  const { state } = venue
  if (command.kind === 'act') return perform(venue, command)
  if (command.kind === 'tick') tick(venue, sinceMs)
  else if (command.kind === 'price') setPrice(venue, command.coin, command.usd, command.pin)
  else if (command.kind === 'unpin') {
    const market = marketNamed(command.coin) ?? refuseAll(`Unknown coin ${command.coin}`)
    stateOf(venue, market.asset).pinned = false
    forgetAverages(stateOf(venue, market.asset), state.nowMs)
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
    const agent = state.agents.get(command.address) ?? refuseAll('No such agent')
    agent.validUntilMs = state.nowMs
  } else if (command.kind === 'accountMode') setMode(venue, openAccount(venue, command.user), command.mode)
  else if (command.kind === 'foreignOrders')
    placeGroup(venue, openAccount(venue, command.user), command.orders, 'na', {})
  else if (command.kind === 'foreignTransfer')
    foreignTransfer(venue, command.user, command.coin, command.units)
  else state.settings = { ...state.settings, ...command.settings }
  return undefined
}

const noteCandles = (venue: Venue): void => {
  for (const happening of venue.happenings) {
    if (happening.kind !== 'trade') continue
    const { trade } = happening
    const market = marketNamed(trade.coin)
    if (market) touch(stateOf(venue, market.asset).live, trade.timeMs, trade.price, trade.size)
  }
}

/** Proceeds, credits and released holds of this command join the one balance of their account. */
const poolUnified = (venue: Venue): void => {
  for (const happening of venue.happenings) {
    const account = 'user' in happening ? venue.state.accounts.get(happening.user) : undefined
    if (account) pool(venue, account)
  }
}

/** One command, at one instant. Time never goes back. */
export const apply = (venue: Venue, command: Command, atMs: number): Answer | undefined => {
  const { state } = venue
  const sinceMs = Math.max(0, atMs - state.nowMs)
  state.nowMs = Math.max(state.nowMs, atMs)
  state.sequence += 1
  venue.hash = commandHash(state.seed, state.sequence)
  venue.happenings = []
  try {
    return run(venue, command, sinceMs)
  } finally {
    noteCandles(venue)
    poolUnified(venue)
  }
}
