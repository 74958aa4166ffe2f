import { assetAt, chainAt, indexWhere, type Reader, roleOf, type Slots, take } from './clause-reader.ts'

/** Reads the assets of a clause, and its chains, addresses and ids. */

export const symbolOf = (reader: Reader, at: number): string | undefined => reader.tokens[at]?.asset?.symbol

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
