import { isDecimal, toUnits } from '#kernel/money/money.ts'
import { dollarSymbol } from './asset-and-chain-names.ts'
import {
  assetAt,
  chainAt,
  indexOf,
  indexWhere,
  neighbour,
  quantityAt,
  type Reader,
  roleOf,
  type Slots,
  take,
} from './clause-reader.ts'
import { list } from './feature-rules.ts'
import { type Quantity, quantityText } from './quantity.ts'
import { has } from './tag.ts'

/**
 * Reads amounts, assets and chains of an order: which asset a number counts, which asset is sold and which is bought.
 */

const isShare = ({ unit }: Quantity): boolean => unit === 'share' || unit === 'percent'

/**
 * Returns the position of the asset that a number counts: the next word, apart from `of`, `worth of` and articles.
 */
function countedAsset(reader: Reader, at: number): number {
  for (let next = at + 1; next <= at + 3; next++) {
    if (assetAt(reader, next)) return next
    if (!has(reader.tokens[next], 'FILLER', 'OF', 'MINE', 'TOKENWORD')) return -1
  }
  return -1
}

export type Amount = { text: string; at: number; asset: number; kind: 'usd' | 'token' | 'share' | 'number' }

/** Whether a number can be an amount: zero, a negative number and a share of more than all cannot. */
function isPossible({ unit, value }: Quantity): boolean {
  if (unit === 'share') return Number(value.split('/')[0]) <= Number(value.split('/')[1])
  if (!isDecimal(value)) return false
  const units = toUnits(value, 18)
  return units > 0n && (unit !== 'percent' || units <= toUnits('100', 18))
}

/** Finds the first amount of a clause, with the asset that it counts. */
export function findAmount(reader: Reader): Amount | undefined {
  const at = indexWhere(
    reader,
    ({ quantity }) =>
      quantity !== undefined && (['usd', 'number'].includes(quantity.unit) || isShare(quantity)),
  )
  const all = indexOf(reader, 'ALL')
  const rest = indexOf(reader, 'REST')
  const quantity = quantityAt(reader, at)
  if (quantity && (all < 0 || !isShare(quantity))) {
    if (!isPossible(quantity)) return undefined
    const asset = countedAsset(reader, at)
    const symbol = reader.tokens[asset]?.asset?.symbol
    if (quantity.unit === 'usd' || isShare(quantity))
      return { text: quantityText(quantity), at, asset, kind: quantity.unit === 'usd' ? 'usd' : 'share' }
    // A number right before a symbol counts that asset. In `100 of btc` the number may count dollars or coins, so its
    // kind is `number`.
    const isCounted = symbol !== undefined && !has(reader.tokens[at + 1], 'OF')
    return isCounted
      ? { text: `${quantity.value} ${symbol}`, at, asset, kind: 'token' }
      : { text: quantity.value, at, asset, kind: 'number' }
  }
  const word = rest >= 0 ? rest : all
  if (word < 0) return undefined
  return { text: rest >= 0 ? 'rest' : 'all', at: word, asset: countedAsset(reader, word), kind: 'share' }
}

const symbolOf = (reader: Reader, at: number): string | undefined => reader.tokens[at]?.asset?.symbol

/** Returns the positions of all assets of a clause, in spoken order. */
export function assetPositions(reader: Reader): number[] {
  return reader.tokens.flatMap((_, at) => (assetAt(reader, at) && !chainAt(reader, at) ? [at] : []))
}

export function readAssets(reader: Reader, slots: Slots): void {
  const found = assetPositions(reader)
  const symbols = [...new Set(found.map((at) => symbolOf(reader, at) ?? ''))]
  if (symbols.length === 0) return
  take(reader, ...found)
  slots.assets = symbols.join(',')
}

export function readAsset(reader: Reader, slots: Slots): void {
  takeAsset(reader, slots, assetPositions(reader)[0])
}

