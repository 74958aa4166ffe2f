import { createPublicKey, type KeyObject, verify } from 'node:crypto'

export const publicKeyBytes = 32
export const signatureBytes = 64

/**
 * Accepts only the three canonical spellings of base64 (standard, and URL-safe with and without padding): if one value
 * had several texts, a list of used texts would miss a replay.
 */
export function decodeBase64(text: string, bytes: number): Uint8Array | undefined {
  if (text.length > Math.ceil(bytes / 3) * 4) return undefined
  const raw = Buffer.from(text, 'base64')
  const standard = raw.toString('base64')
  const padded = standard.replaceAll('+', '-').replaceAll('/', '_')
  const canonical = [standard, padded, raw.toString('base64url')].includes(text)
  return canonical && raw.length === bytes ? raw : undefined
}

const p = 2n ** 255n - 19n
/** The y coordinates of the points of order 1, 2, 4 and 8; the first two have one point each, the others two. */
const smallOrderY = new Set([
  1n,
  p - 1n,
  0n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
])

/** Rejects points of small order, under which any message can be signed, and non-canonical encodings. */
export function isUsableKey(raw: Uint8Array): boolean {
  const littleEndian = Buffer.from(raw).reverse()
  littleEndian[0] = (littleEndian[0] as number) & 0x7f
  const y = BigInt(`0x${littleEndian.toString('hex')}`)
  return raw.length === publicKeyBytes && y < p && !smallOrderY.has(y)
}

const spkiHead = Buffer.from('302a300506032b6570032100', 'hex')

export const importKey = (raw: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([spkiHead, raw]), format: 'der', type: 'spki' })

/** Node's `verify` rejects S >= L, keys and R of small order, and a non-canonical R. */
export const verifySignature = (key: KeyObject, message: Uint8Array, signature: Uint8Array): boolean =>
  signature.length === signatureBytes && verify(null, message, key, signature)
