import { createHash } from 'node:crypto'
import type { Random } from '#kernel/id.ts'

/** Twelve digits of Crockford's base 32 are 60 bits: nobody finds a code from its stolen hash before it expires. */
const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const digitsCount = 12
const groups = /.{4}/g

export function newLinkCode(random: Pick<Random, 'bytes'>): string {
  const bytes = [...random.bytes(digitsCount)]
  // 256 is a multiple of 32, so all digits are equally likely.
  return bytes
    .map((byte) => digits[byte % 32])
    .join('')
    .match(groups)!
    .join('-')
}

/** Returns the code in its canonical form from what a person typed, or undefined if the text is no code. */
export function readLinkCode(text: string): string | undefined {
  const plain = text.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1')
  if (plain.length !== digitsCount || [...plain].some((digit) => !digits.includes(digit))) return undefined
  return plain.match(groups)!.join('-')
}

export const linkCodeHash = (code: string): Buffer =>
  createHash('sha256').update(`link-code:${code}`).digest()
