import { concat, hashAuthorization } from 'viem/utils'
import type { EvmCrypto } from '#kernel/task/signer.ts'
import { batchHash } from './batch.ts'
import { readLifiCall } from './lifi-calls.ts'
import { readOutcomeCall } from './outcome-calls.ts'
import { readRelayCall } from './relay-calls.ts'
import { addressOfKey, signDigest } from './secp256k1.ts'
import { readSwapCall } from './swap-calls.ts'
import { readCall } from './token-calls.ts'
import type { Hex } from './wire.ts'

/** Gives custody the EVM functions that it needs: addresses of keys, signatures, and decoded calls. */
export const evmCrypto: EvmCrypto = {
  addressOf: addressOfKey,

  async signBatch(secret, batch) {
    const { r, s, yParity } = signDigest(secret, batchHash(batch))
    return concat([r, s, yParity === 0 ? '0x1b' : '0x1c'])
  },

  async signDelegation(secret, { chainId, delegate, nonce }) {
    const hash = hashAuthorization({ chainId: Number(chainId), address: delegate as Hex, nonce })
    return { chainId: Number(chainId), address: delegate, nonce, ...signDigest(secret, hash) }
  },

  decodeCall: (call) =>
    readCall(call) ??
    readSwapCall(call) ??
    readLifiCall(call) ??
    readRelayCall(call) ??
    readOutcomeCall(call),
}
