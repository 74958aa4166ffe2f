import { Fault, invalid } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'

/** What Relay's error codes mean for the caller of a swap. */

type RelayError = { errorCode: string; message: string }

const textMax = 200
const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, textMax) : '')

/** Returns the error that a reply states, or undefined if the body is not an error in Relay's form. */
export function errorOf(body: unknown): RelayError | undefined {
  if (!isRecord(body) || typeof body.errorCode !== 'string') return undefined
  return { errorCode: textOf(body.errorCode), message: textOf(body.message) }
}

const retried = ['PRICE_FETCH_FAILED', 'SERVICE_UNAVAILABLE', 'REQUEST_TIMED_OUT', 'RPC_HTTP_ERROR']
export const isRetried = ({ errorCode }: RelayError): boolean => retried.includes(errorCode)

const noRoute = [
  'NO_SWAP_ROUTES_FOUND',
  'NO_INTERNAL_SWAP_ROUTES_FOUND',
  'NO_QUOTES',
  'UNSUPPORTED_ROUTE',
  'UNSUPPORTED_CURRENCY',
  'SOLANA_TX_TOO_LARGE',
]
const illiquid = ['INSUFFICIENT_LIQUIDITY', 'SWAP_IMPACT_TOO_HIGH']
const switchedOff = ['CHAIN_DISABLED', 'ROUTE_TEMPORARILY_RESTRICTED']
const sanctioned = ['SANCTIONED_CURRENCY', 'SANCTIONED_WALLET_ADDRESS']
const fields: Record<string, string> = {
  INVALID_ADDRESS: 'recipient',
  INVALID_RECIPIENT: 'recipient',
  INVALID_INPUT_CURRENCY: 'token_in',
  INVALID_OUTPUT_CURRENCY: 'token_out',
  INVALID_SLIPPAGE_TOLERANCE: 'slippage_bps',
}

export function faultOf({ errorCode, message }: RelayError): Fault {
  const extras = { upstream: 'relay', upstream_code: errorCode }
  if (errorCode === 'AMOUNT_TOO_LOW')
    return invalid('amount', 'below_minimum', 'The amount is too low to cover the fees of the swap', {
      upstream_code: errorCode,
    })
  if (noRoute.includes(errorCode)) return new Fault('no_route', 'There is no route for this swap', { extras })
  if (illiquid.includes(errorCode))
    return new Fault('insufficient_liquidity', 'The market cannot serve this amount at an acceptable price', {
      extras,
    })
  if (errorCode === 'INSUFFICIENT_FUNDS')
    // The gateway has read a balance that covers the amount, and the error states no amounts, so the fault is a
    // conflict of the two readings.
    return new Fault('conflict', 'The solver sees a balance that does not cover the amount', { extras })
  if (errorCode === 'UNSUPPORTED_CHAIN')
    return invalid(
      'chain_id_in',
      'unsupported_chain',
      'Swaps do not serve one of these chains: `chains_list` shows what each chain serves',
    )
  // Relay normally serves every chain of the gateway's table, so a chain that is switched off is a temporary failure.
  if (switchedOff.includes(errorCode))
    return new Fault('unavailable', 'Swaps on this chain are switched off at present', { extras })
  const field = fields[errorCode]
  if (field !== undefined) return invalid(field, 'value_error', message || 'The solver refuses this value')
  if (sanctioned.includes(errorCode))
    return new Fault(
      'policy_denied',
      'The solver refuses this wallet or token under its sanctions rules: a repeat does not help',
      {
        extras: { ...extras, rule: 'sanctioned', reason: 'sanctioned' },
      },
    )
  return new Fault('unavailable', 'The solver refused the request', { extras })
}
