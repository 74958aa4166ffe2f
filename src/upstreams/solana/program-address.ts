import { createHash } from 'node:crypto'
import { base58, bytesOfAddress, isAddress } from './base58.ts'
import { associatedTokenProgram } from './program-ids.ts'

/** Derives the addresses of accounts that a program owns; they are not public keys. */

const prime = 2n ** 255n - 19n
const curveD = 37095705934669439343138083508754565189542113879843219016388785533085940283555n
const bumpMax = 255

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % prime
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % prime
    square = (square * square) % prime
  }
  return result
}

/**
 * Whether a point of the curve has this y: x^2 = (y^2 - 1) / (d y^2 + 1) must have a solution. A quotient is a
 * square exactly when the product is.
 */
function isOnCurve(bytes: Uint8Array): boolean {
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & (2n ** 255n - 1n)
  const ySquare = (y * y) % prime
  const numerator = (ySquare - 1n + prime) % prime
  const denominator = (curveD * ySquare + 1n) % prime
  return numerator === 0n || power(numerator * denominator, (prime - 1n) / 2n) === 1n
}

function programAddress(seeds: readonly Uint8Array[], program: string): string {
  const programBytes = bytesOfAddress(program)
  for (let bump = bumpMax; bump >= 0; bump--) {
    const hash = createHash('sha256')
    for (const seed of seeds) hash.update(seed)
    const found = hash
      .update(Uint8Array.of(bump))
      .update(programBytes)
      .update('ProgramDerivedAddress')
      .digest()
    if (!isOnCurve(found)) return base58(found)
  }
  throw new Error('no bump seed leaves the curve')
}

export const deriveTokenAccount = (owner: string, mint: string, tokenProgram: string): string =>
  programAddress(
    [bytesOfAddress(owner), bytesOfAddress(tokenProgram), bytesOfAddress(mint)],
    associatedTokenProgram,
  )

/** Whether a key can sign for the address; programs own the others. */
export const hasKey = (address: string): boolean => isAddress(address) && isOnCurve(bytesOfAddress(address))
