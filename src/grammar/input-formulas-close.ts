import { canonicalAddress } from '#kernel/money/chains.ts'
import { isDecimal } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { isOfOrderKind } from './answer-row-filters.ts'
import { assetNamed } from './asset-and-chain-names.ts'
import { type Formula, type FormulaContext, isProblem, type Problem, stop } from './input-formula.ts'
import { legPrice, marketOf } from './input-formulas-venue.ts'
import { parseAmount, partOfDecimal } from './parse-amount-text.ts'
import { outputOf, rowsAt, textAt } from './step-outputs.ts'

/**
 * Fills the fields that close positions, leave the vault or cancel orders, from the positions and orders that
 * exist.
 */

const positionsMax = 5

const positions = ({ outputs }: FormulaContext): JsonObject[] =>
  rowsAt(outputOf(outputs, 'orders'), '/positions').map(({ row }) => row)

/** Returns the position that the user named, or the only position. */
function positionOf(context: FormulaContext): JsonObject | Problem {
  if (context.row) return context.row
  const found = positions(context)
  if (context.slots.asset !== undefined)
    return (
      found.find(({ asset }) => asset === context.slots.asset) ??
      stop(`There is no open position in ${context.slots.asset}: ask "my positions" for those that are open.`)
    )
  const [only, ...others] = found
  if (!only)
    return stop(
      'There is no open position: a position is opened by an order such as "long eth fifty dollars".',
    )
  if (others.length === 0) return only
  return {
    problem: 'ask',
    slot: 'asset',
    question: 'Which position?',
    choices: found
      .slice(0, positionsMax)
      .map(({ asset }) => ({ label: String(asset), fill: { asset: String(asset) } })),
  }
}

const closeAsset: Formula = (context) => {
  const position = positionOf(context)
  return isProblem(position) ? position : position.asset
}

/**
 * Returns the size to close; undefined closes the whole position. A share, such as half, is rounded down to the decimal
 * places that the market allows for sizes.
 */
const closeSize: Formula = (context) => {
  const { slots } = context
  const amount = parseAmount(slots.amount)
  if (!amount || amount.kind === 'all') return undefined
  const position = positionOf(context)
  if (isProblem(position)) return position
  if (amount.kind === 'token')
    return amount.symbol === position.asset ? amount.value : stop(`The amount counts ${amount.symbol}.`)
  if (amount.kind === 'usd')
    return stop('Say how much to close as a share or in the coin, such as "half" or "0.5 ETH".')
  const size = textAt(position, '/size')
  const market = marketOf(position.asset, context.outputs)
  const places = typeof market?.size_decimals === 'number' ? market.size_decimals : undefined
  const part = size !== undefined && isDecimal(size) ? partOfDecimal(size, amount, places) : undefined
  if (part === undefined) return stop('The size of the position is unknown.')
  return part === '0' ? stop('That part of the position is smaller than the venue trades.') : part
}

/**
 * Returns all open positions if the user said all and named no asset; otherwise the position of the named asset, or the
 * only position.
 */
const positionsToClose: Formula = (context) => {
  const { slots } = context
  if (slots.asset !== undefined || slots.amount !== 'all') {
    const position = positionOf(context)
    return isProblem(position) ? position : [position]
  }
  const found = positions(context)
  if (found.length > positionsMax)
    return stop(`There are more than ${positionsMax} positions: name those to close.`)
  return found.length === 0
    ? stop('There is no open position: a position is opened by an order such as "long eth fifty dollars".')
    : found
}

function positionLeg(context: FormulaContext, leg: 'stop' | 'target'): string | undefined | Problem {
  const position = positionOf(context)
  if (isProblem(position)) return position
  const reference = textAt(position, '/entry_price') ?? textAt(position, '/mark_price')
  return legPrice(context.slots[leg], reference, {
    isAbove: (position.side === 'long') === (leg === 'target'),
    placesMax: 6,
  })
}

const activePositions = ({ outputs }: FormulaContext): JsonObject[] =>
  rowsAt(outputOf(outputs, 'earn'), '/positions')
    .map(({ row }) => row)
    .filter(({ status }) => status === 'active')

/**
 * Returns the positions in the vault that the message withdraws: the only one, or, if there are several, all of them where
 * the user said "everything". Otherwise the user is asked which one is meant.
 */
const positionsToWithdraw: Formula = (context) => {
  const found = activePositions(context)
  const [only, ...others] = found
  if (!only)
    return stop('There is nothing in the vault: "deposit fifty usdc into the vault" puts something there.')
  if (others.length === 0) return [only]
  if (context.slots.amount === 'all') return found.slice(0, positionsMax)
  return stop('There are several positions in the vault: say "everything", or name one over the interface.')
}

