import type { Asset, NamedChain, Names } from './asset-and-chain-names.ts'
import { countingWords, placeWords } from './english/word-lists.ts'
import { type Concept, list } from './feature-rules.ts'
import type { Quantity } from './quantity.ts'
import { has, type Token } from './tag.ts'

/** The facts about a whole clause that the reading of one token needs. */
type ClauseFacts = {
  assets: ReadonlySet<Asset>
  compares: boolean
  namesPlace: boolean
  isAlone: boolean
  /** Whether a chain stands behind `from`. */
  hasOrigin: boolean
}
/** A reader holds the tokens of a clause, and which of them a slot has taken. */
export type Reader = {
  tokens: readonly Token[]
  taken: Set<number>
  names: Names
  head: readonly Concept[]
  facts(): ClauseFacts
}
export type Slots = Record<string, string>

export function createReader(tokens: readonly Token[], names: Names, head: readonly Concept[]): Reader {
  let facts: ClauseFacts | undefined
  return {
    tokens,
    taken: new Set(),
    names,
    head,
    facts() {
      facts ??= factsOf(tokens)
      return facts
    },
  }
}

const factsOf = (tokens: readonly Token[]): ClauseFacts => ({
  assets: new Set(tokens.flatMap(({ asset }) => asset ?? [])),
  compares: tokens.some((token) => has(token, 'COMPARE')),
  namesPlace: tokens.some((token) => has(token, ...onChain)),
  isAlone: tokens.filter((token) => token.kind !== 'mark' && !has(token, 'FILLER', 'OVERRIDE')).length === 1,
  hasOrigin: hasOrigin(tokens),
})

function hasOrigin(tokens: readonly Token[]): boolean {
  let before: Token | undefined
  for (const token of tokens) {
    if (token.chain !== undefined && has(before, 'FROM')) return true
    if (!filler(token)) before = token
  }
  return false
}

export const quantityAt = ({ tokens, taken }: Reader, at: number): Quantity | undefined =>
  taken.has(at) ? undefined : tokens[at]?.quantity

const filler = (token: Token | undefined): boolean =>
  has(token, 'FILLER', 'MINE') && token?.quantity === undefined

/** Returns the token before or after a position, skipping articles and fillers. */
export function neighbour({ tokens }: Reader, at: number, step: 1 | -1): Token | undefined {
  let next = at + step
  while (filler(tokens[next])) next += step
  return tokens[next]
}

const expecting = list(
  'ON OF BUY SELL SWAP LONG SHORT CLOSE PRICE FUNDING COMPARE HAVE TO CHART REDUCE SCAM SUPPORTED',
)
const describing = list(
  'SUPPORTED SCAM UP DOWN PRICE CHART POSITION FUNDING ORDERS LONG SHORT PERP COMPARE CHANGE TOKENWORD',
)

/** Whether the word before a name counts it, as in `any link` or `how many link`. */
export const isCounting = (token: Token | undefined): boolean => countingWords.has(token?.words ?? '')

/** Returns the asset at a position. A symbol that is an English word too counts only where an asset is expected. */
export function assetAt(reader: Reader, at: number): Asset | undefined {
  const token = reader.tokens[at]
  if (!token?.asset || reader.taken.has(at)) return undefined
  if (!token.isCommon) return token.asset
  const before = reader.tokens[at - 1]
  if (has(before, 'ARTICLE')) return undefined
  const previous = neighbour(reader, at, -1)
  const next = reader.tokens[at + 1]
  const isExpected =
    before?.quantity !== undefined || has(before, 'MINE', ...expecting) || has(previous, ...expecting)
  const isDescribed = has(next, ...describing) || next?.asset !== undefined || next?.chain !== undefined
  // In `compare arb with link` the word behind `with` is an asset.
  const isCounted = isCounting(before) || (has(before, 'PAYWITH') && reader.facts().compares)
  return isExpected || isCounted || isDescribed || reader.facts().isAlone ? token.asset : undefined
}

