import { requireL2 } from './auth.ts'
import type { Buckets } from './buckets.ts'
import { type CancelResult, openOrdersOf, type Scope, scopeOf } from './cancel.ts'
import type { ChainPort } from './chain-port.ts'
import { unitsText } from './decimal.ts'
import type { FundsBook } from './funds.ts'
import { HttpError, type Reply, type Request, type Route, route } from './http.ts'
import type { Engine } from './machine.ts'
import { readOrder, signerMismatch } from './order-input.ts'
import type { OrderResult } from './place-order.ts'
import { drawPlan, type RealismControl } from './realism.ts'
import type { ApiKey } from './state.ts'
import { accountOf, stateOf } from './venue.ts'

export type OrderDeps = {
  engine: Engine
  realism: RealismControl
  funds: FundsBook
  chain: ChainPort
  buckets: Buckets
  /** Sees each matched trade, so that its settlement begins at once. */
  onMatched: () => void
}

const batchMax = 15
const cancelsMax = 1_000

/** Orders and cancels, while the engine restarts or trading is off. */
const requireEngine = ({ engine }: OrderDeps, { isCancel }: { isCancel: boolean }): void => {
  const { name } = engine.venue.state.mode
  if (name === 'restarting') throw new HttpError(425, 'Too Early')
  if (name === 'disabled')
    throw new HttpError(503, 'Trading is currently disabled. Check polymarket.com for updates')
  if (name === 'cancelOnly' && !isCancel)
    throw new HttpError(
      503,
      'Trading is currently cancel-only. New orders are not accepted, but cancels are allowed.',
      { type: 'CANCEL_ONLY' },
    )
}

const requireAccess = ({ realism }: OrderDeps, side: unknown): void => {
  const { geoblock } = realism.current()
  const isBlocked = geoblock === 'blocked' || (geoblock === 'closeOnly' && side === 'BUY')
  if (isBlocked)
    throw new HttpError(
      403,
      'Trading restricted in your region, please refer to available regions - https://docs.polymarket.com/developers/CLOB/geoblock',
    )
}

const place = async (deps: OrderDeps, key: ApiKey, body: unknown): Promise<OrderResult> => {
  const { engine, realism, funds, chain } = deps
  const { eoaMakers, gtdMinMs, versionMismatchRate } = realism.current()
  requireAccess(deps, (body as { order?: { side?: unknown } } | null)?.order?.side)
  if (realism.isHit('versionMismatchRate', versionMismatchRate))
    throw new HttpError(400, 'order_version_mismatch')
  const order = readOrder(body, {
    key,
    plan: (kind) => drawPlan(realism, kind),
    tickOf: (market) => stateOf(engine.venue, market.conditionId).tick,
    eoaMakers,
    // Clients have the machine's clock, also where a test has moved the venue's.
    nowMs: Math.min(engine.nowMs(), Date.now()),
    gtdMinMs,
  })
  const { maker, signatureType } = order.signed
  if (signatureType !== 0 && !(await chain.isDeployed(maker))) throw new HttpError(400, signerMismatch)
  const releases = () => accountOf(engine.venue, order.wallet).releases
  for (;;) {
    const before = releases()
    const read = await funds.ofOrder(order)
    if (releases() === before) return engine.submit({ kind: 'order', order, funds: read }) as OrderResult
  }
}

/** Amounts are decimal text; empty where nothing matched. */
const acceptedView = (engine: Engine, result: Extract<OrderResult, { error: null }>) => ({
  errorMsg: '',
  orderID: result.id,
  takingAmount: result.taking === 0 ? '' : unitsText(result.taking),
  makingAmount: result.making === 0 ? '' : unitsText(result.making),
  status: result.status,
  success: true,
  transactionsHashes: result.trades.flatMap((id) => engine.venue.state.trades.get(id)?.hash || []),
  tradeIDs: result.trades,
})

const rejectedView = (error: string) => ({
  errorMsg: error,
  orderID: '',
  takingAmount: '',
  makingAmount: '',
  status: '',
  success: false,
  transactionsHashes: [],
  tradeIDs: [],
})

const postOnlySeconds = ({ engine }: OrderDeps): number => {
  const { mode, nowMs } = engine.venue.state
  return Math.max(1, Math.ceil((mode.untilMs - nowMs) / 1_000))
}

