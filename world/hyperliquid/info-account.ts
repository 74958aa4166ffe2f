import { agentsOf } from './agents.ts'
import { maximum, minimum, priceText, sizeText, unitsText } from './decimal.ts'
import { rates } from './fees.ts'
import {
  availableMargin,
  type CrossSummary,
  crossSummary,
  isolatedValue,
  leverageOf,
  liquidationPrice,
  marginUsed,
  positionValue,
  withdrawable,
} from './margin.ts'
import { type Perp, perpOf, tokens, usdc } from './markets.ts'
import { entryPrice, unrealized } from './positions.ts'
import type { Account, Leverage, Position } from './state.ts'
import { subAccountsOf } from './sub-accounts.ts'
import { isUnified, unifiedUsd } from './unified.ts'
import { newAccount, stateOf, type Venue } from './venue.ts'
import type { Json } from './views.ts'

const marks = (venue: Venue) => (asset: number) => stateOf(venue, asset).mark

/** An unknown address is shown as an empty account, never as an error. */
export const accountOrEmpty = (venue: Venue, address: string): Account =>
  venue.state.accounts.get(address) ?? newAccount(address, venue.state.nowMs)

const leverageView = ({ cross, value }: Leverage, raw: bigint): Json =>
  cross ? { type: 'cross', value } : { type: 'isolated', value, rawUsd: unitsText(raw) }

const returnOnEquity = (pnl: bigint, cost: bigint, leverage: number): string =>
  cost === 0n ? '0.0' : unitsText((pnl * BigInt(leverage) * 100_000_000n) / cost)

const positionView = (venue: Venue, account: Account, position: Position): Json => {
  const market = perpOf(position.asset)
  const mark = stateOf(venue, position.asset).mark
  const pnl = unrealized(position, mark, market.sizeDecimals)
  const liquidation = liquidationPrice(account, position, marks(venue))
  const { allTime, sinceOpen, sinceChange } = position.funding
  return {
    type: 'oneWay',
    position: {
      coin: market.coin,
      szi: sizeText(position.size, market.sizeDecimals),
      leverage: leverageView(position.leverage, position.raw),
      entryPx: unitsText(entryPrice(position, market.sizeDecimals)),
      positionValue: unitsText(positionValue(position, mark)),
      unrealizedPnl: unitsText(pnl),
      returnOnEquity: returnOnEquity(pnl, position.cost, position.leverage.value),
      liquidationPx: liquidation === undefined ? null : priceText(liquidation),
      marginUsed: unitsText(maximum(0n, marginUsed(position, mark))),
      maxLeverage: market.maxLeverage,
      cumFunding: {
        allTime: unitsText(allTime),
        sinceOpen: unitsText(sinceOpen),
        sinceChange: unitsText(sinceChange),
      },
    },
  }
}

const summary = (value: bigint, notional: bigint, raw: bigint, used: bigint): Json => ({
  accountValue: unitsText(maximum(0n, value)),
  totalNtlPos: unitsText(notional),
  totalRawUsd: unitsText(raw),
  totalMarginUsed: unitsText(maximum(0n, used)),
})

/** The figures describe the positions; the balance of such an account is in the spot state. */
const unifiedSummary = ({ notional, initial }: CrossSummary, signed: bigint): Json =>
  summary(initial, notional, initial - signed, initial)