export type Role = 'from' | 'to' | 'on' | undefined
/** Returns the role that the preposition before a token gives it. */
export function roleOf(reader: Reader, at: number): Role {
  const token = neighbour(reader, at, -1)
  if (has(token, 'FROM')) return 'from'
  if (has(token, 'TO') && !has(token, 'AS')) return has(token, 'IN') ? 'on' : 'to'
  return has(token, 'ON', 'PAYWITH') ? 'on' : undefined
}

const onChain = list(
  'HAVE ADDRESS GAS CHAINWORD PORTFOLIO SCAM SUPPORTED MOVE BRIDGE BUY SELL SWAP GETS QUOTEWORD RECHARGE',
)
const places = list('CHAINWORD ADDRESS')
/**
 * Returns the chain at a position. A word that names a chain and a coin is a chain if the words around it say so.
 */
export function chainAt(
  reader: Reader,
  at: number,
  { moves, isReply = false }: { moves: boolean; isReply?: boolean } = { moves: false },
): NamedChain | undefined {
  const token = reader.tokens[at]
  if (!token?.chain || reader.taken.has(at)) return undefined
  const role = roleOf(reader, at)
  if (!token.asset) {
    // The word `base` alone, without a preposition, is no chain.
    const isOrigin = has(reader.tokens[at + 1], 'TO') && reader.tokens[at + 2]?.chain !== undefined
    return role !== undefined || isOrigin || !token.isCommon || has(reader.tokens[at + 1], ...places)
      ? token.chain
      : undefined
  }
  const next = reader.tokens[at + 1]
  if (has(next, ...places) || placeWords.has(next?.words ?? '')) return token.chain
  const preposition = neighbour(reader, at, -1)
  // `off my eth long` names a position.
  if (role === 'from') return next?.isNoun || has(next, 'POSITION') ? undefined : token.chain
  if (has(preposition, 'ON')) {
    const isSymbol = token.asset.symbol.toLowerCase() === token.words
    // In `funding on sol and hype` the names are coins, not chains.
    const joint = has(next, 'AND') || next?.words === ','
    if (isSymbol && joint && reader.tokens[at + 2]?.asset !== undefined) return undefined
    if (isReply && !isSymbol) return token.chain
    const { assets, namesPlace } = reader.facts()
    return assets.size > 1 || (!isSymbol && namesPlace) ? token.chain : undefined
  }
  if (has(preposition, 'IN')) return undefined
  // `swap usdc to eth` names a coin, where nothing says that the coin leaves a chain.
  const isSymbol = token.asset.symbol.toLowerCase() === token.words
  const leaves =
    ['BRIDGE', 'MOVE'].some((verb) => reader.head.includes(verb as Concept)) || reader.facts().hasOrigin
  return role === 'to' && moves && (leaves || !isSymbol) ? token.chain : undefined
}

export const take = ({ taken }: Reader, ...at: readonly number[]): void => {
  for (const index of at) taken.add(index)
}

/**
 * Returns the first position from `from` on whose token satisfies `holds` and was taken by no slot; -1 if there is
 * none.
 */
export function indexWhere(
  { tokens, taken }: Reader,
  holds: (token: Token, at: number) => boolean,
  from = 0,
): number {
  for (let at = from; at < tokens.length; at++) {
    const token = tokens[at]
    if (token && !taken.has(at) && holds(token, at)) return at
  }
  return -1
}

export const indexOf = (reader: Reader, ...concepts: readonly Concept[]): number =>
  indexWhere(reader, (token) => has(token, ...concepts))

/** Returns the values that no slot has taken: if one is left, nobody knows what the order meant. */
export const leftOver = (reader: Reader): Token[] =>
  reader.tokens.filter(
    (token, at) =>
      !reader.taken.has(at) &&
      (token.kind === 'quantity' ||
        has(token, 'REST') ||
        token.kind === 'address' ||
        token.kind === 'uuid' ||
        token.kind === 'unclear' ||
        token.kind === 'quoted' ||
        assetAt(reader, at) !== undefined ||
        chainAt(reader, at) !== undefined),
  )
