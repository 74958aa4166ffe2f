import { one, unitsText } from './decimal.ts'
import { crossSummary, isolatedValue, maintenanceMargin, positionValue } from './margin.ts'
import { perpOf, perps } from './markets.ts'
import { cancelAll } from './modify.ts'
import { reduceOthers } from './order-lifecycle.ts'
import { matchOrder, registerOrder } from './place-order.ts'
import { applyTrade, unrealized } from './positions.ts'
import type { Account, Fill, Order, Position } from './state.ts'
import { accountOf, backstopAddress, recordLedger, stateOf, type Venue } from './venue.ts'

const largeUsd = 100_000n * BigInt(one)
const cooldownMs = 30_000

const marks = (venue: Venue) => (asset: number) => stateOf(venue, asset).mark

type MarginStatus = { value: bigint; maintenance: bigint; positions: Position[] }

const crossMarginStatus = (venue: Venue, account: Account): MarginStatus => {
  const { value, maintenance } = crossSummary(account, marks(venue))
  return {
    value,
    maintenance,
    positions: [...account.positions.values()].filter(({ leverage }) => leverage.cross),
  }
}

const isolatedMarginStatus = (venue: Venue, position: Position): MarginStatus => {
  const mark = stateOf(venue, position.asset).mark
  const maintenance = maintenanceMargin(positionValue(position, mark), perpOf(position.asset).tiers)
  return { value: isolatedValue(position, mark), maintenance, positions: [position] }
}

/** Limit price inside every plausible book; nothing further is taken. */
const worstPrice = (mark: number, { buy }: { buy: boolean }): number =>
  Math.max(1, Math.round(mark * (buy ? 1.1 : 0.9)))

const closingOrder = (venue: Venue, account: Account, position: Position, lots: number): Order => ({
  oid: 0,
  user: account.address,
  asset: position.asset,
  buy: position.size < 0,
  price: worstPrice(stateOf(venue, position.asset).mark, { buy: position.size < 0 }),
  size: lots,
  left: lots,
  tif: 'LiquidationMarket',
  reduceOnly: true,
  trigger: null,
  positionTpsl: false,
  cloid: null,
  placedMs: venue.state.nowMs,
  status: 'open',
  statusMs: venue.state.nowMs,
  phase: 'waiting',
  parent: null,
  children: [],
  sibling: null,
  builder: null,
  spent: 0n,
})

const liquidateInBook = (venue: Venue, account: Account, position: Position, lots: number): void => {
  const { mark } = stateOf(venue, position.asset)
  const order = closingOrder(venue, account, position, lots)
  registerOrder(venue, account, order)
  matchOrder(venue, order, { liquidatedUser: account.address, markPrice: mark, method: 'market' })
}

const recordLiquidation = (
  venue: Venue,
  account: Account,
  marginStatus: MarginStatus,
  { isolated }: { isolated: boolean },
): void => {
  const value = marginStatus.positions.reduce(
    (sum, position) => sum + positionValue(position, stateOf(venue, position.asset).mark),
    0n,
  )
  recordLedger(venue, account, {
    type: 'liquidation',
    liquidatedNtlPos: unitsText(value),
    accountValue: unitsText(marginStatus.value < 0n ? 0n : marginStatus.value),
    leverageType: isolated ? 'Isolated' : 'Cross',
    liquidatedPositions: marginStatus.positions.map(({ asset, size }) => ({
      coin: perpOf(asset).coin,
      szi: unitsText(BigInt(size), perpOf(asset).sizeDecimals),
    })),
  })
  venue.events.push({
    kind: 'liquidation',
    user: account.address,
    liquidator: backstopAddress,
    notional: value,
    value: marginStatus.value,
  })
}

/** A fill without a book: the venue settles the position itself, in whole or in part. */
const recordTakeover = (
  venue: Venue,
  account: Account,
  position: Position,
  { price, lots, dir }: { price: number; lots: number; dir: string },
): void => {
  if (account.isMarketMaker) return
  const market = perpOf(position.asset)
  const order = closingOrder(venue, account, position, lots)
  registerOrder(venue, account, order)
  const isWholePosition = { ...position, size: Math.sign(position.size) * lots }
  isWholePosition.cost = (position.cost * BigInt(lots)) / BigInt(Math.abs(position.size))
  const fill: Fill = {
    user: account.address,
    coin: market.coin,
    asset: market.asset,
    price,
    size: lots,
    buy: order.buy,
    timeMs: venue.state.nowMs,
    startPosition: unitsText(BigInt(position.size), market.sizeDecimals),
    dir,
    closedPnl: unrealized(isWholePosition, price, market.sizeDecimals),
    hash: venue.hash,
    oid: order.oid,
    crossed: true,
    fee: 0n,
    builderFee: 0n,
    feeToken: 'USDC',
    tid: venue.state.nextTid,
    cloid: null,
    liquidation: { liquidatedUser: account.address, markPrice: price, method: 'backstop' },
  }
  venue.state.nextTid += 1
  order.left = 0
  order.phase = 'done'
  order.status = 'filled'
  account.fills.push(fill)
  venue.events.push({ kind: 'fill', user: account.address, fill })
}

const takeoverDirection = ({ leverage, size }: Position): string =>
  `Liquidated ${leverage.cross ? 'Cross' : 'Isolated'} ${size > 0 ? 'Long' : 'Short'}`

/** Settles a position against the other account at one price, without fees. */
const transferPosition = (
  venue: Venue,
  from: Account,
  to: Account,
  { position, price, lots }: { position: Position; price: number; lots: number },
): void => {
  const market = perpOf(position.asset)
  const signed = position.size > 0 ? -lots : lots
  applyTrade(from, market, signed, price)
  applyTrade(to, market, -signed, price)
  reduceOthers(venue, market, [from, to])
}