export const clearinghouseState = (venue: Venue, address: string): Json => {
  const account = accountOrEmpty(venue, address)
  const cross = crossSummary(account, marks(venue))
  let { value, notional, initial: used } = cross
  let raw = account.raw
  for (const position of account.positions.values()) {
    if (position.leverage.cross) continue
    const mark = stateOf(venue, position.asset).mark
    value += isolatedValue(position, mark)
    notional += positionValue(position, mark)
    used += isolatedValue(position, mark)
    raw += position.raw
  }
  const unified = isUnified(account)
  const all = { value, notional, initial: used, maintenance: 0n }
  return {
    marginSummary: unified ? unifiedSummary(all, value - raw) : summary(value, notional, raw, used),
    crossMarginSummary: unified
      ? unifiedSummary(cross, cross.value - account.raw)
      : summary(cross.value, cross.notional, account.raw, cross.initial),
    crossMaintenanceMarginUsed: unitsText(cross.maintenance),
    withdrawable: unitsText(unified ? 0n : withdrawable(account, marks(venue))),
    assetPositions: [...account.positions.values()]
      .sort((a, b) => a.asset - b.asset)
      .map((position) => positionView(venue, account, position)),
    time: venue.state.nowMs,
  }
}

export const spotClearinghouseState = (venue: Venue, address: string): Json => {
  const account = accountOrEmpty(venue, address)
  if (!isUnified(account)) return { balances: balancesOf(account) }
  const { total, hold, spotHold } = unifiedUsd(venue, account)
  const dollars = {
    coin: 'USDC',
    token: usdc.index,
    total: unitsText(total),
    hold: unitsText(hold),
    entryNtl: '0.0',
    spotHold: unitsText(spotHold),
  }
  const tokens = balancesOf(account).filter(({ token }) => token !== usdc.index)
  return {
    ...(account.abstraction === 'portfolioMargin' ? { portfolioMarginEnabled: true } : {}),
    balances: total > 0n ? [dollars, ...tokens] : tokens,
  }
}

const balancesOf = (account: Account) =>
  [...account.spot]
    .filter(([, { total }]) => total > 0n)
    .sort(([a], [b]) => a - b)
    .map(([token, { total, hold, entry }]) => ({
      coin: tokens[token]?.name,
      token,
      total: unitsText(total),
      hold: unitsText(maximum(0n, hold)),
      entryNtl: unitsText(token === 0 ? 0n : maximum(0n, entry)),
    }))

/** The size that can be bought and sold now, at the mark and with the account's leverage. */
export const activeAssetData = (venue: Venue, address: string, market: Perp): Json => {
  const account = accountOrEmpty(venue, address)
  const { mark } = stateOf(venue, market.asset)
  const leverage = leverageOf(account, market)
  const position = account.positions.get(market.asset)
  const free = maximum(0n, availableMargin(account, marks(venue)))
  const freed = position ? maximum(0n, marginUsed(position, mark)) * 2n : 0n
  const funds = [
    free + (position && position.size < 0 ? freed : 0n),
    free + (position && position.size > 0 ? freed : 0n),
  ]
  const unit = BigInt(mark)
  const sizes = funds.map((units) => {
    const lots = (units * BigInt(leverage.value) * 10n ** BigInt(market.sizeDecimals)) / unit
    return unitsText(lots, market.sizeDecimals)
  })
  return {
    user: address,
    coin: market.coin,
    leverage: leverageView(leverage, position?.raw ?? 0n),
    maxTradeSzs: sizes,
    availableToTrade: funds.map((units) => unitsText(units)),
    markPx: priceText(mark),
  }
}

export const abstractionOf = (venue: Venue, address: string): Json => {
  const { abstraction, dexAbstraction } = accountOrEmpty(venue, address)
  return abstraction === 'default' && dexAbstraction ? 'dexAbstraction' : abstraction
}

export const subAccounts = (venue: Venue, master: string): Json => {
  const list = subAccountsOf(venue, master).map(({ name, address }) => ({
    name,
    subAccountUser: address,
    master,
    clearinghouseState: clearinghouseState(venue, address),
    spotState: spotClearinghouseState(venue, address),
  }))
  return list.length === 0 ? null : list
}

const rateText = (millionths: bigint): string => unitsText(millionths, 6)

