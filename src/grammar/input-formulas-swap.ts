import { sameAddress } from '#kernel/money/chains.ts'
import { fromUnits, isDecimal, mulDiv, rescale, toUnits } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Asset, assetNamed, type Names, type TokenPlace, tokenOn } from './asset-and-chain-names.ts'
import { type Formula, type FormulaContext, isProblem, type Problem, stop } from './input-formula.ts'
import { fractionText, parseAmount, partOf } from './parse-amount-text.ts'
import { chainChoices } from './question-choices.ts'
import { outputOf, rowsAt, textAt } from './step-outputs.ts'
import { sidesOf, startChains } from './step-predicates.ts'

/** Fills the fields of swaps, bridges and limit orders. */

const chainName = (chainId: string, { chainById }: Names): string =>
  chainById.get(chainId)?.displayName ?? chainId

const chainQuestion = ({ symbol }: Asset, held: readonly Held[], names: Names): Problem => ({
  problem: 'ask',
  slot: 'chain',
  question: `${symbol} is on several chains. Which one?`,
  choices: chainChoices(
    held.map(({ chainId }) => chainId),
    names,
  ),
})

type Held = { chainId: string; units: bigint }
/** Returns the balances of an asset by chain, as the wallets were read. */
export function heldOf(asset: Asset, { outputs, names }: Pick<FormulaContext, 'outputs' | 'names'>): Held[] {
  const rows = rowsAt(outputOf(outputs, 'holdings'), '/holdings')
  return asset.tokens.flatMap((token) => {
    const family = names.chainById.get(token.chainId)?.family ?? 'evm'
    const found = rows.find(
      ({ row }) =>
        row.chain_id === token.chainId &&
        // What lies in a wallet at a venue cannot be swapped from there.
        row.protocol == null &&
        typeof row.token_address === 'string' &&
        sameAddress({ family }, row.token_address, token.address),
    )
    const amount = found?.row.amount
    return typeof amount === 'string' && /^\d{1,78}$/.test(amount) && amount !== '0'
      ? [{ chainId: token.chainId, units: BigInt(amount) }]
      : []
  })
}

/**
 * Returns the chain where an order begins: the chain that the user said, else the only possible one, else the one
 * where the wallet has the most of the asset that pays.
 */
function chainIn(context: FormulaContext): string | Problem {
  const { slots, names, outputs } = context
  const possible = startChains(slots, names)
  const [only, ...others] = possible
  const sides = sidesOf(slots)
  const asset = assetNamed(sides.in, names)
  if (!asset || only === undefined)
    return stop(`${sides.in ?? 'It'} and ${sides.out ?? 'the other token'} are not on one chain`)
  if (!tokenOn(asset, only) && others.length === 0)
    return stop(`${asset.symbol} is not listed on ${chainName(only, names)}`)
  if (others.length === 0) return only
  if (outputs.holdings === undefined) return stop('The wallets could not be read, so no chain was chosen')
  const held = heldOf(asset, context).filter(({ chainId }) => possible.includes(chainId))
  const best = largestOf(held, asset)
  if (!best) return stop(`Your wallets hold no ${asset.symbol} on a chain where this can be done`)
  const isWhole = ['all', 'share', 'rest'].includes(parseAmount(slots.amount)?.kind ?? '')
  // "All" or "half" means another amount on each chain that holds the asset, so the user has to choose the chain.
  if (isWhole && held.length > 1) return chainQuestion(asset, held, names)
  return best.chainId
}

export const largestOf = (held: readonly Held[], asset: Asset): Held | undefined =>
  held.reduce<Held | undefined>(
    (most, each) => (most === undefined || comparable(each, asset) > comparable(most, asset) ? each : most),
    undefined,
  )

const comparable = ({ chainId, units }: Held, asset: Asset): bigint =>
  rescale(units, tokenOn(asset, chainId)?.decimals ?? 0, 18)

type Side = { token: TokenPlace; asset: Asset; chainId: string }
function tokenIn(context: FormulaContext): Side | Problem {
  const chainId = chainIn(context)
  if (isProblem(chainId)) return chainId
  const asset = assetNamed(sidesOf(context.slots).in, context.names)
  const token = asset && tokenOn(asset, chainId)
  return asset && token
    ? { token, asset, chainId }
    : stop(`It is not listed on ${chainName(chainId, context.names)}`)
}

function tokenOut(context: FormulaContext): Side | Problem {
  const { slots, names } = context
  const from = chainIn(context)
  if (isProblem(from)) return from
  const chainId = slots.chain_out ?? from
  const symbol = sidesOf(slots).out
  const asset = assetNamed(symbol, names)
  const token = asset && tokenOn(asset, chainId)
  return asset && token
    ? { token, asset, chainId }
    : stop(`${symbol ?? 'It'} is not listed on ${chainName(chainId, names)}`)
}

/**
 * Returns the amount in smallest units of the asset that pays; undefined if the user gave the amount in dollars or in
 * the bought asset.
 */
