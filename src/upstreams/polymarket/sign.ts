import { pointFromScalar, signRecoverable } from 'tiny-secp256k1'
import { bytesToHex, concat, hexToBytes, publicKeyToAddress } from 'viem/utils'
import type { PredictionCrypto } from '#kernel/money/prediction-actions.ts'
import { digestOf, venueSignature } from './digests.ts'

/** Gives custody the signatures of the venue. The key is passed as bytes, which can be wiped; a string cannot. */
export const polymarketCrypto: PredictionCrypto = {
  async sign(secret, action) {
    const point = pointFromScalar(secret, false)
    const owner = point && publicKeyToAddress(bytesToHex(point))
    if (owner?.toLowerCase() !== action.owner.toLowerCase())
      throw new Error('the key is not that of the owner whom the action names')
    const { signature, recoveryId } = signRecoverable(hexToBytes(digestOf(action)), secret)
    return venueSignature(action, concat([bytesToHex(signature), recoveryId === 0 ? '0x1b' : '0x1c']))
  },
}
