import { triggersAbove } from './checks.ts'
import { priceText, rateText, sizeText, unitsText } from './decimal.ts'
import { marketNamed } from './markets.ts'
import type { Fill, Funding, Order, State, Trade } from './state.ts'
import { marketFor } from './venue.ts'

export type Json = unknown

const sideOf = ({ buy }: { buy: boolean }) => (buy ? 'B' : 'A')

const trimmed = (text: string): string => text.replace(/\.0$/, '')

const orderType = ({ trigger, tif }: Order): string => {
  if (trigger)
    return `${trigger.tpsl === 'tp' ? 'Take Profit' : 'Stop'} ${trigger.market ? 'Market' : 'Limit'}`
  return tif === 'FrontendMarket' || tif === 'LiquidationMarket' ? 'Market' : 'Limit'
}

const condition = (order: Order): string =>
  order.trigger
    ? `Price ${triggersAbove(order) ? 'above' : 'below'} ${trimmed(priceText(order.trigger.price))}`
    : 'N/A'

export const frontendOrder = (state: State, order: Order): Record<string, Json> => {
  const { sizeDecimals, coin } = marketFor(order.asset)
  const children = order.children
    .map((oid) => state.orders.get(oid))
    .filter((child) => child !== undefined)
    .filter(({ phase }) => phase === 'waiting')
  return {
    coin,
    side: sideOf({ buy: order.buy }),
    limitPx: priceText(order.price),
    sz: sizeText(order.left, sizeDecimals),
    oid: order.oid,
    timestamp: order.placedMs,
    triggerCondition: order.status === 'triggered' ? 'Triggered' : condition(order),
    isTrigger: order.trigger !== null,
    triggerPx: order.trigger ? priceText(order.trigger.price) : '0.0',
    children: children.map((child) => frontendOrder(state, child)),
    isPositionTpsl: order.positionTpsl,
    reduceOnly: order.reduceOnly,
    orderType: orderType(order),
    origSz: sizeText(order.size, sizeDecimals),
    tif: order.tif,
    cloid: order.cloid,
  }
}

export const openOrder = (order: Order): Record<string, Json> => {
  const { sizeDecimals, coin } = marketFor(order.asset)
  return {
    coin,
    side: sideOf({ buy: order.buy }),
    limitPx: priceText(order.price),
    sz: sizeText(order.left, sizeDecimals),
    oid: order.oid,
    timestamp: order.placedMs,
    origSz: sizeText(order.size, sizeDecimals),
    ...(order.cloid ? { cloid: order.cloid } : {}),
    ...(order.reduceOnly ? { reduceOnly: true } : {}),
  }
}

export const fillView = (fill: Fill): Record<string, Json> => {
  const { sizeDecimals } = marketFor(fill.asset)
  return {
    coin: fill.coin,
    px: priceText(fill.price),
    sz: sizeText(fill.size, sizeDecimals),
    side: sideOf({ buy: fill.buy }),
    time: fill.timeMs,
    startPosition: fill.startPosition,
    dir: fill.dir,
    closedPnl: unitsText(fill.closedPnl),
    hash: fill.hash,
    oid: fill.oid,
    crossed: fill.crossed,
    fee: unitsText(fill.fee),
    ...(fill.builderFee > 0n ? { builderFee: unitsText(fill.builderFee) } : {}),
    tid: fill.tid,
    feeToken: fill.feeToken,
    twapId: fill.twapId ?? null,
    ...(fill.cloid ? { cloid: fill.cloid } : {}),
    ...(fill.liquidation
      ? {
          liquidation: {
            liquidatedUser: fill.liquidation.liquidatedUser,
            markPx: priceText(fill.liquidation.markPrice),
            method: fill.liquidation.method,
          },
        }
      : {}),
  }
}

export const fundingView = ({ timeMs, asset, usd, size, rate }: Funding): Record<string, Json> => {
  const { coin, sizeDecimals } = marketFor(asset)
  return {
    time: timeMs,
    coin,
    usdc: unitsText(usd),
    szi: sizeText(size, sizeDecimals),
    fundingRate: rateText(rate),
    nSamples: null,
  }
}

export const tradeView = ({
  coin,
  buy,
  price,
  size,
  timeMs,
  hash,
  tid,
  users,
}: Trade): Record<string, Json> => {
  const market = marketNamed(coin)
  return {
    coin,
    side: sideOf({ buy }),
    px: priceText(price),
    sz: sizeText(size, market?.sizeDecimals ?? 0),
    time: timeMs,
    hash,
    tid,
    users,
  }
}