/** The backstop takes over the positions and their margin. */
const transferToBackstop = (
  venue: Venue,
  account: Account,
  positions: readonly Position[],
  { isolated }: { isolated: boolean },
): void => {
  const backstop = accountOf(venue, backstopAddress)
  const cashBefore = account.raw
  for (const position of positions) {
    const { mark } = stateOf(venue, position.asset)
    const lots = Math.abs(position.size)
    recordTakeover(venue, account, position, { price: mark, lots, dir: takeoverDirection(position) })
    transferPosition(venue, account, backstop, { position, price: mark, lots })
  }
  const rest = isolated ? account.raw - cashBefore : account.raw
  account.raw -= rest
  backstop.raw += rest
}

/**
 * Auto-deleveraging: the most profitable account on the other side, by return on equity, gives up its position at the
 * price before the move.
 */
const deleverage = (venue: Venue, account: Account, position: Position): void => {
  const market = perpOf(position.asset)
  const { previousOracle, mark } = stateOf(venue, position.asset)
  const winners = [...venue.state.accounts.values()]
    .flatMap((winner) => {
      const counterparty = winner.positions.get(position.asset)
      if (!counterparty || winner === account || Math.sign(counterparty.size) === Math.sign(position.size))
        return []
      return [
        {
          winner,
          counterparty,
          gain: Number(unrealized(counterparty, mark, market.sizeDecimals)) / Number(counterparty.cost),
        },
      ]
    })
    .sort((a, b) => b.gain - a.gain)
  for (const { winner, counterparty } of winners) {
    const open = account.positions.get(position.asset)
    if (!open) return
    const lots = Math.min(Math.abs(open.size), Math.abs(counterparty.size))
    const closedLots = { price: previousOracle, lots, dir: 'Auto-Deleveraging' }
    recordTakeover(venue, account, open, closedLots)
    recordTakeover(venue, winner, counterparty, closedLots)
    transferPosition(venue, account, winner, { position: open, price: previousOracle, lots })
  }
}

const partialLots = (position: Position): number => Math.max(1, Math.floor(Math.abs(position.size) / 5))

/** First into the book: a fifth of a large position, or all of it within half a minute of the last attempt. */
const liquidatePositions = (
  venue: Venue,
  account: Account,
  positions: readonly Position[],
  readStatus: () => MarginStatus,
): void => {
  const { nowMs } = venue.state
  const canLiquidatePartially = nowMs >= account.partialUntilMs
  for (const position of positions) {
    const large = positionValue(position, stateOf(venue, position.asset).mark) > largeUsd
    const part = large && canLiquidatePartially
    if (part) account.partialUntilMs = nowMs + cooldownMs
    liquidateInBook(venue, account, position, part ? partialLots(position) : Math.abs(position.size))
    const { value, maintenance } = readStatus()
    if (value >= maintenance) return
  }
}

/** Then the backstop, below two thirds of the maintenance margin; when it has no funds, auto-deleveraging. */
const liquidateRest = (
  venue: Venue,
  account: Account,
  { isolated }: { isolated: boolean },
  { value, maintenance, positions }: MarginStatus,
): void => {
  if (positions.length === 0 || value * 3n >= maintenance * 2n) return
  const backstop = accountOf(venue, backstopAddress)
  if (value < 0n && crossSummary(backstop, marks(venue)).value + value < 0n)
    for (const position of positions) deleverage(venue, account, position)
  else transferToBackstop(venue, account, positions, { isolated })
}

const liquidateAccount = (
  venue: Venue,
  account: Account,
  { isolated }: { isolated: boolean },
  readStatus: () => MarginStatus,
): void => {
  const marginStatus = readStatus()
  if (marginStatus.positions.length === 0 || marginStatus.value >= marginStatus.maintenance) return
  const cash = account.raw
  const assets = new Set(marginStatus.positions.map(({ asset }) => asset))
  cancelAll(venue, account, 'liquidatedCanceled', ({ asset, reduceOnly }) => !reduceOnly || assets.has(asset))
  recordLiquidation(venue, account, marginStatus, { isolated })
  // Below zero, a sale into the book could only increase the loss of others.
  if (marginStatus.value >= 0n) liquidatePositions(venue, account, marginStatus.positions, readStatus)
  liquidateRest(venue, account, { isolated }, readStatus())
  // An isolated position can lose no more than its own margin.
  if (!isolated || account.raw >= cash) return
  accountOf(venue, backstopAddress).raw -= cash - account.raw
  account.raw = cash
}

/** The backstop covers a shortfall without positions: no account stays below zero. */
const coverShortfall = (venue: Venue, account: Account): void => {
  if (account.raw >= 0n || account.positions.size > 0) return
  accountOf(venue, backstopAddress).raw += account.raw
  account.raw = 0n
}

export const liquidate = (venue: Venue): void => {
  for (const account of venue.state.accounts.values()) {
    if (account.isMarketMaker) continue
    if (account.positions.size > 0) {
      liquidateAccount(venue, account, { isolated: false }, () => crossMarginStatus(venue, account))
      for (const { asset } of perps) {
        const position = account.positions.get(asset)
        if (!position || position.leverage.cross) continue
        liquidateAccount(venue, account, { isolated: true }, () => {
          const open = account.positions.get(asset)
          return open ? isolatedMarginStatus(venue, open) : { value: 0n, maintenance: 0n, positions: [] }
        })
      }
    }
    coverShortfall(venue, account)
  }
}
