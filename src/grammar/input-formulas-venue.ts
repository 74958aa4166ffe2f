import { fromUnits, isDecimal, mulDiv, rescale, toUnits } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { assetNamed, dollarSymbol, tokenOn } from './asset-and-chain-names.ts'
import { type Formula, type FormulaContext, type Problem, stop } from './input-formula.ts'
import { heldOf, largestOf, priceOf } from './input-formulas-swap.ts'
import { fractionText, parseAmount, partOf, partOfDecimal } from './parse-amount-text.ts'
import { type Outputs, outputOf, rowsAt, textAt } from './step-outputs.ts'

/** Fills the fields of orders at the venue, of the vault, of credits and of limits. */

export const marketOf = (symbol: unknown, outputs: Outputs): JsonObject | undefined =>
  rowsAt(outputOf(outputs, 'perp'), '/markets').find(({ row }) => row.symbol === symbol)?.row

const significantDigits = 5
/** Rounds a price to at most five significant digits, or to a whole number, as the venue requires. */
export function venuePrice(units: bigint, placesMax: number): string {
  const text = fromUnits(units, 18)
  const [whole = '0', fraction = ''] = text.split('.')
  if (whole !== '0') {
    const places = Math.max(0, Math.min(placesMax, significantDigits - whole.length))
    return places === 0 ? whole : fromUnits(rescale(units, 18, places), places)
  }
  const zeros = fraction.length - fraction.replace(/^0+/, '').length
  const places = Math.min(placesMax, zeros + significantDigits)
  return fromUnits(rescale(units, 18, places), places)
}

/**
 * Returns the price of a stop or target: the price that the user said, or the reference price moved by the
 * percentage that the user said.
 */
export function legPrice(
  text: string | undefined,
  reference: string | undefined,
  { isAbove, placesMax }: { isAbove: boolean; placesMax: number },
): string | undefined | Problem {
  if (text === undefined) return undefined
  const fraction = fractionText(text)
  if (fraction === undefined) return text
  if (reference === undefined || !isDecimal(reference))
    return stop('There is no price by which to count the percentage')
  const one = 10n ** 18n
  const factor = isAbove ? one + toUnits(fraction, 18) : one - toUnits(fraction, 18)
  if (factor <= 0n) return stop('The percentage leaves no price')
  return venuePrice(mulDiv(toUnits(reference, 18), factor, one), placesMax)
}

function openLeg(context: FormulaContext, leg: 'stop' | 'target'): string | undefined | Problem {
  const { slots, outputs } = context
  const market = marketOf(slots.asset, outputs)
  const reference = slots.price ?? (market && textAt(market, '/mark_price'))
  const placesMax = Number(market?.price_decimals_max ?? 6)
  return legPrice(slots[leg], reference, {
    isAbove: (slots.side === 'long') === (leg === 'target'),
    placesMax,
  })
}

const spotLeg = (context: FormulaContext, leg: 'stop' | 'target'): string | undefined | Problem => {
  const { slots, outputs } = context
  const mark = textAt(outputOf(outputs, 'spot'), `/mark_prices/${slots.asset}`)
  return legPrice(slots[leg], slots.price ?? priceOf(slots.asset ?? '', outputs) ?? mark, {
    isAbove: leg === 'target',
    placesMax: 8,
  })
}

/** Returns the size in coins if the user gave the amount in the traded asset; undefined otherwise. */
const size: Formula = ({ slots }) => {
  const amount = parseAmount(slots.amount)
  return amount?.kind === 'token' && amount.symbol === slots.asset ? amount.value : undefined
}
const notionalUsd: Formula = ({ slots }) => {
  const amount = parseAmount(slots.amount)
  if (amount?.kind === 'token' && amount.symbol !== slots.asset)
    return stop(`The amount counts ${amount.symbol}, and the order is for ${slots.asset}`)
  return amount?.kind === 'usd' ? amount.value : undefined
}

