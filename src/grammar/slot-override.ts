import { findAmount } from './amounts.ts'
import { dollarSymbol, type Names } from './asset-and-chain-names.ts'
import { assetPositions, readChains } from './asset-readers.ts'
import { createReader, leftOver, type Reader, type Slots, take } from './clause-reader.ts'
import type { Frame } from './intent-frame.ts'
import * as orderTerms from './order-terms.ts'
import { parseAmount } from './parse-amount-text.ts'
import type { Quantity, QuantityUnit } from './quantity.ts'
import { has, type Token } from './tag.ts'
import { readPeriod, readTimeframe } from './times.ts'

/** Reads the values of a short message into the slots of the question or the request before it. */

/** Returns the slot that a new asset fills: the new asset replaces the traded asset, never the dollars that pay. */
function assetSlot(frame: Frame, slots: Slots): string | undefined {
  for (const slot of ['assets', 'asset', 'token']) if (frame.slots.includes(slot)) return slot
  if (!frame.slots.includes('asset_out')) return undefined
  return slots.asset_in !== undefined && slots.asset_in !== dollarSymbol && slots.asset_out === dollarSymbol
    ? 'asset_in'
    : 'asset_out'
}

function withAmount(reader: Reader, frame: Frame, slots: Slots): void {
  const amount = findAmount(reader)
  if (!amount || !frame.slots.includes('amount')) return
  const before = parseAmount(slots.amount)
  // A frame without a plan only asks in which market to trade, so its amount is not converted to dollars.
  const isDollars = frame.plan !== undefined && frame.readers.includes('dollars')
  if (amount.kind !== 'number')
    slots.amount =
      isDollars && amount.text.endsWith(` ${dollarSymbol}`)
        ? amount.text.replace(dollarSymbol, 'usd')
        : amount.text
  else if (before?.kind === 'token') slots.amount = `${amount.text} ${before.symbol}`
  else if (before?.kind === 'usd' || isDollars) slots.amount = `${amount.text} usd`
  else return
  take(reader, amount.at)
  if (amount.asset >= 0) take(reader, amount.asset)
}

/** Takes the value that answers a question, if it has one of the given units. */
function takeValue(reader: Reader, units: readonly QuantityUnit[]): Quantity | undefined {
  const at = reader.tokens.findIndex(({ quantity }) => quantity && units.includes(quantity.unit))
  if (at >= 0) take(reader, at)
  return reader.tokens[at]?.quantity
}

const movesBetweenChains = ({ required = [] }: Frame): boolean =>
  required.some(({ name }) => name === 'chain_out')

/** Returns the slots with the new values of a short message in them; undefined if some value has no slot. */
export function override(
  frame: Frame,
  before: Slots,
  tokens: readonly Token[],
  { names, asked, nowMs }: { names: Names; asked?: string; nowMs: number },
): Slots | undefined {
  const reader = createReader(tokens, names, [])
  const slots: Slots = { ...before }
  orderTerms.readLeverage(reader, slots)
  orderTerms.readSlippage(reader, slots)
  orderTerms.readLegs(reader, slots)
  if (asked === 'price' || frame.waitsForPrice) orderTerms.readPrice(reader, slots)
  if (asked === 'stop' && slots.stop === undefined && slots.target === undefined) {
    const quantity = takeValue(reader, ['percent', 'number', 'usd'])
    if (quantity)
      slots.stop = quantity.unit === 'percent' ? `${quantity.value.replace(/^-/, '')}%` : quantity.value
  }
  if (asked === 'price' && slots.price === undefined) {
    const quantity = takeValue(reader, ['number', 'usd'])
    if (quantity)
      Object.assign(slots, { price: quantity.value, condition: slots.side === 'sell' ? 'gte' : 'lte' })
  }
  const all = reader.tokens.findIndex((token) => has(token, 'ALL'))
  if (frame.slots.includes('all') && all >= 0) {
    take(reader, all)
    slots.all = 'yes'
  }
  withAmount(reader, frame, slots)
  const chains: Slots = {}
  readChains(reader, chains, {
    isReply: frame.slots.includes('chain'),
    moves: frame.slots.includes('chain_out') && (asked === 'chain_out' || movesBetweenChains(frame)),
  })
  const onlyChain = asked === 'chain_out' && chains.chain_out === undefined ? chains.chain : undefined
  if (onlyChain !== undefined) slots.chain_out = onlyChain
  else Object.assign(slots, chains)
  if ((asked === 'chain' || asked === 'chain_out') && Object.keys(chains).length === 0) {
    // The answer to "which chain" may be a name that is a coin elsewhere, such as `solana`.
    const at = reader.tokens.findIndex((token) => token.chain !== undefined)
    const chain = reader.tokens[at]?.chain
    if (chain) {
      take(reader, at)
      slots[asked] = chain.id
    }
  }
  const slot =
    asked !== undefined && ['asset', 'asset_in', 'asset_out', 'assets', 'token'].includes(asked)
      ? asked
      : assetSlot(frame, before)
  const found = assetPositions(reader)
  if (slot !== undefined && found.length > 0) {
    const symbols = [...new Set(found.map((at) => reader.tokens[at]?.asset?.symbol ?? ''))]
    if (slot !== 'assets' && symbols.length > 1) return undefined
    take(reader, ...found)
    const old = slots[slot]
    slots[slot] = symbols.join(',')
    // An amount that counts the replaced asset means nothing any more.
    if (old !== undefined && slots.amount?.endsWith(` ${old}`) && slots.amount === before.amount)
      delete slots.amount
  }
  if (frame.slots.includes('venue')) {
    if (reader.tokens.some((token) => has(token, 'PERP'))) slots.venue = 'perp'
    if (reader.tokens.some((token) => has(token, 'SPOT'))) slots.venue = 'spot'
  }
  if (frame.slots.includes('timeframe')) readTimeframe(reader, slots)
  if (frame.slots.includes('period')) readPeriod(reader, slots, nowMs)
  for (const name of Object.keys(slots))
    if (!frame.slots.includes(name) && before[name] === undefined) delete slots[name]
  if (leftOver(reader).length > 0) return undefined
  return Object.keys(slots).some((name) => slots[name] !== before[name]) ? slots : undefined
}
