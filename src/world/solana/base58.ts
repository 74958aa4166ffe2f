const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const digits = new Int8Array(128).fill(-1)
for (let digit = 0; digit < alphabet.length; digit++) digits[alphabet.charCodeAt(digit)] = digit

/** Schoolbook base conversion: the inputs are keys, signatures and single transactions, never long. */
const convert = (source: ArrayLike<number>, from: number, to: number): number[] => {
  const out: number[] = []
  for (let at = 0; at < source.length; at++) {
    let carry = source[at] as number
    for (let place = 0; place < out.length; place++) {
      carry += (out[place] as number) * from
      out[place] = carry % to
      carry = Math.floor(carry / to)
    }
    while (carry > 0) {
      out.push(carry % to)
      carry = Math.floor(carry / to)
    }
  }
  return out.reverse()
}

const leading = (source: ArrayLike<number>): number => {
  let zeros = 0
  while (zeros < source.length && source[zeros] === 0) zeros++
  return zeros
}

export const toBase58 = (bytes: Uint8Array): string => {
  let text = '1'.repeat(leading(bytes))
  for (const digit of convert(bytes, 256, 58)) text += alphabet[digit]
  return text
}

/** Answers undefined for a character outside the alphabet. */
export const fromBase58 = (text: string): Uint8Array | undefined => {
  const values = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) {
    const digit = digits[text.charCodeAt(at)] ?? -1
    if (digit < 0) return undefined
    values[at] = digit
  }
  const zeros = leading(values)
  const body = convert(values, 58, 256)
  const bytes = new Uint8Array(zeros + body.length)
  bytes.set(body, zeros)
  return bytes
}
