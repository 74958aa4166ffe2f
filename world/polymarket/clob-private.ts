import { randomUUID } from 'node:crypto'
import { deriveKey, requireL1, requireL2 } from './auth.ts'
import { tier } from './buckets.ts'
import { isInScope, openOrdersOf, type Scope, scopeOf } from './cancel.ts'
import type { Address } from './chain/chain-terms.ts'
import { safeOf, walletOf } from './chain/ids.ts'
import type { AssetType } from './chain-port.ts'
import type { OrderDeps } from './clob-orders.ts'
import { orderView, pageOf, tradeView, versionAt } from './clob-views.ts'
import { HttpError, listOf, ok, type Reply, type Request, type Route, route } from './http.ts'
import type { ApiKey, Order, Trade } from './state.ts'
import { accountOf } from './venue.ts'

const pageSize = 100
const keysMax = 30_000

const keyView = ({ key, secret, passphrase }: ApiKey) => ({ apiKey: key, secret, passphrase })

const keyRoutes = ({ engine }: OrderDeps): Route[] => {
  const { state } = engine.venue
  const l1 = (request: Request) => {
    const { address, nonce } = requireL1(request, state.nowMs)
    return deriveKey(state, address, nonce)
  }
  return [
    route('POST /auth/api-key', (request) => {
      const key = l1(request)
      if (state.keys.has(key.key) || state.keys.size >= keysMax)
        throw new HttpError(400, 'Could not create api key')
      engine.submit({ kind: 'key', key })
      return ok(keyView(key))
    }),
    route('GET /auth/derive-api-key', (request) => {
      const key = state.keys.get(l1(request).key)
      if (!key) throw new HttpError(400, 'Could not derive api key!')
      return ok(keyView(key))
    }),
    route('GET /auth/api-keys', (request) => {
      const { address } = requireL2(request, state)
      return ok({
        apiKeys: [...state.keys.values()].filter((key) => key.address === address).map(({ key }) => key),
      })
    }),
    route('DELETE /auth/api-key', (request) => {
      engine.submit({ kind: 'deleteKey', key: requireL2(request, state).key })
      return ok('OK')
    }),
    route('GET /auth/ban-status/closed-only', (request) => {
      const { address } = requireL2(request, state)
      const wallets = [address, ...walletsOf(address)]
      return ok({ closed_only: wallets.some((wallet) => accountOf(engine.venue, wallet).closedOnly) })
    }),
  ]
}

const walletsOf = (address: string): string[] => [
  walletOf(address as Address).toLowerCase(),
  safeOf(address as Address).toLowerCase(),
]

/** The wallet whose balance is meant: by the kind of signature, since a request names none. */
const funderOf = (deps: OrderDeps, key: ApiKey, { query }: Request): Address => {
  const type = query.get('signature_type') ?? '0'
  const [deposit, safe] = walletsOf(key.address)
  const wallet = type === '3' ? deposit : type === '2' || type === '1' ? safe : key.address
  return (wallet ?? key.address) as Address
}

const assetOf = ({ query }: Request): { asset: AssetType; token: string } => {
  const asset = query.get('asset_type')
  const token = query.get('token_id') ?? ''
  if (asset === 'COLLATERAL') return { asset, token: '' }
  if (asset !== 'CONDITIONAL' && asset !== 'CONDITIONAL-V2') throw new HttpError(400, 'Invalid asset type')
  if (!/^[0-9]{1,78}$/.test(token)) throw new HttpError(400, 'Invalid token id')
  return { asset, token }
}

const balanceRoutes = (deps: OrderDeps): Route[] => {
  const { engine, funds } = deps
  const read = async (request: Request, how: 'read' | 'update'): Promise<Reply> => {
    const key = requireL2(request, engine.venue.state)
    const { asset, token } = assetOf(request)
    const { balance, allowances } = await funds[how](funderOf(deps, key, request), asset, token)
    return ok({
      balance: String(balance),
      allowances: Object.fromEntries(
        Object.entries(allowances).map(([spender, amount]) => [spender, String(amount)]),
      ),
    })
  }
  return [
    route('GET /balance-allowance', (request) => read(request, 'read')),
    route('GET /balance-allowance/update', (request) => read(request, 'update')),
  ]
}

