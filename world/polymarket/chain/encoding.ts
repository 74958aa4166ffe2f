import { keccak256 } from '#world/venue-core/keccak.ts'
import { hashText, joinBytes, uintBytes } from '#world/venue-core/signature.ts'
import type { Address, Hex } from './addresses.ts'

/** The parts of ABI encoding that ids and signed hashes need, on the world's own keccak. */

export const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.slice(2), 'hex'))
export const hexOf = (data: Uint8Array): Hex => `0x${Buffer.from(data).toString('hex')}`
/** 32 bytes of a number, or of an address or shorter bytes as a number. */
export const word = (value: bigint | number | string): Uint8Array => uintBytes(BigInt(value), 32)

export const hash = (...parts: readonly Uint8Array[]): Uint8Array => keccak256(joinBytes(...parts))

/** An address in the spelling of EIP-55. */
export const checksummed = (address: string): Address => {
  const digits = address.slice(2).toLowerCase()
  const nibbles = Buffer.from(hashText(digits)).toString('hex')
  const spelled = [...digits].map((digit, i) =>
    Number.parseInt(nibbles[i] as string, 16) >= 8 ? digit.toUpperCase() : digit,
  )
  return `0x${spelled.join('')}`
}

export const addressInHash = (hashed: Uint8Array): Address => checksummed(hexOf(hashed.subarray(12)))

export const isSameAddress = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/** Where CREATE2 puts code of this hash. */
export const create2Address = (deployer: Address, salt: Uint8Array, codeHash: Uint8Array): Address =>
  addressInHash(hash(Uint8Array.of(0xff), bytesOf(deployer), salt, codeHash))

const domainType = hashText(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)

export const domainSeparator = (
  name: string,
  version: string,
  chain: number,
  verifyingContract: Address,
): Uint8Array => hash(domainType, hashText(name), hashText(version), word(chain), word(verifyingContract))
