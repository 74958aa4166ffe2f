const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

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
