import type { Chain } from './chain.ts'
import { airdrop } from './faucet.ts'
import { worldKeyPair } from './keys.ts'

/** Accounts that pay fees for others. World-only: their keys derive from public labels. */
const sponsors = [1, 2].map((index) => worldKeyPair(`solana sponsor ${index}`).address)
const sponsorLamports = 1_000_000_000_000n

export const fundSponsors = (chain: Chain): void => {
  for (const address of sponsors)
    if ((chain.account(address)?.lamports ?? 0n) < sponsorLamports / 2n)
      airdrop(chain, address, sponsorLamports)
}
