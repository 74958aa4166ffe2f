import { pointFromScalar, signRecoverable } from 'tiny-secp256k1'
import { bytesToHex, hexToBytes, publicKeyToAddress } from 'viem/utils'
import type { Hex } from './wire.ts'

/** Signatures of EVM chains. A key stays in bytes, which can be wiped; a string cannot. */

export type Signature = { r: Hex; s: Hex; yParity: number }

/** Returns the address of a private key, with its checksum in upper and lower case. */
export function addressOfKey(secret: Uint8Array): Hex {
  const point = pointFromScalar(secret, false)
  if (!point) throw new Error('the key has no point')
  return publicKeyToAddress(bytesToHex(point))
}

/** Signs deterministically (RFC 6979) with the lower `s`, as chains require. */
export function signDigest(secret: Uint8Array, digest: Hex): Signature {
  const { signature, recoveryId } = signRecoverable(hexToBytes(digest), secret)
  return {
    r: bytesToHex(signature.subarray(0, 32)),
    s: bytesToHex(signature.subarray(32)),
    yParity: recoveryId,
  }
}