const replyTo = (deps: OrderDeps, result: OrderResult, headers: Record<string, string>): Reply => {
  if (result.error === null) {
    if (result.trades.length > 0) deps.onMatched()
    return { status: 200, body: acceptedView(deps.engine, result), headers }
  }
  if (!result.isPostOnlyMode) throw new HttpError(result.status, result.error, {}, headers)
  const seconds = postOnlySeconds(deps)
  const more = { code: 'post_only_mode', type: 'POST_ONLY', retry_after_seconds: seconds }
  throw new HttpError(503, result.error, more, { ...headers, 'Retry-After': String(seconds) })
}

const postOrder = async (deps: OrderDeps, request: Request): Promise<Reply> => {
  const key = requireL2(request, deps.engine.venue.state)
  requireEngine(deps, { isCancel: false })
  const headers = deps.buckets.take('orders', key.address, 1)
  return replyTo(deps, await place(deps, key, request.body), headers)
}

const postOrders = async (deps: OrderDeps, request: Request): Promise<Reply> => {
  const key = requireL2(request, deps.engine.venue.state)
  requireEngine(deps, { isCancel: false })
  const { body } = request
  if (!Array.isArray(body) || body.length === 0) throw new HttpError(400, 'Invalid order payload')
  if (body.length > batchMax)
    throw new HttpError(400, `Too many orders in payload: ${body.length}, max allowed: ${batchMax}`)
  const headers = deps.buckets.take('orders', key.address, body.length)
  const replies: unknown[] = []
  for (const each of body) {
    const result = await place(deps, key, each).catch((error: unknown) => {
      if (error instanceof HttpError) return { error: error.message, status: error.status }
      throw error
    })
    if (result.error === null) {
      if (result.trades.length > 0) deps.onMatched()
      replies.push(acceptedView(deps.engine, result))
    } else replies.push(rejectedView(result.error))
  }
  return { status: 200, body: replies, headers }
}

const orderIds = (value: unknown): string[] => {
  if (!Array.isArray(value) || value.some((id) => typeof id !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(id)))
    throw new HttpError(400, 'Invalid orderID')
  if (value.length > cancelsMax)
    throw new HttpError(400, `Too many orders in payload, max allowed: ${cancelsMax}`)
  return value
}

const cancelIds = (deps: OrderDeps, request: Request, ids: string[]): Reply => {
  const key = requireL2(request, deps.engine.venue.state)
  requireEngine(deps, { isCancel: true })
  const headers = deps.buckets.take('cancels', key.address, ids.length)
  return { status: 200, body: deps.engine.submit({ kind: 'cancel', user: key.address, ids }), headers }
}

const cancelAll = (deps: OrderDeps, request: Request, scope: Scope): Reply => {
  const { engine, buckets } = deps
  const key = requireL2(request, engine.venue.state)
  requireEngine(deps, { isCancel: true })
  const count = openOrdersOf(engine.venue, key.address, scope).length
  const headers = buckets.take('cancels', key.address, 1)
  buckets.charge('cancels', key.address, count)
  const result = engine.submit({ kind: 'cancelScope', user: key.address, scope }) as CancelResult
  return { status: 200, body: result, headers }
}

const bodyScope = ({ body }: Request): Scope => {
  const { market, asset_id: tokenId } = (body ?? {}) as Record<string, unknown>
  const scope = scopeOf(market, tokenId)
  if (Object.keys(scope).length === 0) throw new HttpError(400, 'Invalid order payload')
  return scope
}

export const orderRoutes = (deps: OrderDeps): Route[] => [
  route('POST /order', (request) => postOrder(deps, request)),
  route('POST /orders', (request) => postOrders(deps, request)),
  route('DELETE /order', (request) =>
    cancelIds(deps, request, orderIds([(request.body as { orderID?: unknown } | null)?.orderID])),
  ),
  route('DELETE /orders', (request) => cancelIds(deps, request, orderIds(request.body))),
  route('DELETE /cancel-all', (request) => cancelAll(deps, request, {})),
  route('DELETE /cancel-market-orders', (request) => cancelAll(deps, request, bodyScope(request))),
]
