import { sha256 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/wire/json.ts'

/**
 * The names of the chains and assets that the gateway serves now. They come from the registry; no list is kept
 * here.
 */
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

/** Returns the digest of the names: a service that has the names of this digest need not ask for them again. */
export const versionOf = ({ chains, assets }: Universe): string => sha256(canonicalJson({ chains, assets }))

/** The asset and the chain that a word may name. `solana` names both a coin and a chain: the slot decides. */
export type Named = { asset?: Asset; chain?: NamedChain }

export const assetsMax = 5_000
export const dollarSymbol = 'USDC'

export type Names = {
  universe: Universe
  /** Assets and chains by their lower-case words, joined by one space. */
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

/** Makes the look-up of names. A nickname counts only if the universe has the asset or chain that it names. */
export function createNames(universe: Universe, nicknames: Nicknames): Names {
  if (universe.assets.length > assetsMax) throw new Error(`more than ${assetsMax} assets`)
  const phrases = new Map<string, Named>()
  const add = (name: string, named: Named): void => {
    const key = plain(name)
    if (key === '' || key.length > 48) return
    phrases.set(key, { ...named, ...phrases.get(key) })
  }
  const bySymbol = new Map(universe.assets.map((asset) => [asset.symbol.toLowerCase(), asset]))
  // Symbols are added first, so that the name of one asset never hides the symbol of another.
  for (const asset of universe.assets) add(asset.symbol, { asset })
  for (const asset of universe.assets) add(asset.name, { asset })
  // A pair against the dollar is written as one word: `btcusd`.
  for (const asset of universe.assets)
    if (asset.perp || asset.spot)
      for (const dollar of ['usd', 'usdt']) add(`${asset.symbol}${dollar}`, { asset })
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

/** Returns the chains on which every one of the assets has a token. */
export function sharedChains(assets: readonly Asset[]): string[] {
  const [first, ...others] = assets
  if (!first) return []
  return first.tokens
    .map(({ chainId }) => chainId)
    .filter((chainId) => others.every((asset) => tokenOn(asset, chainId) !== undefined))
}