/** Fills the slot with an asset; if a clause names an asset twice, both places count as that one asset. */
export function takeAsset(reader: Reader, slots: Slots, at: number | undefined): void {
  if (at === undefined) return
  slots.asset = symbolOf(reader, at) ?? ''
  take(reader, ...assetPositions(reader).filter((other) => symbolOf(reader, other) === slots.asset))
}

/** Reads chains by their prepositions: from a chain, on a chain, to a chain. */
export function readChains(
  reader: Reader,
  slots: Slots,
  { moves, isReply = false }: { moves: boolean; isReply?: boolean },
): void {
  for (const at of reader.tokens.keys()) {
    const chain = chainAt(reader, at, { moves, isReply })
    if (!chain) continue
    const role = roleOf(reader, at)
    const slot = role === 'to' && moves ? 'chain_out' : 'chain'
    if (slots[slot] === undefined) {
      slots[slot] = chain.id
      take(reader, at)
    } else if (slots[slot] === chain.id) take(reader, at)
    else if (moves && slot === 'chain' && slots.chain_out === undefined) {
      slots.chain_out = chain.id
      take(reader, at)
    }
  }
}

export function readAddress(reader: Reader, slots: Slots, slot: string): void {
  const at = indexWhere(reader, ({ kind }) => kind === 'address')
  if (at < 0) return
  take(reader, at)
  slots[slot] = reader.tokens[at]?.text ?? ''
}

export function readId(reader: Reader, slots: Slots): void {
  const at = indexWhere(reader, ({ kind, quantity }) => kind === 'uuid' || quantity?.unit === 'id')
  const token = reader.tokens[at]
  if (!token) return
  take(reader, at)
  slots.id = token.kind === 'uuid' ? token.words : (token.quantity?.value ?? '')
}

/** Reads the amount of a slot that counts dollars: USDC are dollars there, and a bare number means dollars too. */
export function readDollars(reader: Reader, slots: Slots): void {
  const amount = findAmount(reader)
  const dollars = assetPositions(reader).filter((at) => symbolOf(reader, at) === dollarSymbol)
  if (!amount) {
    take(reader, ...dollars)
    return
  }
  const symbol = symbolOf(reader, amount.asset)
  take(reader, amount.at)
  if (symbol === dollarSymbol) take(reader, amount.asset)
  if (amount.kind === 'token') {
    const [value = '', counted] = amount.text.split(' ')
    slots.amount = counted === dollarSymbol ? `${value} usd` : amount.text
  } else slots.amount = amount.kind === 'number' ? `${amount.text} usd` : amount.text
  take(reader, ...dollars)
}

/** Reads one asset and its amount, as orders at the venue have them. */
export function readSized(reader: Reader, slots: Slots): void {
  const amount = findAmount(reader)
  const positions = assetPositions(reader)
  const isDollar = (at: number) => symbolOf(reader, at) === dollarSymbol
  takeAsset(
    reader,
    slots,
    positions.find((at) => !isDollar(at)),
  )
  // `100 of btc` and `btc 100` do not say whether dollars or coins are counted.
  if (!amount || amount.kind === 'number') return
  take(reader, amount.at)
  if (amount.asset >= 0 && isDollar(amount.asset)) {
    take(reader, amount.asset)
    slots.amount = amount.kind === 'token' ? `${amount.text.split(' ')[0]} usd` : amount.text
  } else slots.amount = amount.text
}

type Pair = { in?: number; out?: number }

