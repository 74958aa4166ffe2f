import type { VenueCrypto } from '#kernel/task/signer.ts'
import type { VenueNetwork } from './sign.ts'

/** Encoding and signing take 81 modules of the venue's library, which no start needs. */
const loadSigning = () => import('./sign.ts')

export const hyperliquidCrypto = (network: VenueNetwork): VenueCrypto => ({
  async load() {
    await loadSigning()
  },
  async sign(secret, intent) {
    const { signIntent } = await loadSigning()
    return signIntent(secret, intent, network)
  },
})
