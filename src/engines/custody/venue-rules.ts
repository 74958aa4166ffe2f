import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { canonicalDecimal, decimalPlaces, mulDiv, toUnits, usdDecimals } from '#kernel/money/money.ts'
import { isAgentAction, isSpotAsset, type VenueOrder } from '#kernel/money/venue-actions.ts'
import type { VenueIntent } from '#kernel/task/signer.ts'
import { assertRule, isSameAddress } from './assert-rule.ts'

/** What custody knows about a venue comes from configuration and never from the venue's replies. */
export type SigningVenue = {
  venue: string
  chainId: string
  /** The highest notional that one signature may open, in micro-dollars. */
  maxMicros: bigint
  /** Whether the operator can set the venue's clock, so that its times cannot be compared. */
  hasSettableClock?: boolean
}

const expiryMsMax = 3_600_000
const dayMs = 86_400_000
const ordersMax = 8

const isPositive = (text: string): boolean =>
  canonicalDecimal(text) === text && compareDecimals(text, '0') > 0

/** Spot has no reduce-only: a purchase opens, and a sale reduces the holding. */
const opensPosition = ({ asset, isBuy, reduceOnly }: VenueOrder): boolean =>
  isSpotAsset(asset) ? isBuy : !reduceOnly

/** The highest notional that the orders can open, rounded up. Exits open nothing. */
export function openedMicros(orders: readonly VenueOrder[]): bigint {
  return orders.filter(opensPosition).reduce((sum, { price, size }) => {
    const places = decimalPlaces(price) + decimalPlaces(size)
    const product = toUnits(price, decimalPlaces(price)) * toUnits(size, decimalPlaces(size))
    return sum + mulDiv(product, 10n ** BigInt(usdDecimals), 10n ** BigInt(places), 'up')
  }, 0n)
}

function assertTimes(
  { nonce, expiresAtMs, action }: VenueIntent,
  now: Date,
  { hasSettableClock }: { hasSettableClock: boolean },
): void {
  const aheadMs = Number(nonce) - now.getTime()
  assertRule(
    nonce > 0n && (hasSettableClock || Math.abs(aheadMs) < dayMs),
    'nonce',
    'the nonce is more than a day away from the current time',
  )
  if (!isAgentAction(action)) return
  assertRule(
    expiresAtMs !== null && Number.isSafeInteger(expiresAtMs),
    'expiry',
    'the action has no valid expiry',
  )
  const leftMs = expiresAtMs - now.getTime()
  assertRule(
    hasSettableClock || (leftMs > 0 && leftMs <= expiryMsMax),
    'expiry',
    'the expiry is not within the next hour',
  )
}

function assertOrders(
  { exit, usdMicros }: VenueIntent,
  orders: readonly VenueOrder[],
  maxMicros: bigint,
): void {
  assertRule(
    orders.length > 0 && orders.length <= ordersMax,
    'orders',
    'the number of orders is out of range',
  )
  for (const order of orders) {
    const { price, size, when } = order
    assertRule(isPositive(price) && isPositive(size), 'size', 'a price or a size is not above zero')
    if ('triggerPrice' in when) {
      assertRule(isPositive(when.triggerPrice), 'size', 'a trigger price is not above zero')
      assertRule(!opensPosition(order), 'trigger', 'a trigger order could open a position')
    }
  }
  const opened = openedMicros(orders)
  assertRule(!exit || opened === 0n, 'exit', 'an exit would open a position')
  assertRule(opened <= usdMicros, 'notional', 'the orders open more than the value declared to the policy')
  assertRule(opened <= maxMicros, 'cap', 'the orders open more than the cap per signature')
}

function assertAction(intent: VenueIntent, { maxMicros }: SigningVenue, agents: readonly string[]): void {
  const { action, account } = intent
  if (action.type === 'order') assertOrders(intent, action.orders, maxMicros)
  if (action.type === 'withdraw')
    assertRule(
      isSameAddress(action.destination, account),
      'destination',
      "the money would not go to the user's wallet",
    )
  if (action.type === 'withdraw' || action.type === 'move_cash')
    assertRule(isPositive(action.amount), 'size', 'the amount is not above zero')
  if (action.type === 'approve_agent')
    assertRule(
      agents.some((each) => isSameAddress(each, action.agent)),
      'agent',
      'the agent is not a key of this user that custody made',
    )
}

type VenueIntentCheck = {
  intent: VenueIntent
  own: string
  agents: readonly string[]
  venue: SigningVenue | undefined
  now: Date
}

export function assertVenueIntent({ intent, own, agents, venue, now }: VenueIntentCheck): void {
  assertRule(
    venue !== undefined && venue.chainId === intent.chainId,
    'venue',
    'custody does not sign for this venue',
  )
  assertRule(isSameAddress(intent.account, own), 'account', "the account is not the user's own wallet")
  const signers = isAgentAction(intent.action) ? agents : [own]
  assertRule(
    signers.some((each) => isSameAddress(each, intent.signer)),
    'signer',
    'the signer is not the key of the account or of its agent',
  )
  assertTimes(intent, now, { hasSettableClock: venue.hasSettableClock === true })
  assertAction(intent, venue, agents)
}
