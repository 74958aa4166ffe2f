import { type Amount, findAmount } from './amounts.ts'
import { dollarSymbol } from './asset-and-chain-names.ts'
import { assetPositions, symbolOf } from './asset-readers.ts'
import { neighbour, type Reader, type Slots, take } from './clause-reader.ts'
import { list } from './feature-rules.ts'
import { has } from './tag.ts'

/** Reads which asset of an order is sold and which is bought. */

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
