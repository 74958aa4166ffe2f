import { sha256 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/wire/json.ts'

/** The chains and assets that the gateway serves now. Nothing here is a list of its own: the registry hands it in. */
export type TokenPlace = { chainId: string; address: string; decimals: number }
export type Asset = {
  symbol: string
  name: string
  tokens: readonly TokenPlace[]
  perp: boolean
  spot: boolean
}
export type NamedChain = { id: string; name: string; displayName: string; family: 'evm' | 'solana' }
export type Universe = { chains: readonly NamedChain[]; assets: readonly Asset[] }

/** The digest of the names: who has them under it need not ask for them again. */
export const versionOf = ({ chains, assets }: Universe): string => sha256(canonicalJson({ chains, assets }))

/** What a word may name. `solana` is a chain and a coin: the slot decides. */
export type Named = { asset?: Asset; chain?: NamedChain }

export const assetsMax = 5_000
export const dollarSymbol = 'USDC'

export type Names = {
  universe: Universe
  /** Names by their lower-case words, joined by one space. */
  phrases: ReadonlyMap<string, Named>
  bySymbol: ReadonlyMap<string, Asset>
  chainById: ReadonlyMap<string, NamedChain>
}

const plain = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

type Nicknames = { assets: ReadonlyMap<string, string>; chains: ReadonlyMap<string, string> }

/** A nickname counts only where the universe has what it names. */
export function createNames(universe: Universe, nicknames: Nicknames): Names {
  if (universe.assets.length > assetsMax) throw new Error(`more than ${assetsMax} assets`)
  const phrases = new Map<string, Named>()
  const add = (name: string, named: Named): void => {
    const key = plain(name)
    if (key === '' || key.length > 48) return
    phrases.set(key, { ...named, ...phrases.get(key) })
  }
  const bySymbol = new Map(universe.assets.map((asset) => [asset.symbol.toLowerCase(), asset]))
  // The symbols first: a name of one asset never hides the symbol of another.
  for (const asset of universe.assets) add(asset.symbol, { asset })
  for (const asset of universe.assets) add(asset.name, { asset })
  for (const [nickname, symbol] of nicknames.assets) {
    const asset = bySymbol.get(symbol.toLowerCase())
    if (asset) add(nickname, { asset })
  }
  for (const chain of universe.chains) {
    add(chain.name, { chain })
    add(chain.displayName, { chain })
    for (const [nickname, name] of nicknames.chains) if (name === chain.name) add(nickname, { chain })
  }
  return {
    universe,
    phrases,
    bySymbol,
    chainById: new Map(universe.chains.map((chain) => [chain.id, chain])),
  }
}

export const assetNamed = (
  symbol: string | undefined,
  { bySymbol }: Pick<Names, 'bySymbol'>,
): Asset | undefined => (symbol === undefined ? undefined : bySymbol.get(symbol.toLowerCase()))

export const tokenOn = (asset: Asset, chainId: string): TokenPlace | undefined =>
  asset.tokens.find((token) => token.chainId === chainId)

/** The chains on which every one of the assets has a token. */
export function sharedChains(assets: readonly Asset[]): string[] {
  const [first, ...others] = assets
  if (!first) return []
  return first.tokens
    .map(({ chainId }) => chainId)
    .filter((chainId) => others.every((asset) => tokenOn(asset, chainId) !== undefined))
}
