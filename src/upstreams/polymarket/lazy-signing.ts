import type { PredictionCrypto } from '#kernel/money/prediction-actions.ts'

/** The hashes of all types are computed when the code is loaded, which no start needs. */
export const polymarketCrypto: PredictionCrypto = {
  async sign(secret, action) {
    const { signAction } = await import('./sign.ts')
    return signAction(secret, action)
  },
}
