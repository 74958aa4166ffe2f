/** Where each upstream is reached; undefined where it is not served. */
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
  faucet: string | undefined
  /** The local world's control server. */
  control?: string
  worldId?: string
}
