import type { Attempts } from '#engines/trigger-orders/order-kind-rules.ts'
import { isPriceStale, type OrderRow, type StatusFilter } from '#engines/trigger-orders/store.ts'
import { unitPrice } from '#engines/trigger-orders/trigger-price.ts'
import { toUnits, usdDecimals } from '#kernel/money/money.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { LimitOrderView } from './contract.ts'

export const limitOrderKind = 'limit_order_execute'

export type LimitOrderData = Attempts & {
  chain_id_in: string
  chain_id_out: string
  token_in: string
  token_out: string
  /** Orders from before it was stored have none. */
  symbol_in?: string
  symbol_out?: string
  decimals_in: number
  decimals_out: number
  amount: string
  price_usd_trigger: string
  condition: LimitOrderView['condition']
  trigger_token_address: string
  trigger_token_chain: string
  /** Which token of the swap triggers the order; null if it is another token. */
  priced: 'in' | 'out' | null
  usdc: 'in' | 'out' | null
  slippage_bps: number
}
export type LimitOrderRow = OrderRow<LimitOrderData & JsonObject>

function statusOf({ status, task_status }: LimitOrderRow): LimitOrderView['status'] {
  if (status === 'armed' || status === 'waiting') return 'active'
  if (status !== 'fired') return status
  if (task_status === 'completed') return 'executed'
  if (task_status === 'failed' || task_status === 'cancelled') return task_status
  return 'executing'
}

export const statusFilters: Readonly<Record<LimitOrderView['status'], readonly StatusFilter[]>> = {
  active: [{ status: 'waiting' }, { status: 'armed' }],
  executing: [{ taskEnd: null }],
  executed: [{ taskEnd: 'completed' }],
  failed: [{ taskEnd: 'failed' }],
  cancelled: [{ status: 'cancelled' }, { taskEnd: 'cancelled' }],
  expired: [{ status: 'expired' }],
}

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/**
 * Returns the price in dollars per token: the USDC that the swap paid or received or, if it has no USDC side, its
 * value.
 */
function averagePrice({ input, task_result: result }: LimitOrderRow): string | null {
  const [amountIn, amountOut, volume] = [
    text(result?.amount_in),
    text(result?.amount_out),
    text(result?.volume_usd),
  ]
  if (amountIn === null || amountOut === null || volume === null) return null
  const sides = {
    in: { units: BigInt(amountIn), decimals: input.decimals_in },
    out: { units: BigInt(amountOut), decimals: input.decimals_out },
  }
  const token = sides[input.priced ?? 'out']
  const worth = { units: toUnits(volume, usdDecimals), decimals: usdDecimals }
  const paid = input.usdc === null || input.usdc === input.priced ? worth : sides[input.usdc]
  return token.units === 0n ? null : unitPrice(token, { ...paid, price: '1' })
}

export function limitOrderView(row: LimitOrderRow, now: Date): LimitOrderView {
  const { input, task_result: result } = row
  const status = statusOf(row)
  const isExecuted = status === 'executed'
  return {
    limit_order_id: row.id,
    order_id: row.id,
    status,
    chain_id_in: input.chain_id_in,
    chain_id_out: input.chain_id_out,
    token_in: input.token_in,
    token_out: input.token_out,
    symbol_in: input.symbol_in ?? null,
    symbol_out: input.symbol_out ?? null,
    decimals_in: input.decimals_in ?? null,
    decimals_out: input.decimals_out ?? null,
    amount: input.amount,
    price_usd_trigger: input.price_usd_trigger,
    condition: input.condition,
    trigger_token_address: input.trigger_token_address,
    trigger_token_chain: input.trigger_token_chain,
    slippage_bps: input.slippage_bps,
    filled_amount: isExecuted ? text(result?.amount_in) : null,
    amount_out: isExecuted ? text(result?.amount_out) : null,
    avg_price_usd: isExecuted ? averagePrice(row) : null,
    price_stale: isPriceStale(row, now),
    attempts: row.attempts,
    task_id: row.task_id,
    tx_hash: text(result?.tx_hash),
    failure_reason: row.task_error?.code ?? null,
    expires_at: row.expires_at ? new Date(row.expires_at).toISOString() : null,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
  }
}

function eventType(row: LimitOrderRow, status: LimitOrderView['status']): string {
  if (status !== 'active') return `limit_order.${status === 'executing' ? 'triggered' : status}`
  return row.task_error === null ? 'limit_order.created' : 'limit_order.attempt_failed'
}

export function limitOrderEvent(row: LimitOrderRow): NewEvent {
  const data = limitOrderView(row, row.updated_at)
  return {
    type: eventType(row, data.status),
    ...(row.task_id !== null && { taskId: row.task_id }),
    subject: { kind: 'limit_order', id: row.id },
    data,
  }
}
