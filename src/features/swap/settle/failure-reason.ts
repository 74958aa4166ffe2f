import type { ProviderStatus } from '#kernel/money/swap-provider.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

const failureReasons: Readonly<Record<string, string>> = {
  SLIPPAGE: 'slippage',
  NO_QUOTES: 'slippage',
  SWAP_IMPACT_TOO_HIGH: 'slippage',
  TTL_EXPIRED: 'ttl_expired',
  DEPOSITED_AMOUNT_TOO_LOW_TO_FILL: 'deposit_too_low',
  DOUBLE_SPEND: 'double_spend',
  SOLVER_CAPACITY_EXCEEDED: 'solver_capacity',
  SOLVER_BALANCE_TOO_LOW: 'solver_capacity',
  AMOUNT_TOO_LOW_TO_REFUND: 'too_low_to_refund',
}

type Reasons = Pick<ProviderStatus, 'reason' | 'refundReason'>

/** Returns a reason of the contract, or the provider's own reason in lower case; null if it gives none. */
export function failureReasonOf({ reason, refundReason }: Reasons): string | null {
  if (refundReason === 'AMOUNT_TOO_LOW_TO_REFUND') return 'too_low_to_refund'
  return reason === null ? null : (failureReasons[reason] ?? reason.toLowerCase())
}

type ErrorOptions = Reasons & {
  code: string
  message: string
  provider: string
}

export const errorOf = ({ code, message, provider, reason, refundReason }: ErrorOptions) => {
  const upstreamCode = refundReason ?? reason
  const details: JsonObject = { reason, refund_reason: refundReason }
  return {
    code,
    message: reason === null ? message : `${message} (${reason})`,
    retryable: false,
    upstream: provider,
    ...(upstreamCode !== null && { upstream_code: upstreamCode }),
    details,
  }
}
