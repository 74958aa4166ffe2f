import type { OrderRefusal, RelayRefusal } from '#kernel/money/prediction-refusals.ts'

/**
 * Reasons by the words of the venue. https://docs.polymarket.com/trading/orders/create#error-messages and
 * https://docs.polymarket.com/resources/error-codes
 */

type Rule<R> = readonly [pattern: RegExp, reason: R]

/** The first rule that matches decides, so that the narrow ones come first. */
const orderRules: readonly Rule<OrderRefusal>[] = [
  [/not enough balance \/ allowance.*sum of matched orders/i, 'venue_balance_lag'],
  [/not enough balance \/ allowance/i, 'insufficient_balance'],
  [/allowance is not enough|balance is not enough/i, 'insufficient_balance'],
  [/invalid post-only order: order crosses book/i, 'post_only_crosses'],
  [/order couldn't be fully filled/i, 'not_filled'],
  [/no orders found to match with FAK order/i, 'no_match'],
  [/breaks minimum tick size rule/i, 'tick_invalid'],
  // A coarser tick has fewer places for both amounts.
  [/^invalid amounts, .* max accuracy of/i, 'tick_invalid'],
  [/Size \(.*\) lower than the minimum/i, 'below_minimum'],
  [/invalid amount for a marketable BUY order/i, 'below_minimum'],
  [/invalid price/i, 'price_invalid'],
  [/invalid expiration/i, 'expiration_invalid'],
  [/not yet ready to process new orders/i, 'market_not_ready'],
  [/the orderbook \S+ does not exist|No orderbook exists/i, 'market_closed'],
  [/Invalid token id/i, 'unknown_outcome'],
  [/order_version_mismatch/i, 'version_mismatch'],
  [/order signer address has to be the address of the API KEY/i, 'wallet_not_ready'],
  [/maker address not allowed/i, 'wallet_not_allowed'],
  [/order owner has to be the owner of the API KEY/i, 'key_invalid'],
  [/Invalid api key|Unauthorized/i, 'key_invalid'],
  [/invalid signature/i, 'invalid_signature'],
  [/Trading restricted in your region/i, 'geoblocked'],
  [/address in closed only mode/i, 'closed_only'],
  [/address banned/i, 'banned'],
]

const relayRules: readonly Rule<RelayRefusal>[] = [
  [/call blocked/i, 'call_blocked'],
  [/batch nonce \d+ does not match on-chain nonce/i, 'nonce_stale'],
  [/invalid signature/i, 'invalid_signature'],
  [/invalid authorization|unauthorized/i, 'not_authorized'],
  [/deadline expired/i, 'expired'],
]

const reasonOf = <R>(rules: readonly Rule<R>[], message: string, otherwise: R): R =>
  rules.find(([pattern]) => pattern.test(message))?.[1] ?? otherwise

export const orderRefusalOf = (message: string): OrderRefusal =>
  reasonOf(orderRules, message, 'venue_rejected')

export const relayRefusalOf = (message: string): RelayRefusal =>
  reasonOf(relayRules, message, 'venue_rejected')

/** The venue has the order already, so that the reply to the first request was lost. */
export const isDuplicate = (message: string): boolean =>
  /Duplicated\. Same order has already been placed/i.test(message)

/** The relayer takes one action of a wallet at a time. */
export const isWalletBusy = (message: string): boolean =>
  /wallet busy: active action/i.test(message) || /wallet has in-flight action/i.test(message)

/** The nonce of the chain, from the refusal of an older or newer one. */
export function chainNonceOf(message: string): bigint | null {
  const match = /batch nonce \d+ does not match on-chain nonce (\d{1,78})/i.exec(message)
  return match ? BigInt(match[1]!) : null
}

/** How long the quota of the relayer is used up; undefined if the message is not about it. */
export function quotaResetMs(message: string): number | undefined {
  const match = /quota exceeded.*resets in (\d{1,9}) seconds/i.exec(message)
  return match ? Number(match[1]) * 1_000 : undefined
}