function pairOf(reader: Reader, amount: Amount | undefined): Pair {
  const positions = assetPositions(reader)
  const roles = new Map(positions.map((at) => [at, roleOfAsset(reader, at)]))
  // `what would it cost to buy 2 link` is no order, but its number counts the asset that would be bought.
  const buying = list(reader.head.length > 0 ? 'BUY_' : 'BUY_ BUY')
  const isBuy = reader.head.includes('BUY') || reader.tokens.some((token) => has(token, ...buying))
  const isSell = reader.head.includes('SELL') || reader.tokens.some((token) => has(token, 'SELL_'))
  const out = positions.find((at) => roles.get(at) === 'out')
  const paid = positions.find((at) => roles.get(at) === 'in')
  const counted = amount && amount.asset >= 0 && positions.includes(amount.asset) ? amount.asset : undefined
  // A clause with `to` before two assets does not say which of them is to be bought.
  if (positions.filter((at) => roles.get(at) === 'out').length > 1) return {}
  const others = positions.filter((at) => at !== out && at !== paid)
  if (isBuy && !isSell) {
    // `buy 300 usdc of eth` counts the asset that pays; `buy 2 link` counts the asset that is bought.
    const isCount = amount?.kind === 'token' || amount?.kind === 'share'
    const isPaid =
      isCount && counted !== undefined && (paid === counted || (paid === undefined && others.length > 1))
    // `buy half of my bonk` says a share, but of no asset that pays.
    if (amount?.kind === 'share' && !isPaid) return {}
    if (isPaid) return { in: counted, ...rest(others.find((at) => at !== counted)) }
    const bought = counted !== undefined && counted !== paid ? counted : (others[0] ?? out)
    return { ...(paid === undefined ? {} : { in: paid }), ...rest(bought) }
  }
  if (counted !== undefined && (amount?.kind !== 'usd' || isSell || positions.length > 1)) {
    const second = out !== undefined && out !== counted ? out : others.find((at) => at !== counted)
    return { in: counted, ...rest(second) }
  }
  if (amount?.kind === 'usd' && !isSell && others.length + (out === undefined ? 0 : 1) === 1)
    return rest(out ?? others[0])
  const source = paid ?? others[0]
  const second = out ?? others.find((at) => at !== source)
  return { ...(source === undefined ? {} : { in: source }), ...rest(second) }
}

const rest = (out: number | undefined): { out?: number } => (out === undefined ? {} : { out })

function roleOfAsset(reader: Reader, at: number): 'in' | 'out' | undefined {
  const token = neighbour(reader, at, -1)
  if (has(token, 'PAYWITH') || has(token, 'FROM')) return 'in'
  const before = reader.tokens[at - 1]
  const behind = reader.tokens.slice(Math.max(0, at - 3), at)
  if (has(token, 'IN') && behind.some((each) => has(each, 'OWNED'))) return 'in'
  if (has(token, 'FOR') && before?.quantity !== undefined) return 'in'
  return has(token, 'TO') ? 'out' : undefined
}

/**
 * Reads the asset that is sold, the asset that is bought, and the amount. The other side of a single asset is the
 * dollar.
 */
export function readPair(reader: Reader, slots: Slots): void {
  const amount = findAmount(reader)
  const pair = pairOf(reader, amount)
  const given = { in: symbolOf(reader, pair.in ?? -1), out: symbolOf(reader, pair.out ?? -1) }
  const isSell = reader.head.includes('SELL') || reader.tokens.some((token) => has(token, 'SELL_'))
  const isSwap = reader.head.includes('SWAP') || reader.tokens.some((token) => has(token, 'SWAP_', 'SWAP'))
  for (const at of [pair.in, pair.out]) if (at !== undefined) take(reader, at)
  if (amount && amount.kind !== 'number') {
    take(reader, amount.at)
    slots.amount = amount.text
  }
  if (given.in !== undefined) slots.asset_in = given.in
  if (given.out !== undefined) slots.asset_out = given.out
  // An order of a share, such as all or half, has to name the asset that pays; the dollar is not assumed.
  const isPart = amount?.kind === 'share'
  if (given.out !== undefined && given.in === undefined && given.out !== dollarSymbol && !isPart)
    slots.asset_in = dollarSymbol
  const isBuy = reader.head.includes('BUY')
  if (isBuy && given.in === undefined && !isPart) slots.asset_in = dollarSymbol
  // `swap my eth` does not say into which asset; `sell my eth` means dollars.
  if (
    given.in !== undefined &&
    given.out === undefined &&
    given.in !== dollarSymbol &&
    (isSell || !isSwap) &&
    !isBuy
  )
    slots.asset_out = dollarSymbol
}
