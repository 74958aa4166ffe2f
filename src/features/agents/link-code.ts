import { createHash } from 'node:crypto'
import type { Random } from '#kernel/id.ts'

/** Twelve digits of Crockford's base 32 are 60 bits: a stolen hash is not searched within the life of its code. */
const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const digitsCount = 12
const groups = /.{4}/g

export function newLinkCode(random: Pick<Random, 'bytes'>): string {
  const bytes = [...random.bytes(digitsCount)]
  // 256 is a multiple of 32, so that every digit is as likely as the others.
  return bytes
    .map((byte) => digits[byte % 32])
    .join('')
    .match(groups)!
    .join('-')
}

/** The code as it was made, from what a person typed; undefined for any other text. */
export function readLinkCode(text: string): string | undefined {
  const plain = text.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1')
  if (plain.length !== digitsCount || [...plain].some((digit) => !digits.includes(digit))) return undefined
  return plain.match(groups)!.join('-')
}

export const linkCodeHash = (code: string): Buffer =>
  createHash('sha256').update(`link-code:${code}`).digest()