const earnAmount: Formula = ({ slots, row }) => {
  const amount = parseAmount(slots.amount)
  if (amount?.kind === 'usd') return amount.value
  if (!amount || amount.kind === 'token') return stop('The vault pays USDC. Say the amount in dollars.')
  if (amount.kind === 'all' || amount.kind === 'rest') return null
  const value = row && textAt(row, '/current_value_usdc')
  const part = value !== undefined && isDecimal(value) ? partOfDecimal(value, amount, 6) : undefined
  return part ?? stop('The value of the position is unknown.')
}

const isOnChain = (row: JsonObject, { chain }: FormulaContext['slots']): boolean =>
  chain === undefined || [row.chain_id, row.chain_id_in, row.chain_id_out].includes(chain)

/** Returns the ids of hooks and limit orders of an asset or of a kind. */
function outstandingIds({ slots, outputs, names }: FormulaContext): string[] {
  if (slots.id !== undefined) return [slots.id]
  const asset = assetNamed(slots.asset, names)
  const addresses = new Set(asset?.tokens.map(({ address }) => canonicalAddress(address)))
  const concerns = (row: JsonObject): boolean =>
    [row.token_address, row.token_in, row.token_out].some(
      (address) => typeof address === 'string' && addresses.has(canonicalAddress(address)),
    )
  return rowsAt(outputOf(outputs, 'outstanding'), '/outstanding_orders').flatMap(({ row }) => {
    const isKind =
      slots.venue === undefined || row.order_kind === (slots.venue === 'limit' ? 'limit_order' : 'hook')
    return isKind && (!asset || concerns(row)) && isOnChain(row, slots) && typeof row.id === 'string'
      ? [row.id]
      : []
  })
}
const isEverything = ({ asset, venue, id, chain }: FormulaContext['slots']): boolean =>
  asset === undefined && venue === undefined && id === undefined && chain === undefined

/** Returns the orders at the venue that a cancel means, as they were read. */
const ordersMeant = ({ slots, outputs }: FormulaContext, step: 'orders' | 'spot'): JsonObject[] =>
  rowsAt(outputOf(outputs, step), '/orders')
    .map(({ row }) => row)
    .filter((row) => (slots.asset === undefined || row.asset === slots.asset) && isOfOrderKind(row, slots))

/**
 * Returns whether any order matches. If the user spoke of one order and several orders of the asset wait, asks first
 * whether to cancel all of them.
 */
function unlessSeveral(context: FormulaContext, matching: number): boolean | Problem {
  const holds = matching > 0
  const { slots } = context
  if (slots.one === undefined || slots.all !== undefined) return holds
  const atVenue = (['orders', 'spot'] as const).flatMap((step) => ordersMeant(context, step))
  if (atVenue.length + outstandingIds(context).length <= 1) return holds
  return {
    problem: 'ask',
    slot: 'all',
    question: `Several orders of ${slots.asset} wait. Cancel all of them?`,
    choices: [{ label: 'all of them', fill: { all: 'yes' } }],
  }
}

const hasOrders =
  (step: 'orders' | 'spot'): Formula =>
  (context) =>
    context.outputs[step] === undefined || unlessSeveral(context, ordersMeant(context, step).length)

const hasId =
  (step: 'orders' | 'spot'): Formula =>
  ({ slots, outputs }) =>
    outputs[step] === undefined ||
    rowsAt(outputOf(outputs, step), '/orders').some(({ row }) => row.order_id === slots.id)

export const closeFormulas = {
  close_asset: closeAsset,
  close_size: closeSize,
  positions_to_close: positionsToClose,
  position_stop: (context) => positionLeg(context, 'stop'),
  position_target: (context) => positionLeg(context, 'target'),
  positions_to_withdraw: positionsToWithdraw,
  earn_position: ({ row }) => row?.id ?? stop('There is no such position.'),
  earn_amount: earnAmount,
  outstanding_ids: (context) => (isEverything(context.slots) ? undefined : outstandingIds(context)),
  all_outstanding: ({ slots }) => (isEverything(slots) ? true : undefined),
  has_outstanding: (context) =>
    (context.outputs.outstanding === undefined && isEverything(context.slots)) ||
    unlessSeveral(context, outstandingIds(context).length),
  has_perp_orders: hasOrders('orders'),
  has_spot_orders: hasOrders('spot'),
  has_perp_id: hasId('orders'),
  has_spot_id: hasId('spot'),
  perp_orders_of_kind: (context) => ordersMeant(context, 'orders'),
  spot_orders_of_kind: (context) => ordersMeant(context, 'spot'),
  row_order_id: ({ row }) => row?.order_id ?? stop('There is no such order.'),
} satisfies Record<string, Formula>
export type CloseFormulaName = keyof typeof closeFormulas