export const userFees = (venue: Venue, address: string): Json => {
  const account = accountOrEmpty(venue, address)
  const day = new Date(venue.state.nowMs).toISOString().slice(0, 10)
  const traded = ({ crossed }: { crossed: boolean }) =>
    account.fills
      .filter((fill) => fill.crossed === crossed && new Date(fill.timeMs).toISOString().startsWith(day))
      .reduce((sum, { price, size }) => sum + (price / 1e8) * size, 0)
  const schedule = {
    cross: rateText(rates.perp.taker),
    add: rateText(rates.perp.maker),
    spotCross: rateText(rates.spot.taker),
    spotAdd: rateText(rates.spot.maker),
  }
  return {
    dailyUserVlm: [
      {
        date: day,
        userCross: traded({ crossed: true }).toFixed(2),
        userAdd: traded({ crossed: false }).toFixed(2),
        exchange: '0.0',
      },
    ],
    feeSchedule: {
      ...schedule,
      tiers: {
        vip: [
          { ntlCutoff: '5000000.0', cross: '0.0004', add: '0.00012', spotCross: '0.0006', spotAdd: '0.0003' },
        ],
        mm: [{ makerFractionCutoff: '0.005', add: '-0.00001' }],
      },
      referralDiscount: '0.04',
      stakingDiscountTiers: [{ bpsOfMaxSupply: '0.0', discount: '0.0' }],
    },
    userCrossRate: schedule.cross,
    userAddRate: schedule.add,
    userSpotCrossRate: schedule.spotCross,
    userSpotAddRate: schedule.spotAdd,
    activeReferralDiscount: '0.0',
    trial: null,
    feeTrialEscrow: '0.0',
    nextTrialAvailableTimestamp: null,
    stakingLink: null,
    activeStakingDiscount: { bpsOfMaxSupply: '0.0', discount: '0.0' },
  }
}

/** The allowance of a new address. */
export const initialRequests = 10_000

export const userRateLimit = (venue: Venue, address: string): Json => {
  const { volume, requests, reserved } = accountOrEmpty(venue, address)
  return {
    cumVlm: unitsText(volume),
    nRequestsUsed: requests,
    nRequestsCap: initialRequests + Number(volume / 100_000_000n),
    nRequestsSurplus: reserved,
  }
}

export const userRole = (venue: Venue, address: string): Json => {
  const agent = venue.state.agents.get(address)
  if (agent && (agent.validUntilMs === null || agent.validUntilMs > venue.state.nowMs))
    return { role: 'agent', data: { user: agent.user } }
  const master = venue.state.accounts.get(address)?.master
  if (master !== undefined) return { role: 'subAccount', data: { master } }
  return { role: venue.state.accounts.has(address) ? 'user' : 'missing' }
}

/** Unnamed agents are not listed, as upstream. */
export const extraAgents = (venue: Venue, address: string): Json =>
  agentsOf(venue.state, address)
    .filter(([, { name, validUntilMs }]) => name !== '' && (validUntilMs ?? Infinity) > venue.state.nowMs)
    .map(([agent, { name, validUntilMs }]) => ({ name, address: agent, validUntil: validUntilMs }))

const accountValue = (venue: Venue, account: Account): bigint => {
  let value = crossSummary(account, marks(venue)).value
  for (const position of account.positions.values())
    if (!position.leverage.cross) value += isolatedValue(position, stateOf(venue, position.asset).mark)
  return maximum(0n, value)
}

export const portfolio = (venue: Venue, address: string): Json => {
  const account = accountOrEmpty(venue, address)
  const { nowMs } = venue.state
  const value = unitsText(accountValue(venue, account))
  const vlm = unitsText(account.volume)
  const from = minimum(BigInt(account.createdMs), BigInt(nowMs))
  const data = {
    accountValueHistory: [
      [Number(from), '0.0'],
      [nowMs, value],
    ],
    pnlHistory: [
      [Number(from), '0.0'],
      [nowMs, '0.0'],
    ],
    vlm,
  }
  return ['day', 'week', 'month', 'allTime', 'perpDay', 'perpWeek', 'perpMonth', 'perpAllTime'].map(
    (period) => [period, data],
  )
}
