import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { fromBase58, toBase58 } from './base58.ts'
import { associatedTokenProgram } from './programs.ts'

export type KeyPair = { address: string; privateKey: KeyObject }

export const sha256 = (...parts: (Uint8Array | string)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/** World keys derive from a public label, so they must never hold real money. */
export const worldKeyPair = (label: string): KeyPair => {
  const key = Buffer.concat([pkcs8Prefix, sha256(`portico local world: ${label}`)])
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  return { address: toBase58(spki.subarray(-32)), privateKey }
}

const decodedMax = 10_000
const decoded = new Map<string, Uint8Array>()

/** The same few programs, mints and users repeat, so decoding is cached up to a bound. */
export const addressBytes = (address: string): Uint8Array => {
  const known = decoded.get(address)
  if (known !== undefined) return known
  const bytes = fromBase58(address)
  if (bytes?.length !== 32) throw new RangeError(`not an address: ${address}`)
  if (decoded.size >= decodedMax) decoded.clear()
  decoded.set(address, bytes)
  return bytes
}

const prime = 2n ** 255n - 19n
const curveD = 37095705934669439343138083508754565189542113879843219016388785533085940283555n

const power = (base: bigint, exponent: bigint): bigint => {
  let result = 1n
  let square = base % prime
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % prime
    square = (square * square) % prime
  }
  return result
}

/**
 * A program address must not be a public key: x^2 = (y^2 - 1) / (d y^2 + 1) must have no root. A quotient is a
 * square exactly when the product is, which saves the inversion.
 */
const isOnCurve = (bytes: Uint8Array): boolean => {
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & (2n ** 255n - 1n)
  const ySquare = (y * y) % prime
  const numerator = (ySquare - 1n + prime) % prime
  const denominator = (curveD * ySquare + 1n) % prime
  return numerator === 0n || power(numerator * denominator, (prime - 1n) / 2n) === 1n
}

export const findProgramAddress = (
  seeds: Uint8Array[],
  program: string,
): { address: string; bump: number } => {
  for (let bump = 255; bump >= 0; bump--) {
    const hash = sha256(...seeds, Uint8Array.of(bump), addressBytes(program), 'ProgramDerivedAddress')
    if (!isOnCurve(hash)) return { address: toBase58(hash), bump }
  }
  throw new Error('no bump seed leaves the curve')
}

export const programAddress = (seeds: Uint8Array[], program: string): string =>
  findProgramAddress(seeds, program).address

export const associatedTokenAddress = (owner: string, mint: string, program: string): string =>
  programAddress([addressBytes(owner), addressBytes(program), addressBytes(mint)], associatedTokenProgram)
