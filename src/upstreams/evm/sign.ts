import { privateKeyToAddress, serializeSignature, sign } from 'viem/accounts'
import { bytesToHex, hashAuthorization } from 'viem/utils'
import type { EvmCrypto } from '#kernel/signer.ts'
import { batchHash } from './batch.ts'
import { readCall } from './erc20.ts'
import type { Hex } from './wire.ts'

/** Lent to custody: what a key has to do on EVM chains, and nothing else. */
export const evmCrypto: EvmCrypto = {
  addressOf: (secret) => privateKeyToAddress(bytesToHex(secret)),

  async signBatch(secret, batch) {
    return serializeSignature(await sign({ hash: batchHash(batch), privateKey: bytesToHex(secret) }))
  },

  async signDelegation(secret, { chainId, delegate, nonce }) {
    const hash = hashAuthorization({ chainId: Number(chainId), address: delegate as Hex, nonce })
    const { r, s, yParity } = await sign({ hash, privateKey: bytesToHex(secret) })
    return { chainId: Number(chainId), address: delegate, nonce, r, s, yParity: yParity ?? 0 }
  },

  decodeCall: readCall,
}
