const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const digits = new Map([...alphabet].map((letter, digit) => [letter, BigInt(digit)]))

export const addressBytes = 32
export const signatureBytes = 64

export function base58(bytes: Uint8Array): string {
  let value = BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`)
  let text = ''
  while (value > 0n) {
    text = alphabet[Number(value % 58n)] + text
    value /= 58n
  }
  // Leading zero bytes do not change the number, so each is written as the first letter.
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return alphabet[0]!.repeat(zeros < 0 ? bytes.length : zeros) + text
}

/** Decodes a text of exactly this many bytes; undefined if the text is not the one spelling of such bytes. */
export function fromBase58(text: string, bytes: number): Uint8Array | undefined {
  // The check of the length precedes the quadratic decoding; a byte takes less than 1.4 letters.
  if (text.length === 0 || text.length > bytes * 1.4) return undefined
  let value = 0n
  for (const letter of text) {
    const digit = digits.get(letter)
    if (digit === undefined) return undefined
    value = value * 58n + digit
  }
  const hex = value.toString(16).padStart(bytes * 2, '0')
  const decoded = Buffer.from(hex, 'hex')
  return hex.length === bytes * 2 && base58(decoded) === text ? decoded : undefined
}

export const isAddress = (text: unknown): text is string =>
  typeof text === 'string' && fromBase58(text, addressBytes) !== undefined

/** Decodes an address, which must have been checked where it came in; throws if the text is none. */
export function bytesOfAddress(address: string): Uint8Array {
  const bytes = fromBase58(address, addressBytes)
  if (!bytes) throw new RangeError(`not a Solana address: ${address.slice(0, 64)}`)
  return bytes
}
