import { createHash } from 'node:crypto'
import { hashText, toHex } from '#world/venue-core/signature.ts'
import { cashOf } from './decimal.ts'
import type { Fee, Leg, Order, Trade, TradePlan, TradeStatus } from './state.ts'
import {
  accountOf,
  addActivity,
  addVersion,
  feeOf,
  type Match,
  marketOf,
  notify,
  stateOf,
  type Venue,
} from './venue.ts'

export const plainPlan: TradePlan = {
  delayMs: 0,
  confirmMs: 0,
  retries: 0,
  fails: false,
  isPhantom: false,
  firstStatus: 'MATCHED',
}

const uuid = (seed: number, sequence: number): string => {
  const hex = createHash('sha256').update(`trade ${seed} ${sequence}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The fee of the taker in units: shares * rate * (p * (1 - p))^exponent, rounded down. */
export const takerFee = (venue: Venue, conditionId: string, shares: number, price: number): number => {
  const fee = feeOf(venue, conditionId)
  if (!fee) return 0
  const rate = BigInt(Math.round(fee.rate * 10_000))
  const curve = BigInt(price) * BigInt(10_000 - price)
  const exponent = BigInt(fee.exponent)
  return Number((BigInt(shares) * rate * curve ** exponent) / (10_000n * 100_000_000n ** exponent))
}

/** Whether the exchange, which settles no fee beyond a tenth of the cash, would refuse it of either outcome. */
export const isFeeTooHigh = ({ rate, exponent }: Fee, fair: number): boolean =>
  [fair / 10_000, 1 - fair / 10_000].some(
    (price) => rate * price ** (exponent - 1) * (1 - price) ** exponent > 0.1,
  )

/** What the builder of an order takes of a match, beside any other fee; rounded down. */
export const builderFee = (
  { state }: Venue,
  { signed }: Pick<Order, 'signed'>,
  { role, cash }: { role: 'maker' | 'taker'; cash: number },
): number => {
  const fee = state.builderFees.get(signed.builder.toLowerCase())
  if (!fee) return 0
  return Math.floor((cash * (role === 'maker' ? fee.makerBps : fee.takerBps)) / 10_000)
}

type Part = { shares: number; cash: number; fee: number; price: number }

const legOf = (order: Order, { shares, cash, fee, price }: Part): Leg => ({
  orderId: order.id,
  owner: order.owner,
  user: order.user,
  wallet: order.wallet,
  outcome: order.outcome,
  side: order.side,
  price,
  shares,
  cash,
  fee,
  signed: order.signed,
})

const commit = (venue: Venue, conditionId: string, leg: Leg, sign: 1n | -1n): void => {
  const account = accountOf(venue, leg.wallet)
  if (sign === -1n) account.releases = (account.releases ?? 0) + 1
  if (leg.side === 'BUY') account.matchedCash += sign * BigInt(leg.cash + leg.fee)
  else {
    const token = marketOf(conditionId).tokens[leg.outcome]
    const shares = (account.matchedShares.get(token) ?? 0n) + sign * BigInt(leg.shares)
    if (shares === 0n) account.matchedShares.delete(token)
    else account.matchedShares.set(token, shares)
  }
}

/** A resting order on the other outcome meets the taker at the complement of its price. */
const takerPrice = (taker: Order, maker: Order): number =>
  maker.outcome === taker.outcome ? maker.price : 10_000 - maker.price

const recordPrint = (venue: Venue, taker: Order, makers: readonly Leg[], trade: Trade): void => {
  const market = stateOf(venue, taker.conditionId)
  const last = makers.at(-1) as Leg
  const price = last.outcome === taker.outcome ? last.price : 10_000 - last.price
  market.lastPrice = taker.outcome === 0 ? price : 10_000 - price
  market.lastSide = taker.outcome === 0 ? taker.side : taker.side === 'BUY' ? 'SELL' : 'BUY'
  market.volume += BigInt(trade.taker.cash)
  market.changedMs = venue.state.nowMs
  venue.events.push({ kind: 'print', trade, atMs: venue.state.nowMs })
}

/** The trade of a taker with all that it met. */
export const openTrade = (
  venue: Venue,
  taker: Order,
  { matches, bucket }: { matches: readonly (Match & { order: Order })[]; bucket: number },
): Trade => {
  const { state } = venue
  const { plan } = taker
  const total: Part = { shares: 0, cash: 0, fee: 0, price: taker.price }
  const makers = matches.map(({ order, shares }) => {
    const price = takerPrice(taker, order)
    total.shares += shares
    total.cash += cashOf(shares, price)
    total.fee += takerFee(venue, taker.conditionId, shares, price)
    const cash = cashOf(shares, order.price)
    const fee = builderFee(venue, order, { role: 'maker', cash })
    return legOf(order, { shares, cash, fee, price: order.price })
  })
  total.fee += builderFee(venue, taker, { role: 'taker', cash: total.cash })
  const id = uuid(state.seed, state.sequence * 1_000 + state.trades.size)
  const trade: Trade = {
    id,
    key: `0x${toHex(hashText(id))}`,
    conditionId: taker.conditionId,
    taker: legOf(taker, total),
    makers,
    bucket,
    matchMs: state.nowMs,
    status: plan.firstStatus,
    hash: '',
    updatedMs: state.nowMs,
    attempt: null,
    attempts: 0,
    minedMs: 0,
    error: null,
    plan,
    versions: [{ atMs: state.nowMs, status: plan.firstStatus, hash: '' }],
  }
  state.trades.set(id, trade)
  for (const leg of [trade.taker, ...makers]) commit(venue, taker.conditionId, leg, 1n)
  for (const { order } of matches) order.trades.push(id)
  taker.trades.push(id)
  venue.events.push({ kind: 'trade', trade: { ...trade }, atMs: state.nowMs })
  recordPrint(venue, taker, makers, trade)
  return trade
}

const isSettled = (status: TradeStatus): boolean => status === 'CONFIRMED' || status === 'FAILED'

const isCommitted = (status: TradeStatus): boolean => status !== 'MINED' && !isSettled(status)

export const isOpenTrade = ({ status }: Trade): boolean => !isSettled(status)

const recordActivity = (venue: Venue, trade: Trade): void => {
  for (const leg of [trade.taker, ...trade.makers])
    addActivity(venue, {
      type: 'TRADE',
      wallet: leg.wallet,
      conditionId: trade.conditionId,
      outcome: leg.outcome,
      side: leg.side,
      shares: leg.shares,
      cash: leg.cash,
      fee: leg.fee,
      atMs: venue.state.nowMs,
      hash: trade.hash,
      role: leg === trade.taker ? 'taker' : 'maker',
    })
}

const fillPayload = (trade: Trade, leg: Leg): Record<string, unknown> => ({
  trade_id: trade.id,
  order_id: leg.orderId,
  market: trade.conditionId,
  asset_id: marketOf(trade.conditionId).tokens[leg.outcome],
  side: leg.side,
  outcome: marketOf(trade.conditionId).outcomes[leg.outcome],
  transaction_hash: trade.hash,
})

export type TradeChange = { status: TradeStatus; hash?: string; error?: string; attempt?: Trade['attempt'] }

/**
 * Moves a trade on; what was committed is free again when the chain has it, or never will, and committed again when its
 * block was removed.
 */
export const changeTrade = (venue: Venue, id: string, change: TradeChange): void => {
  const { state } = venue
  const trade = state.trades.get(id)
  if (!trade || isSettled(trade.status)) return
  const wasCommitted = isCommitted(trade.status)
  const { status, hash = trade.hash, error } = change
  if (change.attempt !== undefined) {
    trade.attempt = change.attempt
    if (change.attempt) trade.attempts += 1
  }
  const isNews = status !== trade.status || hash !== trade.hash
  trade.status = status
  trade.hash = hash
  trade.updatedMs = state.nowMs
  if (error !== undefined) trade.error = error
  if (status === 'MINED') trade.minedMs = state.nowMs
  if (wasCommitted !== isCommitted(status))
    for (const leg of [trade.taker, ...trade.makers])
      commit(venue, trade.conditionId, leg, wasCommitted ? -1n : 1n)
  if (status === 'CONFIRMED' && trade.plan.isPhantom && trade.taker.side === 'BUY')
    accountOf(venue, trade.taker.wallet).phantomCash += BigInt(trade.taker.cash)
  if (status === 'CONFIRMED') {
    recordActivity(venue, trade)
    for (const leg of [trade.taker, ...trade.makers])
      if (leg.user !== '') notify(venue, leg.user, { type: 2, payload: fillPayload(trade, leg) })
  }
  if (isSettled(status)) {
    trade.attempt = null
    for (const leg of [trade.taker, ...trade.makers]) leg.signed = { ...leg.signed, signature: '0x' }
  }
  if (!isNews) return
  addVersion(trade.versions, { atMs: state.nowMs, status, hash })
  venue.events.push({ kind: 'trade', trade: { ...trade }, atMs: state.nowMs })
}
