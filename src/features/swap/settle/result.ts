import type { SwapTaskData } from '#features/swap/task-data.ts'
import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** Returns the fields that every result of a swap has; an amount that did not move is 0. */
export const resultOf = (data: SwapTaskData): JsonObject => ({
  amount_in: data.amount_in,
  amount_out: '0',
  amount_out_min: data.amount_out_min,
  tx_hash: data.deposit_tx ?? null,
  explorer_url: null,
  volume_usd: fromUnits(BigInt(data.usd_micros), usdDecimals),
  fees: (data.quote.fees ?? []) as JsonObject[],
  refunded: null,
  failure_reason: null,
  provider: data.provider,
  provider_request_id: data.provider_request_id,
})
