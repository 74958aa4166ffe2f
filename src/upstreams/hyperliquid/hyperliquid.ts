import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Net, NetReply } from '#kernel/net.ts'
import {
  type Account,
  accountOf,
  type Fill,
  type LedgerUpdate,
  type OpenOrder,
  type OrderState,
  orderOf,
  ordersOf,
  type PerpMarket,
  perpsOf,
  plain,
  plainOrNull,
  type SpotMarket,
  spotsOf,
} from './reading.ts'
import { type ExchangeReply, exchangeReplyOf, type InfoAnswer, type InfoType, infoOf } from './wire.ts'

export type {
  Account,
  Fill,
  LedgerUpdate,
  OpenOrder,
  OrderState,
  PerpMarket,
  Position,
  SpotMarket,
} from './reading.ts'
export type { ExchangeReply, LegStatus } from './wire.ts'

/** `busy` and `unsent`: certainly not done. `doubt`: nobody can say. */
export type Sent = ExchangeReply | { is: 'busy' } | { is: 'unsent' } | { is: 'doubt' }

export type Hyperliquid = {
  /** Prices are as old as `maxAgeMs` at most; what a market is changes rarely and comes with them. */
  perps(maxAgeMs?: number): Promise<{ markets: PerpMarket[]; at: number }>
  spots(maxAgeMs?: number): Promise<{ markets: SpotMarket[]; at: number }>
  mids(): Promise<ReadonlyMap<string, string>>
  account(user: string): Promise<Account>
  spotBalances(user: string): Promise<{ coin: string; total: string; hold: string; entryUsd: string }[]>
  /** What the account has set for a market, and the margin that is free on each side of it. */
  standing(
    user: string,
    symbol: string,
  ): Promise<{
    isCross: boolean
    leverage: number
    markPrice: string
    freeUsd: { buy: string; sell: string }
  }>
  openOrders(user: string): Promise<OpenOrder[]>
  /** Undefined where the venue never heard of it. */
  order(user: string, id: number | string): Promise<OrderState | undefined>
  fillsSince(user: string, sinceMs: number): Promise<Fill[]>
  agents(user: string): Promise<{ address: string; name: string; validUntilMs: number }[]>
  role(address: string): Promise<string>
  ledgerSince(user: string, sinceMs: number): Promise<LedgerUpdate[]>
  /** One balance for perpetuals and spot, or two. */
  accountMode(user: string): Promise<string>
  send(body: string): Promise<Sent>
}

type Options = { url: string; net: Net; clock: Clock; timeoutMs?: number }

const maxBytes = 8 * 1024 * 1024
const freshMsDefault = 60_000
const json = { 'content-type': 'application/json', accept: 'application/json' }

/** One answer for all who ask within its age; those of one moment share the request. */
function remembered<T>(ask: () => Promise<T>, nowMs: () => number) {
  let known: { value: T; at: number } | undefined
  let asking: Promise<{ value: T; at: number }> | undefined
  return async (maxAgeMs: number): Promise<{ value: T; at: number }> => {
    if (known && nowMs() - known.at <= maxAgeMs) return known
    asking ??= (async () => {
      const at = nowMs()
      known = { value: await ask(), at }
      return known
    })().finally(() => {
      asking = undefined
    })
    return asking
  }
}

export function hyperliquid({ url, net, clock, timeoutMs = 5_000 }: Options): Hyperliquid {
  const nowMs = () => clock.now().getTime()

  const post = (door: 'info' | 'exchange', body: string): Promise<NetReply> =>
    net.fetch({ url: `${url}/${door}`, method: 'POST', headers: json, body, timeoutMs, maxBytes })

  async function info<K extends InfoType>(
    type: K,
    fields: Record<string, unknown> = {},
  ): Promise<InfoAnswer<K>> {
    const { status, body } = await post('info', JSON.stringify({ type, ...fields }))
    if (status === 200) return infoOf(type, body)
    if (status === 422) throw new Fault('upstream_changed', `Hyperliquid knows no ${type} of this form`)
    throw new Fault('unavailable', `Hyperliquid answered with status ${status}`)
  }

  const perps = remembered(async () => perpsOf(await info('metaAndAssetCtxs')), nowMs)
  const spots = remembered(async () => spotsOf(await info('spotMetaAndAssetCtxs')), nowMs)

  return {
    async perps(maxAgeMs = freshMsDefault) {
      const { value, at } = await perps(maxAgeMs)
      return { markets: value, at }
    },
    async spots(maxAgeMs = freshMsDefault) {
      const { value, at } = await spots(maxAgeMs)
      return { markets: value, at }
    },
    async mids() {
      return new Map(Object.entries(await info('allMids')).map(([coin, price]) => [coin, plain(price)]))
    },
    account: async (user) => accountOf(await info('clearinghouseState', { user })),
    async spotBalances(user) {
      const { balances } = await info('spotClearinghouseState', { user })
      return balances.map(({ coin, total, hold, entryNtl }) => ({
        ...{ coin, total: plain(total), hold: plain(hold), entryUsd: plain(entryNtl) },
      }))
    },
    async standing(user, symbol) {
      const { leverage, availableToTrade, markPx } = await info('activeAssetData', { user, coin: symbol })
      const [buy = '0', sell = '0'] = availableToTrade.map(plain)
      const isCross = leverage.type === 'cross'
      return { isCross, leverage: leverage.value, markPrice: plain(markPx), freeUsd: { buy, sell } }
    },
    openOrders: async (user) => (await info('frontendOpenOrders', { user })).flatMap(ordersOf),
    async order(user, id) {
      const said = await info('orderStatus', { user, oid: id })
      if (said.status === 'unknownOid') return undefined
      const { order, status, statusTimestamp } = said.order
      return { order: orderOf(order, null), status, atMs: statusTimestamp }
    },
    async fillsSince(user, sinceMs) {
      const fills = await info('userFillsByTime', { user, startTime: Math.max(0, sinceMs) })
      return fills.map((fill) => ({
        ...{ symbol: fill.coin, orderId: fill.oid, tradeId: fill.tid, isBuy: fill.side === 'B' },
        ...{ price: plain(fill.px), size: plain(fill.sz), feeUsd: plain(fill.fee), feeToken: fill.feeToken },
        ...{ closedPnlUsd: plain(fill.closedPnl), atMs: fill.time },
      }))
    },
    async agents(user) {
      const agents = await info('extraAgents', { user })
      return agents.map(({ address, name, validUntil }) => ({ address, name, validUntilMs: validUntil }))
    },
    role: async (user) => (await info('userRole', { user })).role,
    async ledgerSince(user, sinceMs) {
      const startTime = Math.max(0, sinceMs)
      const updates = await info('userNonFundingLedgerUpdates', { user, startTime })
      return updates.map(({ time, hash, delta }) => ({
        ...{ type: delta.type, amountUsd: plainOrNull(delta.usdc), feeUsd: plainOrNull(delta.fee) },
        ...{ nonce: delta.nonce ?? null, toPerp: delta.toPerp ?? null, hash, atMs: time },
      }))
    },
    accountMode: (user) => info('userAbstraction', { user }),

    async send(body) {
      try {
        const { status, body: said } = await post('exchange', body)
        if (status === 429) return { is: 'busy' }
        if (status === 422) return { is: 'refused', message: said.slice(0, 200) }
        if (status !== 200) return { is: 'doubt' }
        const reply = exchangeReplyOf(said)
        return reply.is === 'unreadable' ? { is: 'doubt' } : reply
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault
        return fault.code === 'unavailable' ? { is: 'unsent' } : { is: 'doubt' }
      }
    },
  }
}
