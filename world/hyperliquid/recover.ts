import { keccak256 } from '#world/venue-core/keccak.ts'
import {
  addressWord,
  hashText,
  hexBytes,
  joinBytes,
  recoverSigner,
  typedDataDigest,
  uintBytes,
} from '#world/venue-core/signature.ts'
import { type Action, type TypedFields, userSigned } from './actions.ts'
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

const domainType = hashText(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)

const domain = (name: string, chainId: number): Uint8Array =>
  keccak256(joinBytes(domainType, hashText(name), hashText('1'), uintBytes(chainId, 32), new Uint8Array(32)))

const exchangeDomain = domain('Exchange', 1337)
const agentType = hashText('Agent(string source,bytes32 connectionId)')
export type Network = 'Mainnet' | 'Testnet'

const sources: Record<Network, Uint8Array> = { Mainnet: hashText('a'), Testnet: hashText('b') }

/** keccak of the packed action, the nonce, the vault marker and, when given, the expiry. */
export const connectionId = ({ action, nonce, vaultAddress, expiresAfter }: Signed): Uint8Array =>
  keccak256(
    joinBytes(
      msgpack(action),
      uintBytes(nonce, 8),
      vaultAddress === undefined
        ? Uint8Array.of(0)
        : joinBytes(Uint8Array.of(1), hexBytes(vaultAddress.slice(2))),
      expiresAfter === undefined
        ? new Uint8Array(0)
        : joinBytes(Uint8Array.of(0), uintBytes(expiresAfter, 8)),
    ),
  )

export const l1Digest = (signed: Signed, network: Network = 'Mainnet'): Uint8Array =>
  typedDataDigest(exchangeDomain, keccak256(joinBytes(agentType, sources[network], connectionId(signed))))

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
  if (kind === 'bool') return uintBytes(value === true ? 1 : 0, 32)
  if (kind === 'address') return addressWord(value as string)
  return uintBytes(value as number, 32)
}

export const userDigest = (action: Action): Uint8Array => {
  const signed = userSigned[action.type]
  const chainId = Number.parseInt(String(action.signatureChainId), 16)
  if (!signed || !Number.isSafeInteger(chainId)) return rejectMalformed()
  const words = signed.fields.map(([name, kind]) => word(kind, action[name]))
  return typedDataDigest(
    userDomain(chainId),
    keccak256(joinBytes(typeHash(signed.primary, signed.fields), ...words)),
  )
}

/** r and s may lack leading zeros. */
const half = (value: unknown): Uint8Array => {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) return rejectMalformed()
  return hexBytes(value.slice(2).padStart(64, '0'))
}

/** The address of the signer, in lower case; a wrong digest gives another address, never an error. */
export const recoverAddress = (hash: Uint8Array, signature: Signature): string | undefined => {
  const { r, s, v } = signature
  const parity = v >= 27 ? v - 27 : v
  if (parity !== 0 && parity !== 1) return rejectMalformed()
  return recoverSigner(hash, { rs: joinBytes(half(r), half(s)), parity })
}
