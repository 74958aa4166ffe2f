import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Net, NetReply } from '#kernel/net.ts'
import type { Prices } from './prices.ts'
import {
  type Account,
  accountOf,
  type Fill,
  type Funding,
  fillOf,
  fundingOf,
  type LedgerUpdate,
  ledgerUpdateOf,
  type OpenOrder,
  type OrderState,
  orderOf,
  ordersOf,
  type PerpMarket,
  perpsOf,
  plain,
  type SpotMarket,
  spotsOf,
} from './reading.ts'
import { type VenueClock, venueClock } from './venue-clock.ts'
import {
  actionUrgency,
  actionWeight,
  type Budget,
  infoWeight,
  itemsWeight,
  noBudget,
  type Urgency,
} from './weights.ts'
import { type ExchangeReply, exchangeReplyOf, type InfoAnswer, type InfoType, infoOf } from './wire.ts'

export type {
  Account,
  Fill,
  Funding,
  LedgerUpdate,
  OpenOrder,
  OrderState,
  PerpMarket,
  Position,
  SpotMarket,
} from './reading.ts'
export type { Urgency } from './weights.ts'
export type { ExchangeReply, LegStatus } from './wire.ts'

/** `busy` and `unsent`: certainly not done. `doubt`: nobody can say. */
export type Sent = ExchangeReply | { is: 'busy' } | { is: 'unsent' } | { is: 'doubt' }

export type Hyperliquid = {
  /** Prices are as old as `maxAgeMs` at most; what a market is changes rarely and comes with them. */
  perps(maxAgeMs?: number): Promise<{ markets: PerpMarket[]; at: number }>
  spots(maxAgeMs?: number): Promise<{ markets: SpotMarket[]; at: number }>
  mids(): Promise<ReadonlyMap<string, string>>
  account(user: string): Promise<Account>
  /** What the venue's clock shows; the account is asked for it where no answer told it a moment ago. */
  timeMs(user: string): Promise<number>
  spotBalances(user: string): Promise<SpotBalance[]>
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
  /** The oldest first, and at most as many as the venue puts into one answer. */
  fillsSince(user: string, sinceMs: number): Promise<Fill[]>
  fundingSince(user: string, sinceMs: number): Promise<Funding[]>
  agents(user: string): Promise<{ address: string; name: string; validUntilMs: number }[]>
  role(address: string): Promise<string>
  ledgerSince(user: string, sinceMs: number): Promise<LedgerUpdate[]>
  /** One balance for perpetuals and spot, or two. */
  accountMode(user: string): Promise<string>
  send(body: string): Promise<Sent>
  /** The same venue for a caller of another urgency, out of the same budget. */
  at(urgency: Urgency): Hyperliquid
}
export type SpotBalance = { coin: string; total: string; hold: string; entryUsd: string }

type Options = { url: string; net: Net; clock: Clock; budget?: Budget; prices?: Prices; timeoutMs?: number }

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

type Door = 'info' | 'exchange'
type Call = { weight: number; urgency: Urgency }

/** The requests themselves: each one pays before it leaves. */
function doors({ url, net, budget = noBudget, timeoutMs = 5_000 }: Options) {
  async function post(door: Door, body: string, { weight, urgency }: Call): Promise<NetReply> {
    await budget.admit(weight, urgency)
    const reply = await net.fetch({
      ...{ url: `${url}/${door}`, method: 'POST', headers: json, body, timeoutMs, maxBytes },
    })
    if (reply.status === 429) budget.refused(reply.retryAfterMs)
    else budget.answered()
    return reply
  }

  return {
    async info<K extends InfoType>(
      type: K,
      fields: Record<string, unknown>,
      asked: Urgency,
    ): Promise<InfoAnswer<K>> {
      // Whoever asks for an order wants to know what became of something that was sent.
      const urgency = type === 'orderStatus' && asked !== 'background' ? 'exit' : asked
      const call = { weight: infoWeight(type), urgency }
      const { status, body, retryAfterMs } = await post('info', JSON.stringify({ type, ...fields }), call)
      if (status === 422) throw new Fault('upstream_changed', `Hyperliquid knows no ${type} of this form`)
      if (status !== 200)
        throw new Fault('unavailable', `Hyperliquid answered with status ${status}`, {
          ...(retryAfterMs !== undefined && { extras: { retry_after: Math.ceil(retryAfterMs / 1_000) } }),
        })
      const answer = infoOf(type, body)
      budget.add(itemsWeight(type, answer))
      return answer
    },

    async send(body: string): Promise<Sent> {
      const { action } = JSON.parse(body) as { action: Record<string, unknown> }
      const call = { weight: actionWeight(action), urgency: actionUrgency(action) }
      try {
        const { status, body: said } = await post('exchange', body, call)
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

export function hyperliquid(options: Options): Hyperliquid {
  const nowMs = () => options.clock.now().getTime()
  const { info, send } = doors(options)
  const perps = remembered(async () => perpsOf(await info('metaAndAssetCtxs', {}, 'work')), nowMs)
  const spots = remembered(async () => spotsOf(await info('spotMetaAndAssetCtxs', {}, 'work')), nowMs)
  const clock = venueClock(nowMs)
  const { prices: shared } = options
  const known = new Map<Urgency, Hyperliquid>()
  const at = (urgency: Urgency): Hyperliquid => {
    const made = known.get(urgency) ?? {
      ...reads((type, fields = {}) => info(type, fields, urgency), { clock, nowMs, shared }),
      ...{ perps: stamped(perps), spots: stamped(spots), send, at },
    }
    known.set(urgency, made)
    return made
  }
  return at('admission')
}

const stamped =
  <T>(ask: (maxAgeMs: number) => Promise<{ value: T; at: number }>) =>
  async (maxAgeMs = freshMsDefault) => {
    const { value, at } = await ask(maxAgeMs)
    return { markets: value, at }
  }

type Ask = <K extends InfoType>(type: K, fields?: Record<string, unknown>) => Promise<InfoAnswer<K>>

type Memory = { clock: VenueClock; nowMs: () => number; shared: Prices | undefined }

function reads(
  info: Ask,
  { clock, nowMs, shared }: Memory,
): Omit<Hyperliquid, 'perps' | 'spots' | 'send' | 'at'> {
  const account = async (user: string) => {
    const state = accountOf(await info('clearinghouseState', { user }))
    clock.shown(state.timeMs)
    return state
  }
  return {
    account,
    timeMs: async (user) => clock.now() ?? (await account(user)).timeMs,
    async mids() {
      const fresh = shared?.fresh()
      if (fresh) return fresh
      const askedMs = nowMs()
      const said = Object.entries(await info('allMids'))
      const mids = new Map(said.map(([coin, price]) => [coin, plain(price)]))
      shared?.answered(mids, askedMs)
      return mids
    },
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
      return fills.map((fill) => fillOf(fill, user))
    },
    async fundingSince(user, sinceMs) {
      return (await info('userFunding', { user, startTime: Math.max(0, sinceMs) })).map(fundingOf)
    },
    async agents(user) {
      const agents = await info('extraAgents', { user })
      return agents.map(({ address, name, validUntil }) => ({ address, name, validUntilMs: validUntil }))
    },
    role: async (user) => (await info('userRole', { user })).role,
    async ledgerSince(user, sinceMs) {
      const startTime = Math.max(0, sinceMs)
      const updates = await info('userNonFundingLedgerUpdates', { user, startTime })
      return updates.map((update) => ledgerUpdateOf(update, user))
    },
    accountMode: (user) => info('userAbstraction', { user }),
  }
}
