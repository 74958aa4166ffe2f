const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const digits = new Int8Array(128).fill(-1)
for (let digit = 0; digit < alphabet.length; digit++) digits[alphabet.charCodeAt(digit)] = digit

/** Several digits per limb: five base58 digits or three bytes keep every product far below 2^53. */
const digitsPerLimb = 5
const bytesPerLimb = 3

/** Schoolbook conversion, most significant limb last: inputs are keys, signatures and single transactions. */
const limbsOf = (source: ArrayLike<number>, from: number, to: number): number[] => {
  const limbs: number[] = []
  for (let at = 0; at < source.length; at++) {
    let carry = source[at] as number
    for (let place = 0; place < limbs.length; place++) {
      carry += (limbs[place] as number) * from
      limbs[place] = carry % to
      carry = Math.floor(carry / to)
    }
    if (carry > 0) limbs.push(carry)
  }
  return limbs
}

/** Splits limbs into digits, most significant first and without leading zeros. */
const spread = (limbs: number[], base: number, perLimb: number): number[] => {
  const out: number[] = []
  for (let limb of limbs) {
    for (let left = perLimb; left > 0; left--) {
      out.push(limb % base)
      limb = Math.floor(limb / base)
    }
  }
  while (out.at(-1) === 0) out.pop()
  return out.reverse()
}

const leading = (source: ArrayLike<number>): number => {
  let zeros = 0
  while (zeros < source.length && source[zeros] === 0) zeros++
  return zeros
}

export const toBase58 = (bytes: Uint8Array): string => {
  let text = '1'.repeat(leading(bytes))
  for (const digit of spread(limbsOf(bytes, 256, 58 ** digitsPerLimb), 58, digitsPerLimb))
    text += alphabet[digit]
  return text
}

/** Returns undefined for a character outside the alphabet. */
export const fromBase58 = (text: string): Uint8Array | undefined => {
  const values = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) {
    const digit = digits[text.charCodeAt(at)] ?? -1
    if (digit < 0) return undefined
    values[at] = digit
  }
  const zeros = leading(values)
  const body = spread(limbsOf(values, 58, 256 ** bytesPerLimb), 256, bytesPerLimb)
  const bytes = new Uint8Array(zeros + body.length)
  bytes.set(body, zeros)
  return bytes
}
