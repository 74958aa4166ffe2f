import { worldChains } from '#world/evm/chains.ts'
import type { PriceBook } from './book.ts'

export type PricedToken = { symbol: string; decimals: number }
type Coin = { price: number; symbol: string; timestamp: number; confidence: number; decimals?: number }

const zeroAddress = '0x0000000000000000000000000000000000000000'

/** Keys as DefiLlama spells them; EVM addresses compare lower-cased, Solana's exactly. */
const evmCoins = (): Map<string, PricedToken> => {
  const coins = new Map<string, PricedToken>()
  for (const { slug, native, tokens } of worldChains) {
    coins.set(`${slug}:${zeroAddress}`, { symbol: native.symbol, decimals: 18 })
    coins.set(`coingecko:${native.coingecko}`, { symbol: native.symbol, decimals: 18 })
    for (const { address, symbol, decimals } of tokens) {
      coins.set(`${slug}:${address.toLowerCase()}`, { symbol, decimals })
    }
  }
  coins.set('coingecko:bitcoin', { symbol: 'BTC', decimals: 8 })
  coins.set('coingecko:solana', { symbol: 'SOL', decimals: 9 })
  coins.set('coingecko:matic-network', { symbol: 'POL', decimals: 18 })
  coins.set('coingecko:usd-coin', { symbol: 'USDC', decimals: 6 })
  coins.set('coingecko:tether', { symbol: 'USDT', decimals: 6 })
  coins.set('solana:So11111111111111111111111111111111111111112', { symbol: 'WSOL', decimals: 9 })
  coins.set('solana:11111111111111111111111111111111', { symbol: 'SOL', decimals: 9 })
  return coins
}

const normalizeKey = (key: string): string => (key.startsWith('solana:') ? key : key.toLowerCase())

type PriceResponderDeps = {
  book: PriceBook
  nowMs: () => number
  solanaTokens: () => Promise<Map<string, PricedToken>>
}

/** Answers `/prices/current/{keys}` as DefiLlama does: unknown keys are absent. */
export const priceResponder = ({ book, nowMs, solanaTokens }: PriceResponderDeps) => {
  const coins = evmCoins()
  return async (keys: readonly string[]): Promise<{ coins: Record<string, Coin> }> => {
    const needsSolana = keys.some((key) => key.startsWith('solana:') && !coins.has(key))
    const solanaPrices = needsSolana ? await solanaTokens() : new Map<string, PricedToken>()
    const answer: Record<string, Coin> = {}
    for (const key of keys) {
      const coin = coins.get(normalizeKey(key)) ?? solanaPrices.get(key)
      const quote = coin && book.quote(coin.symbol)
      if (!coin || !quote) continue
      const { usd, confidence, ageSeconds } = quote
      const timestamp = Math.floor(nowMs() / 1000) - ageSeconds
      answer[key] = {
        decimals: coin.decimals,
        symbol: coin.symbol,
        price: Number(usd),
        timestamp,
        confidence,
      }
    }
    return { coins: answer }
  }
}
