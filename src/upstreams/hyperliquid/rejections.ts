/** Fault codes by the prefix of the venue's message; any other message is `venue_rejected`. */

const table = [
  ['Order could not immediately match', 'slippage'],
  ['No liquidity available', 'insufficient_liquidity'],
  ['Insufficient margin', 'insufficient_balance'],
  ['Insufficient spot balance', 'insufficient_balance'],
  ['Order has insufficient spot balance', 'insufficient_balance'],
  ['Insufficient balance', 'insufficient_balance'],
  ['Reduce only order would increase', 'no_position'],
  ['Post only order would have immediately matched', 'post_only_crosses'],
  ['Order price cannot be more than 80% away', 'price_too_far'],
  ['Order price too far from oracle', 'price_too_far'],
  ['Order must have minimum value', 'below_minimum'],
  ['Price must be divisible by tick size', 'tick_invalid'],
  ['Trading is halted', 'market_closed'],
  ['Only post-only orders allowed', 'market_closed'],
  ['User or API Wallet', 'setup_incomplete'],
  ['Must deposit before', 'setup_incomplete'],
  ['Action already expired', 'expired'],
  ['Too many cumulative requests', 'rate_limited'],
  ['Order was never placed, already canceled, or filled', 'order_not_cancellable'],
] as const

/** Fault codes by the status of a rejected order. */
const statuses = [
  ['iocCancelRejected', 'slippage'],
  ['marketOrderNoLiquidityRejected', 'insufficient_liquidity'],
  ['perpMarginRejected', 'insufficient_balance'],
  ['insufficientSpotBalanceRejected', 'insufficient_balance'],
  ['reduceOnlyRejected', 'no_position'],
  ['reduceOnlyCanceled', 'no_position'],
  ['badAloPxRejected', 'post_only_crosses'],
  ['oracleRejected', 'price_too_far'],
  ['minTradeNtlRejected', 'below_minimum'],
  ['minTradeSpotNtlRejected', 'below_minimum'],
  ['tickRejected', 'tick_invalid'],
] as const

export type RejectionCode =
  | (typeof table)[number][1]
  | (typeof statuses)[number][1]
  | 'venue_rejected'
  | 'upstream_changed'

export const codeOfRejection = (message: string): RejectionCode =>
  table.find(([start]) => message.startsWith(start))?.[1] ?? 'venue_rejected'

export const codeOfStatus = (status: string): RejectionCode =>
  statuses.find(([name]) => name === status)?.[1] ?? 'venue_rejected'

/** Some servers of the venue prefix the message with the rejecting layer. */
const layer = /^L1 error:\s*/i

/** Returns the venue's message without the rejecting layer and the venue's internal market number. */
export const rejectionMessage = (message: string): string =>
  message
    .replace(layer, '')
    .replace(/[\s,]*\basset=\d+/g, '')
    .trim()

/** Whether the venue says that it does not know the signer as an agent. */
export const isUnknownSigner = (message: string): boolean => message.startsWith('User or API Wallet')
