import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { canonical, decimalPlaces, mulDiv, toUnits, usdDecimals } from '#kernel/money.ts'
import { isAgentAction, isSpotAsset, type VenueIntent, type VenueOrder } from '#kernel/venue.ts'

/** What custody itself knows of a venue, from configuration and never from an answer of it. */
export type SigningVenue = {
  venue: string
  chainId: string
  /** Most that one signature may open, in micro-dollars. */
  mostMicros: bigint
  /** Its operator can set its clock, so its times cannot be compared with our clock. */
  turnsTime?: boolean
}

const expiryMsMost = 3_600_000
const dayMs = 86_400_000
const ordersMost = 8

function demand(holdsTrue: boolean, rule: string, reason: string): asserts holdsTrue {
  if (!holdsTrue)
    throw new Fault('policy_denied', `Custody refuses to sign: ${reason}`, {
      extras: { rule: `signer_${rule}`, reason },
    })
}

const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase()
const isPositive = (text: string): boolean => canonical(text) === text && compareDecimals(text, '0') > 0

/** Spot knows no position that could be reduced: there a purchase opens, and a sale parts with what is held. */
const opens = ({ asset, isBuy, reduceOnly }: VenueOrder): boolean =>
  isSpotAsset(asset) ? isBuy : !reduceOnly

/** What the orders can open at worst, rounded up. Exits open nothing. */
export function openedMicros(orders: readonly VenueOrder[]): bigint {
  return orders.filter(opens).reduce((sum, { price, size }) => {
    const places = decimalPlaces(price) + decimalPlaces(size)
    const product = toUnits(price, decimalPlaces(price)) * toUnits(size, decimalPlaces(size))
    return sum + mulDiv(product, 10n ** BigInt(usdDecimals), 10n ** BigInt(places), 'up')
  }, 0n)
}

function judgeTimes({ nonce, expiresAtMs, action }: VenueIntent, now: Date, turnsTime: boolean): void {
  const aheadMs = Number(nonce) - now.getTime()
  demand(nonce > 0n && (turnsTime || Math.abs(aheadMs) < dayMs), 'nonce', 'the nonce is not of this day')
  if (!isAgentAction(action)) return
  demand(expiresAtMs !== null && Number.isSafeInteger(expiresAtMs), 'expiry', 'the action never expires')
  const leftMs = expiresAtMs - now.getTime()
  demand(
    turnsTime || (leftMs > 0 && leftMs <= expiryMsMost),
    'expiry',
    'the expiry is not within the next hour',
  )
}

function judgeOrders({ exit, usdMicros }: VenueIntent, orders: readonly VenueOrder[], most: bigint): void {
  demand(orders.length > 0 && orders.length <= ordersMost, 'orders', 'the number of orders is not served')
  for (const order of orders) {
    const { price, size, when } = order
    demand(isPositive(price) && isPositive(size), 'size', 'a price or a size is not above zero')
    if ('triggerPrice' in when) {
      demand(isPositive(when.triggerPrice), 'size', 'a trigger is not above zero')
      demand(!opens(order), 'trigger', 'a trigger could open a position')
    }
  }
  const opened = openedMicros(orders)
  demand(!exit || opened === 0n, 'exit', 'an exit would open a position')
  demand(opened <= usdMicros, 'notional', 'the orders open more than the policy was told')
  demand(opened <= most, 'cap', 'the orders open more than one signature may')
}

function judgeAction(intent: VenueIntent, { mostMicros }: SigningVenue, agents: readonly string[]): void {
  const { action, account } = intent
  if (action.type === 'order') judgeOrders(intent, action.orders, mostMicros)
  if (action.type === 'withdraw')
    demand(same(action.destination, account), 'destination', "the money would not go to the user's wallet")
  if (action.type === 'withdraw' || action.type === 'move_cash')
    demand(isPositive(action.amount), 'size', 'the amount is not above zero')
  if (action.type === 'approve_agent')
    demand(
      agents.some((each) => same(each, action.agent)),
      'agent',
      'the agent is not a key of this user that custody made',
    )
}

type Asked = {
  intent: VenueIntent
  own: string
  /** Living agent keys of the user at the venue. */
  agents: readonly string[]
  venue: SigningVenue | undefined
  now: Date
}

/** Throws at the first thing that is not as custody wants it. */
export function judgeVenueIntent({ intent, own, agents, venue, now }: Asked): void {
  demand(venue !== undefined && venue.chainId === intent.chainId, 'venue', 'custody does not sign for it')
  demand(same(intent.account, own), 'account', "the account is not the user's own wallet")
  const signers = isAgentAction(intent.action) ? agents : [own]
  demand(
    signers.some((each) => same(each, intent.signer)),
    'signer',
    'another key than that of the account or its agent is asked for',
  )
  judgeTimes(intent, now, venue.turnsTime === true)
  judgeAction(intent, venue, agents)
}
