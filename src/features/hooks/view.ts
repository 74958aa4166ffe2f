import type { Attempts } from '#engines/trigger-orders/order-kind-rules.ts'
import { isPriceStale, type OrderRow } from '#engines/trigger-orders/store.ts'
import { canonicalDecimal } from '#kernel/money/money.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { HookView } from './contract.ts'

export const hookKind = 'hook_execute'

export type HookInput = Attempts & {
  chain_id: string
  token_address: string
  symbol: string
  type: HookView['type']
  reference: HookView['reference']
  reference_price_usd: string | null
  sell_percentage: string
  slippage_bps: number
  max_price_impact_bps?: number
  /** The address of the USDC that a sale brings. */
  usdc: string
  /** The units that the hook's swap received, and those that its group has not sold yet. */
  lot_units?: string
  lot_left?: string
}
export type HookRow = OrderRow<HookInput & JsonObject>

const endedTask = { completed: 'filled', failed: 'failed', cancelled: 'cancelled' } as const

function statusOf({ status, input, task_status, task_state }: HookRow): HookView['status'] {
  if (status === 'armed' || status === 'waiting')
    return input.failures || input.moved ? 'failed_retrying' : 'active'
  if (status !== 'fired') return status
  if (task_status === 'completed' || task_status === 'failed' || task_status === 'cancelled')
    return endedTask[task_status]
  return task_state === null || task_state === 'accepted' ? 'triggered' : 'executing'
}

export function hookView(row: HookRow, now: Date): HookView {
  const { input } = row
  return {
    id: row.id,
    type: input.type,
    chain_id: input.chain_id,
    token_address: input.token_address,
    symbol: input.symbol,
    reference: input.reference,
    reference_price_usd: input.reference_price_usd,
    trigger_price_usd: canonicalDecimal(row.trigger_price) ?? row.trigger_price,
    sell_percentage: input.sell_percentage,
    amount: input.lot_units ?? null,
    oco_group: row.oco_group,
    status: statusOf(row),
    price_stale: isPriceStale(row, now),
    attempts: row.attempts,
    task_id: row.task_id,
    failure_reason: row.task_error?.code ?? null,
    expires_at: row.expires_at ? new Date(row.expires_at).toISOString() : null,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
  }
}

const eventTypes: Readonly<Record<HookView['status'], string>> = {
  active: 'hook.created',
  triggered: 'hook.triggered',
  executing: 'hook.triggered',
  filled: 'hook.filled',
  failed_retrying: 'hook.attempt_failed',
  failed: 'hook.failed',
  cancelled: 'hook.cancelled',
  expired: 'hook.expired',
}

export function hookEvent(row: HookRow): NewEvent {
  const data = hookView(row, row.updated_at)
  return {
    type: eventTypes[data.status],
    ...(row.task_id !== null && { taskId: row.task_id }),
    subject: { kind: 'hook', id: row.id },
    data,
  }
}
