import { recover } from 'tiny-secp256k1'
import { type Action, type TypedFields, userSigned } from './actions.ts'
import { keccak256 } from './keccak.ts'
import { msgpack } from './msgpack.ts'
import { rejectMalformed } from './schema.ts'

export type Signature = { r: string; s: string; v: number }

/** The signed content of a request. */
export type Signed = {
  action: Action
  nonce: number
  vaultAddress?: string
  expiresAfter?: number
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const hashText = (text: string): Uint8Array => keccak256(utf8(text))
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'))
export const toHex = (data: Uint8Array): string => Buffer.from(data).toString('hex')

const join = (...parts: Uint8Array[]): Uint8Array => {
  const out = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}

const uint = (value: number | bigint, size: number): Uint8Array => {
  const out = new Uint8Array(size)
  let rest = BigInt(value)
  for (let i = size - 1; i >= 0 && rest > 0n; i -= 1) {
    out[i] = Number(rest & 255n)
    rest >>= 8n
  }
  return out
}

const domainType = hashText(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)

const domain = (name: string, chainId: number): Uint8Array =>
  keccak256(join(domainType, hashText(name), hashText('1'), uint(chainId, 32), new Uint8Array(32)))

const exchangeDomain = domain('Exchange', 1337)
const agentType = hashText('Agent(string source,bytes32 connectionId)')
export type Network = 'Mainnet' | 'Testnet'

const sources: Record<Network, Uint8Array> = { Mainnet: hashText('a'), Testnet: hashText('b') }

const digest = (domainHash: Uint8Array, structHash: Uint8Array): Uint8Array =>
  keccak256(join(Uint8Array.of(0x19, 0x01), domainHash, structHash))

/** keccak of the packed action, the nonce, the vault marker and, when given, the expiry. */
export const connectionId = ({ action, nonce, vaultAddress, expiresAfter }: Signed): Uint8Array =>
  keccak256(
    join(
      msgpack(action),
      uint(nonce, 8),
      vaultAddress === undefined ? Uint8Array.of(0) : join(Uint8Array.of(1), bytes(vaultAddress.slice(2))),
      expiresAfter === undefined ? new Uint8Array(0) : join(Uint8Array.of(0), uint(expiresAfter, 8)),
    ),
  )

export const l1Digest = (signed: Signed, network: Network = 'Mainnet'): Uint8Array =>
  digest(exchangeDomain, keccak256(join(agentType, sources[network], connectionId(signed))))

const domains = new Map<number, Uint8Array>()
const typeHashes = new Map<string, Uint8Array>()

const userDomain = (chainId: number): Uint8Array => {
  const known = domains.get(chainId)
  if (known) return known
  const made = domain('HyperliquidSignTransaction', chainId)
  if (domains.size < 1_000) domains.set(chainId, made)
  return made
}

const typeHash = (primary: string, fields: TypedFields): Uint8Array => {
  const known = typeHashes.get(primary)
  if (known) return known
  const list = fields.map(([name, kind]) => `${kind} ${name}`).join(',')
  const made = hashText(`HyperliquidTransaction:${primary}(${list})`)
  typeHashes.set(primary, made)
  return made
}

const word = (kind: TypedFields[number][1], value: unknown): Uint8Array => {
  // A missing name is signed as the empty text.
  if (kind === 'string') return hashText((value as string | undefined) ?? '')
  if (kind === 'bool') return uint(value === true ? 1 : 0, 32)
  if (kind === 'address') return join(new Uint8Array(12), bytes((value as string).slice(2)))
  return uint(value as number, 32)
}

export const userDigest = (action: Action): Uint8Array => {
  const signed = userSigned[action.type]
  const chainId = Number.parseInt(String(action.signatureChainId), 16)
  if (!signed || !Number.isSafeInteger(chainId)) return rejectMalformed()
  const words = signed.fields.map(([name, kind]) => word(kind, action[name]))
  return digest(userDomain(chainId), keccak256(join(typeHash(signed.primary, signed.fields), ...words)))
}

/** r and s may lack leading zeros. */
const half = (value: unknown): Uint8Array => {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) return rejectMalformed()
  return bytes(value.slice(2).padStart(64, '0'))
}

/** The address of the signer, in lower case; a wrong digest gives another address, never an error. */
export const recoverAddress = (hash: Uint8Array, signature: Signature): string | undefined => {
  const { r, s, v } = signature
  const parity = v >= 27 ? v - 27 : v
  if (parity !== 0 && parity !== 1) return rejectMalformed()
  try {
    const key = recover(hash, join(half(r), half(s)), parity, false)
    return key ? `0x${toHex(keccak256(key.subarray(1)).subarray(12))}` : undefined
  } catch (error) {
    // The error of the wasm library when r or s is out of range.
    if (error instanceof Error && error.message === 'Expected Signature') return undefined
    throw error
  }
}