const readRoutes = ({ engine, realism }: OrderDeps): Route[] => {
  const { venue } = engine
  const { state } = venue
  const visible = (order: Order, atMs: number) => {
    const version = versionAt(order.versions, { atMs, bornMs: order.createdMs })
    return version && { order, version }
  }
  const openRows = (key: ApiKey, request: Request) => {
    const atMs = state.nowMs - realism.lagMs('ordersLag')
    const id = request.query.get('id')
    const known = id === null ? undefined : state.orders.get(id)
    // An id finds the order whatever became of it.
    const orders =
      id === null
        ? ordersWithLag(venue, key, scopeOf(request.query.get('market'), request.query.get('asset_id')), atMs)
        : known?.user === key.address
          ? [known]
          : []
    return orders.flatMap((order) => {
      const row = visible(order, atMs)
      return row ? [orderView(row.order, row.version)] : []
    })
  }
  return [
    route('GET /data/orders', (request) => {
      const rows = openRows(requireL2(request, state), request)
      return ok(pageOf(rows, request.query.get('next_cursor'), pageSize))
    }),
    route('GET /data/order/:id', (request, [id = '']) => {
      const key = requireL2(request, state)
      if (!/^0x[0-9a-fA-F]{64}$/.test(id)) throw new HttpError(400, 'Invalid orderID')
      const order = state.orders.get(id)
      const row =
        order?.user === key.address ? visible(order, state.nowMs - realism.lagMs('ordersLag')) : undefined
      if (!row) throw new HttpError(404, 'Order not found')
      return ok(orderView(row.order, row.version))
    }),
    route('GET /data/trades', (request) => {
      const key = requireL2(request, state)
      const rows = tradeRows(venue, key, request, state.nowMs - realism.lagMs('tradesLag'))
      return ok(pageOf(rows, request.query.get('next_cursor'), pageSize))
    }),
  ]
}

/** A lagging list still shows an order that has ended, and not yet one that has begun. */
const ordersWithLag = (
  venue: OrderDeps['engine']['venue'],
  key: ApiKey,
  scope: Scope,
  atMs: number,
): Order[] => {
  if (atMs >= venue.state.nowMs) return openOrdersOf(venue, key.address, scope)
  return [...venue.state.orders.values()].filter((order) => {
    const status = versionAt(order.versions, { atMs, bornMs: order.createdMs })?.status
    const isOpen = status === 'LIVE' || status === 'DELAYED'
    return order.user === key.address && isOpen && isInScope(order, scope)
  })
}

const tradeRows = (venue: OrderDeps['engine']['venue'], key: ApiKey, { query }: Request, atMs: number) => {
  const { state } = venue
  const [id, market, token, maker] = ['id', 'market', 'asset_id', 'maker_address'].map((name) =>
    query.get(name),
  )
  const before = Number(query.get('before') ?? Number.POSITIVE_INFINITY)
  const after = Number(query.get('after') ?? 0)
  const isWanted = (trade: Trade): boolean => {
    const legs = [trade.taker, ...trade.makers]
    const seconds = trade.matchMs / 1_000
    return (
      legs.some(({ user }) => user === key.address) &&
      (!market || trade.conditionId.toLowerCase() === market.toLowerCase()) &&
      (!token || legs.some(({ user, signed }) => user === key.address && signed.tokenId === token)) &&
      (!maker || legs.some(({ wallet }) => wallet === maker.toLowerCase())) &&
      seconds < before &&
      seconds >= after
    )
  }
  const known = id ? state.trades.get(id) : undefined
  const trades = id ? (known ? [known] : []) : [...state.trades.values()].reverse()
  return trades.filter(isWanted).flatMap((trade) => {
    const version = versionAt(trade.versions, { atMs, bornMs: trade.matchMs })
    return version ? [tradeView(trade, version, key.address)] : []
  })
}

const otherRoutes = ({ engine }: OrderDeps): Route[] => {
  const { state } = engine.venue
  const beat = (request: Request): Reply => {
    const { address } = requireL2(request, state)
    const given = (request.body as { heartbeat_id?: unknown } | null)?.heartbeat_id
    const result = engine.submit({
      kind: 'heartbeat',
      user: address,
      given: typeof given === 'string' ? given : '',
      next: randomUUID(),
    }) as { error: string; id: string }
    if (result.error !== '')
      return { status: 400, body: { heartbeat_id: result.id, error_msg: result.error } }
    return ok({ heartbeat_id: result.id, error_msg: '' })
  }
  return [
    route('POST /v1/heartbeats', beat),
    route('GET /notifications', (request) => {
      const key = requireL2(request, state)
      const list = state.notifications.get(key.address) ?? []
      return ok(
        list.map(({ id, type, payload, atMs }) => ({
          id,
          owner: key.key,
          payload,
          timestamp: Math.floor(atMs / 1_000),
          type,
        })),
      )
    }),
    route('DELETE /notifications', (request) => {
      const { address } = requireL2(request, state)
      engine.submit({
        kind: 'dropNotifications',
        user: address,
        ids: listOf(request.query, 'ids').map(Number),
      })
      return ok('OK')
    }),
    route('GET /v1/user/rate-limit-tier', (request) => {
      requireL2(request, state)
      return ok({ tier })
    }),
  ]
}

export const privateRoutes = (deps: OrderDeps): Route[] => [
  ...keyRoutes(deps),
  ...balanceRoutes(deps),
  ...readRoutes(deps),
  ...otherRoutes(deps),
]