function amountInUnits(context: FormulaContext): string | undefined | Problem {
  const { slots } = context
  const amount = parseAmount(slots.amount)
  if (!amount || amount.kind === 'usd') return undefined
  const side = tokenIn(context)
  if (isProblem(side)) return side
  if (amount.kind === 'token') {
    if (amount.symbol !== side.asset.symbol) return undefined
    const places = amount.value.split('.')[1]?.length ?? 0
    if (places > side.token.decimals) return stop(`${side.asset.symbol} has ${side.token.decimals} decimals`)
    return toUnits(amount.value, side.token.decimals).toString()
  }
  const held = heldOf(side.asset, context).find(({ chainId }) => chainId === side.chainId)
  const units = held && partOf(held.units, amount)
  return units === undefined || units === 0n
    ? stop(`Your wallet holds no ${side.asset.symbol} there`)
    : units.toString()
}

/**
 * Returns the dollars that the user said, or the dollars that the wanted amount of the bought asset costs, rounded up
 * to a cent.
 */
function amountInUsd(context: FormulaContext): string | undefined | Problem {
  const { slots, outputs } = context
  const amount = parseAmount(slots.amount)
  if (amount?.kind === 'usd') return amount.value
  const { in: paid, out } = sidesOf(slots)
  if (amount?.kind !== 'token' || amount.symbol !== out || out === paid) return undefined
  const price = priceOf(out, outputs)
  if (price === undefined)
    return stop(`There is no price of ${out} by which to count. Say the amount in dollars.`)
  const cents = mulDiv(toUnits(amount.value, 18) * toUnits(price, 18), 1n, 10n ** 34n, 'up')
  return fromUnits(cents, 2)
}

/** Returns the mark price of a symbol at the venue; the symbol has to match exactly. */
export function priceOf(symbol: string, outputs: FormulaContext['outputs']): string | undefined {
  for (const [step, field] of [
    ['perp', 'mark_price'],
    ['spot', 'price'],
  ] as const) {
    const found = rowsAt(outputOf(outputs, step), '/markets').find(
      ({ row }) => (step === 'perp' ? row.symbol : row.base) === symbol,
    )
    const price = found && textAt(found.row, `/${field}`)
    if (price !== undefined && isDecimal(price)) return price
  }
  return undefined
}

/**
 * Converts a fraction to basis points, rounded down, so that a swap never allows more slippage than the user said.
 */
const basisPoints = (fraction: string | undefined): number | undefined =>
  fraction === undefined ? undefined : Number(rescale(toUnits(fraction, 18), 18, 4))

const leg = (text: string | undefined): JsonObject | undefined => {
  if (text === undefined) return undefined
  const fraction = fractionText(text)
  return fraction === undefined ? { price_usd: text } : { price_percentage: fraction }
}

const hookSide = (context: FormulaContext): { chainId: string; token: TokenPlace } | Problem => {
  const { slots, names } = context
  const asset = assetNamed(slots.asset, names)
  if (!asset) return stop('The asset is not listed')
  const held = slots.chain === undefined && asset.tokens.length > 1 ? heldOf(asset, context) : []
  if (held.length > 1) return chainQuestion(asset, held, names)
  const chainId = slots.chain ?? (asset.tokens.length === 1 ? asset.tokens[0]?.chainId : held[0]?.chainId)
  const token = chainId === undefined ? undefined : tokenOn(asset, chainId)
  return chainId !== undefined && token ? { chainId, token } : stop(`Your wallets hold no ${asset.symbol}`)
}

const legsOf = (text: string | undefined, share: string | undefined): JsonObject[] | undefined => {
  const one = leg(text)
  if (!one) return undefined
  const amount = parseAmount(share)
  const sold =
    amount?.kind === 'share' ? fromUnits(mulDiv(10n ** 6n, amount.over, amount.under), 6) : undefined
  if (sold !== undefined) one.sell_percentage = sold
  return [one]
}

const field = <Key extends 'chainId' | 'address'>(
  side: { chainId: string; token: TokenPlace } | Problem,
  key: Key,
): string | Problem => (isProblem(side) ? side : key === 'chainId' ? side.chainId : side.token.address)

export const swapFormulas = {
  chain_in: (context) => chainIn(context),
  chain_out: ({ slots }) => slots.chain_out,
  token_in: (context) => field(tokenIn(context), 'address'),
  token_out: (context) => field(tokenOut(context), 'address'),
  trigger_token: (context) =>
    field(context.slots.side === 'buy' ? tokenOut(context) : tokenIn(context), 'address'),
  amount_in_units: amountInUnits,
  amount_in_usd: amountInUsd,
  slippage_bps: ({ slots }) => basisPoints(fractionText(slots.slippage)),
  stop_leg: ({ slots }) => leg(slots.stop),
  target_leg: ({ slots }) => leg(slots.target),
  quote_id: ({ outputs }) => textAt(outputOf(outputs, 'preview'), '/quote/quote_id'),
  hook_chain: (context) => field(hookSide(context), 'chainId'),
  hook_token: (context) => field(hookSide(context), 'address'),
  stop_legs: ({ slots }) => legsOf(slots.stop, slots.share),
  target_legs: ({ slots }) => legsOf(slots.target, slots.share),
  trailing_fraction: ({ slots }) => fractionText(slots.trailing),
} satisfies Record<string, Formula>
export type SwapFormulaName = keyof typeof swapFormulas