function spotSize(context: FormulaContext): string | undefined | Problem {
  const { slots, outputs } = context
  const amount = parseAmount(slots.amount)
  // Without a size the venue sells everything that is free.
  if (!amount || amount.kind === 'usd' || amount.kind === 'all') return undefined
  if (amount.kind === 'token') return amount.value
  const balance = rowsAt(outputOf(outputs, 'spot'), '/balances').find(({ row }) => row.asset === slots.asset)
  const total = balance && textAt(balance.row, '/total')
  const held = balance && textAt(balance.row, '/hold')
  if (total === undefined || held === undefined) return stop(`You hold no ${slots.asset} at the spot venue`)
  const free = fromUnits(toUnits(total, 18) - toUnits(held, 18), 18)
  const market = rowsAt(outputOf(outputs, 'markets'), '/markets').find(
    ({ row }) => row.base === slots.asset,
  )?.row
  const places = typeof market?.size_decimals === 'number' ? market.size_decimals : undefined
  const part = partOfDecimal(free, amount, places)
  return part === '0' ? stop(`That part of your ${slots.asset} is smaller than the venue trades.`) : part
}

/**
 * Returns the dollars that "all" or a share of the wallets' USDC amounts to, rounded down to cents. Only the USDC on
 * the given chain counts, or else the USDC on the chain with the most.
 */
function heldDollars(context: FormulaContext, chainId: string | undefined): string | Problem {
  const asset = assetNamed(dollarSymbol, context.names)
  const amount = parseAmount(context.slots.amount)
  const held = asset
    ? heldOf(asset, context).filter((each) => chainId === undefined || each.chainId === chainId)
    : []
  const best = asset && largestOf(held, asset)
  const token = asset && best && tokenOn(asset, best.chainId)
  const units = best && amount && partOf(best.units, amount)
  if (!token || units === undefined) return stop('Your wallets hold no USDC there')
  return fromUnits(rescale(units, token.decimals, 2), 2)
}

const fundUsd: Formula = (context) => {
  const amount = parseAmount(context.slots.amount)
  if (amount?.kind === 'usd') return amount.value
  if (amount?.kind === 'token')
    return stop('The perpetual account is funded in dollars. Say the amount in dollars.')
  return heldDollars(context, context.slots.chain)
}

const withdrawUsd: Formula = ({ slots, outputs }) => {
  const amount = parseAmount(slots.amount)
  if (amount?.kind === 'usd') return amount.value
  if (!amount || amount.kind === 'token')
    return stop('Margin is withdrawn in dollars. Say the amount in dollars.')
  const withdrawable = textAt(outputOf(outputs, 'status'), '/withdrawable_usd')
  if (withdrawable === undefined || !isDecimal(withdrawable))
    return stop('The perpetual account could not be read')
  return partOfDecimal(withdrawable, amount, 2) ?? stop('Nothing can be withdrawn')
}

/** Returns the USDC that an earlier order of the same message brought, rounded down to cents. */
function broughtUsdc({ earlier, names }: FormulaContext): string | Problem {
  const dollar = assetNamed(dollarSymbol, names)
  for (const { output } of Object.values(earlier).reverse()) {
    const change = rowsAt(output, '/balance_changes').find(
      ({ row }) =>
        typeof row.amount === 'string' &&
        /^[1-9]\d{0,77}$/.test(row.amount) &&
        dollar?.tokens.some(
          ({ chainId, address }) =>
            chainId === row.chain_id && address.toLowerCase() === String(row.token_address).toLowerCase(),
        ),
    )
    if (change)
      return fromUnits(rescale(BigInt(String(change.row.amount)), Number(change.row.decimals), 2), 2)
  }
  return stop('The order before it brought no USDC yet')
}

const depositUsdc: Formula = (context) => {
  const { slots, outputs } = context
  const amount = parseAmount(slots.amount)
  if (amount?.kind === 'usd') return amount.value
  if (amount?.kind === 'token') return stop('The vault takes USDC. Say the amount in dollars.')
  if (amount?.kind === 'rest') return broughtUsdc(context)
  return heldDollars(context, textAt(outputOf(outputs, 'vault'), '/chain_id'))
}

const raisesLimit = (limit: string | null | undefined, wanted: string): boolean =>
  typeof limit === 'string' && isDecimal(limit) && toUnits(wanted, 18) > toUnits(limit, 18)

/**
 * Returns the requested value of a policy limit. A value above the present one stops the step, because a chat only
 * lowers limits, even for a caller who may raise them elsewhere.
 */
