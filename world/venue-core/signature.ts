import { recover } from 'tiny-secp256k1'
import { keccak256 } from './keccak.ts'

export const hashText = (text: string): Uint8Array => keccak256(new TextEncoder().encode(text))
export const hexBytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'))
export const toHex = (data: Uint8Array): string => Buffer.from(data).toString('hex')

export const joinBytes = (...parts: readonly Uint8Array[]): Uint8Array => {
  const out = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}

/** Big-endian. */
export const uintBytes = (value: number | bigint, size: number): Uint8Array => {
  const out = new Uint8Array(size)
  let rest = BigInt(value)
  for (let i = size - 1; i >= 0 && rest > 0n; i -= 1) {
    out[i] = Number(rest & 255n)
    rest >>= 8n
  }
  return out
}

/** The word of an address in 0x form. */
export const addressWord = (address: string): Uint8Array =>
  joinBytes(new Uint8Array(12), hexBytes(address.slice(2)))

/** The hash that an EIP-712 signature signs. */
export const typedDataDigest = (domainHash: Uint8Array, structHash: Uint8Array): Uint8Array =>
  keccak256(joinBytes(Uint8Array.of(0x19, 0x01), domainHash, structHash))

/** The address of the signer, in lower case; a wrong digest gives another address, never an error. */
export const recoverSigner = (
  hash: Uint8Array,
  signature: { rs: Uint8Array; parity: 0 | 1 },
): string | undefined => {
  try {
    const key = recover(hash, signature.rs, signature.parity, false)
    return key ? `0x${toHex(keccak256(key.subarray(1)).subarray(12))}` : undefined
  } catch (error) {
    // The error of the wasm library when r or s is out of range.
    if (error instanceof Error && error.message === 'Expected Signature') return undefined
    throw error
  }
}
