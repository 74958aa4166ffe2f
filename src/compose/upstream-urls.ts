/** The URL of each upstream; undefined where the upstream is not served. */
export type UpstreamUrls = {
  evm: Record<'1' | '8453' | '42161' | '421614' | '137', string | undefined>
  solana: string | undefined
  hyperliquid: string | undefined
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