const loweredLimit =
  (name: 'per_transaction' | 'per_day' | 'approval_above'): Formula =>
  ({ slots, outputs }) => {
    if (slots.field !== name) return undefined
    const amount = parseAmount(slots.amount)
    if (amount?.kind !== 'usd') return stop('Say the limit in dollars.')
    const now = textAt(outputOf(outputs, 'policy'), `/${name}_usd`)
    if (raisesLimit(now, amount.value))
      return stop(
        'That would raise the limit. This chat only lowers limits; a person raises them on the account page.',
      )
    return amount.value
  }

const packId: Formula = ({ slots, outputs }) => {
  const amount = parseAmount(slots.amount)
  const packs = rowsAt(outputOf(outputs, 'packs'), '/packs')
  const fits = (price: unknown) =>
    amount?.kind === 'usd' &&
    typeof price === 'string' &&
    isDecimal(price) &&
    toUnits(price, 18) === toUnits(amount.value, 18)
  const found = packs.find(({ row }) => fits(row.price_usd))
  if (found) return found.row.pack_id
  const choices = packs.flatMap(({ row }) =>
    typeof row.price_usd === 'string'
      ? [{ label: `${row.price_usd} dollars`, fill: { amount: `${row.price_usd} usd` } }]
      : [],
  )
  return { problem: 'ask', slot: 'amount', question: 'There is no pack of that price. Which one?', choices }
}

export const venueFormulas = {
  search_text: ({ slots }) => (slots.assets?.includes(',') ? undefined : slots.assets),
  security_tokens: ({ slots, names }) => {
    const { token = '', chain } = slots
    const asset = assetNamed(token, names)
    const family = token.startsWith('0x') ? 'evm' : 'solana'
    const places = asset
      ? asset.tokens.map(({ chainId, address }) => ({ chain_id: chainId, token_address: address }))
      : names.universe.chains
          .filter((each) => each.family === family)
          .map(({ id }) => ({ chain_id: id, token_address: token }))
    const wanted = places.filter(({ chain_id }) => chain === undefined || chain_id === chain).slice(0, 10)
    return wanted.length > 0 ? wanted : stop(`${token} has no contract on a chain that is served`)
  },
  chain_type: ({ slots, names }) =>
    slots.chain === undefined ? undefined : names.chainById.get(slots.chain)?.family,
  /** A page has at most so many fills; a count alone needs no more of them. */
  fills_limit: ({ slots }) =>
    slots.count === undefined || slots.period !== undefined ? 100 : Number(slots.count),
  tasks_limit: () => 100,
  size,
  notional_usd: notionalUsd,
  spot_size: spotSize,
  leverage: ({ slots }) =>
    slots.leverage === undefined
      ? undefined
      : /^\d{1,4}$/.test(slots.leverage)
        ? Number(slots.leverage)
        : stop('Leverage is a whole number.'),
  is_cross: ({ slots }) => (slots.margin === undefined ? undefined : slots.margin === 'cross'),
  order_type: ({ slots }) => (slots.price === undefined ? 'market' : 'limit'),
  slippage_pct: ({ slots }) => {
    const fraction = fractionText(slots.slippage)
    return fraction === undefined ? undefined : fromUnits(toUnits(fraction, 18) * 100n, 18)
  },
  target_price: (context) => openLeg(context, 'target'),
  stop_price: (context) => openLeg(context, 'stop'),
  spot_target: (context) => spotLeg(context, 'target'),
  spot_stop: (context) => spotLeg(context, 'stop'),
  fund_usd: fundUsd,
  withdraw_usd: withdrawUsd,
  deposit_usdc: depositUsdc,
  limit_per_transaction: loweredLimit('per_transaction'),
  limit_per_day: loweredLimit('per_day'),
  limit_approval_above: loweredLimit('approval_above'),
  pack_id: packId,
  is_not_set_up: ({ outputs }) =>
    textAt(outputOf(outputs, 'status'), '/eoa_address') !== undefined &&
    (outputOf(outputs, 'status') as { setup_complete?: unknown }).setup_complete !== true,
} satisfies Record<string, Formula>
export type VenueFormulaName = keyof typeof venueFormulas
