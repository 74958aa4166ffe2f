/** The services of the prediction market, each with an address of its own. */
export type PolymarketUrls = Record<
  'clob' | 'gamma' | 'data' | 'relayer' | 'bridge' | 'geoblock' | 'socket',
  string
>

/** The URL of each upstream; undefined where the upstream is not served. */
export type UpstreamUrls = {
  evm: Record<'1' | '8453' | '42161' | '421614' | '137', string | undefined>
  solana: string | undefined
  hyperliquid: string | undefined
  polymarket: PolymarketUrls | undefined
  relay: string | undefined
  honeypot: string | undefined
  rugcheck: string | undefined
  lifi: string | undefined
  prices: string | undefined
  coinbase: string | undefined
  model: string | undefined
  images: string | undefined
  stripe: string | undefined
  faucet: string | undefined
  /** The URL of the local world's control server. */
  control?: string
  worldId?: string
}
