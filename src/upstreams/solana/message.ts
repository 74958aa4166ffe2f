import { Fault } from '#kernel/contract/fault.ts'
import type { DecodedMessage, SvmInstruction, SvmMessageAccount } from '#kernel/task/signer.ts'
import { addressBytes, base58, bytesOfAddress, signatureBytes } from './base58.ts'

/** The size of a network packet, which includes the signatures. */
export const transactionBytesMax = 1_232
const versionPrefix = 0x80
/** The runtime locks at most this many accounts. */
const accountsMax = 64
const instructionsMax = 64

export type LookupTable = { address: string; addresses: readonly string[] }
export type MessagePlan = {
  feePayer: string
  instructions: readonly SvmInstruction[]
  tables: readonly LookupTable[]
  /** These addresses stay in the message itself, so that a reader without the tables can check them. */
  staticAddresses: readonly string[]
  blockhash: string
}

type Role = { address: string; isSigner: boolean; isWritable: boolean; isProgram: boolean }

const rankOf = ({ isSigner, isWritable }: Role): number => (isSigner ? 0 : 2) + (isWritable ? 0 : 1)

function rolesOf({ feePayer, instructions }: MessagePlan): Role[] {
  const roles = new Map<string, Role>()
  const add = (role: Role) => {
    const known = roles.get(role.address)
    roles.set(role.address, {
      address: role.address,
      isSigner: role.isSigner || known?.isSigner === true,
      isWritable: role.isWritable || known?.isWritable === true,
      isProgram: role.isProgram || known?.isProgram === true,
    })
  }
  add({ address: feePayer, isSigner: true, isWritable: true, isProgram: false })
  for (const { programId, accounts } of instructions) {
    for (const account of accounts) add({ ...account, isProgram: false })
    add({ address: programId, isSigner: false, isWritable: false, isProgram: true })
  }
  return [...roles.values()]
}

type Lookup = { table: LookupTable; writable: Role[]; readonly: Role[] }

/** The index of an address in a lookup table is one byte. */
const tableAddressesMax = 256
function indexIn({ addresses }: LookupTable, address: string): number | undefined {
  const index = addresses.indexOf(address)
  return index >= 0 && index < tableAddressesMax ? index : undefined
}

/** Splits accounts into those in the message and those in tables, which cannot hold signers and programs. */
function splitRoles(roles: readonly Role[], { tables, staticAddresses }: MessagePlan) {
  const pinned = new Set(staticAddresses)
  const lookups: Lookup[] = tables.map((table) => ({ table, writable: [], readonly: [] }))
  const statics = roles.filter((role) => {
    if (role.isSigner || role.isProgram || pinned.has(role.address)) return true
    const lookup = lookups.find(({ table }) => indexIn(table, role.address) !== undefined)
    if (!lookup) return true
    lookup[role.isWritable ? 'writable' : 'readonly'].push(role)
    return false
  })
  return {
    statics: statics.sort((a, b) => rankOf(a) - rankOf(b)),
    lookups: lookups.filter(({ writable, readonly }) => writable.length + readonly.length > 0),
  }
}

const tooLarge = (what: string) =>
  new Fault('conflict', `The Solana transaction is too large: ${what}`, {
    extras: { reason: 'transaction_too_large' },
  })

/** Encodes a length in Solana's compact form. */
const compact = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...compact(value >> 7)]

export function compileMessage(plan: MessagePlan): Uint8Array {
  const { statics, lookups } = splitRoles(rolesOf(plan), plan)
  const order = [
    ...statics,
    ...lookups.flatMap(({ writable }) => writable),
    ...lookups.flatMap(({ readonly }) => readonly),
  ]
  if (order.length > accountsMax) throw tooLarge(`it names ${order.length} accounts`)
  const indexes = new Map(order.map(({ address }, index) => [address, index]))
  const signers = statics.filter(({ isSigner }) => isSigner)
  const message = Buffer.concat([
    Uint8Array.of(
      versionPrefix,
      signers.length,
      signers.filter(({ isWritable }) => !isWritable).length,
      statics.filter(({ isSigner, isWritable }) => !isSigner && !isWritable).length,
    ),
    Uint8Array.from(compact(statics.length)),
    ...statics.map(({ address }) => bytesOfAddress(address)),
    bytesOfAddress(plan.blockhash),
    Uint8Array.from(compact(plan.instructions.length)),
    ...plan.instructions.map((instruction) => instructionBytes(instruction, indexes)),
    Uint8Array.from(compact(lookups.length)),
    ...lookups.map(lookupBytes),
  ])
  const bytes = 1 + signers.length * signatureBytes + message.length
  if (bytes > transactionBytesMax) throw tooLarge(`${bytes} bytes, of at most ${transactionBytesMax}`)
  return message
}

function instructionBytes(
  { programId, accounts, data }: SvmInstruction,
  indexes: ReadonlyMap<string, number>,
): Uint8Array {
  const body = Buffer.from(data, 'hex')
  if (body.length * 2 !== data.length) throw new RangeError('the data of an instruction is not hexadecimal')
  return Buffer.concat([
    Uint8Array.of(indexes.get(programId)!),
    Uint8Array.from(compact(accounts.length)),
    Uint8Array.from(accounts.map(({ address }) => indexes.get(address)!)),
    Uint8Array.from(compact(body.length)),
    body,
  ])
}

function lookupBytes({ table, writable, readonly }: Lookup): Uint8Array {
  const indexesOf = (roles: readonly Role[]) => [
    ...compact(roles.length),
    ...roles.map(({ address }) => table.addresses.indexOf(address)),
  ]
  return Buffer.concat([
    bytesOfAddress(table.address),
    Uint8Array.from([...indexesOf(writable), ...indexesOf(readonly)]),
  ])
}

/** Thrown for a message that is not in the only form that this gateway makes. */
export class InvalidMessageError extends Error {}

type Reader = {
  byte(): number
  length(): number
  take(count: number): Uint8Array
  isAtEnd(): boolean
  at(): number
}

function readerOf(bytes: Uint8Array): Reader {
  let at = 0
  const take = (count: number): Uint8Array => {
    if (at + count > bytes.length) throw new InvalidMessageError('the bytes end too early')
    at += count
    return bytes.subarray(at - count, at)
  }
  const byte = () => take(1)[0]!
  return {
    take,
    byte,
    /**
     * Two bytes encode every length that fits into a packet. A length that is encoded in more bytes than necessary is
     * refused.
     */
    length() {
      const first = byte()
      if (first < 0x80) return first
      const second = byte()
      if (second === 0 || second > 0x7f) throw new InvalidMessageError('a length has another spelling')
      return (first & 0x7f) | (second << 7)
    },
    isAtEnd: () => at === bytes.length,
    at: () => at,
  }
}

const listOf = <T>(count: number, max: number, read: () => T): T[] => {
  if (count > max) throw new InvalidMessageError('a list is too long')
  return Array.from({ length: count }, read)
}

export function decodeMessage(message: Uint8Array): DecodedMessage {
  if (message.length > transactionBytesMax) throw new InvalidMessageError('the message is too long')
  const from = readerOf(message)
  if (from.byte() !== versionPrefix) throw new InvalidMessageError('the version is not 0')
  const [signerCount, readonlySigners, readonlyOthers] = [from.byte(), from.byte(), from.byte()]
  const address = () => base58(from.take(addressBytes))
  const statics = listOf(from.length(), accountsMax, address)
  const others = statics.length - signerCount
  if (signerCount === 0 || readonlySigners >= signerCount || others < 0 || readonlyOthers > others)
    throw new InvalidMessageError('the header does not fit the accounts')
  if (new Set(statics).size !== statics.length) throw new InvalidMessageError('an account is listed twice')
  const blockhash = address()
  const drafts = listOf(from.length(), instructionsMax, () => ({
    program: from.byte(),
    accounts: [...from.take(from.length())],
    data: from.take(from.length()),
  }))
  const lookups = listOf(from.length(), accountsMax, () => ({
    table: address(),
    writable: [...from.take(from.length())],
    readonly: [...from.take(from.length())],
  }))
  if (!from.isAtEnd()) throw new InvalidMessageError('bytes are left over')
  const accounts: SvmMessageAccount[] = [
    ...statics.map((each, index) => ({
      address: each,
      isSigner: index < signerCount,
      isWritable:
        index < signerCount ? index < signerCount - readonlySigners : index < statics.length - readonlyOthers,
    })),
    ...lookups.flatMap(({ writable }) =>
      writable.map(() => ({ address: null, isSigner: false, isWritable: true })),
    ),
    ...lookups.flatMap(({ readonly }) =>
      readonly.map(() => ({ address: null, isSigner: false, isWritable: false })),
    ),
  ]
  const accountAt = (index: number): SvmMessageAccount => {
    const found = accounts[index]
    if (!found) throw new InvalidMessageError('an instruction names an account that is not listed')
    return found
  }
  return {
    feePayer: statics[0]!,
    signers: statics.slice(0, signerCount),
    staticAddresses: statics,
    blockhash,
    lookups,
    instructions: drafts.map(({ program, accounts: named, data }) => {
      const { address: programId } = accountAt(program)
      // The runtime allows no program from a table, and no fee payer as a program.
      if (programId === null || program === 0)
        throw new InvalidMessageError('a program is not in the message')
      return { programId, accounts: named.map(accountAt), data: Buffer.from(data) }
    }),
  }
}

/** Returns the bytes to send: the signatures in the order of the signers, and then the message. */
export function joinTransaction(signatures: readonly Uint8Array[], message: Uint8Array): Uint8Array {
  if (signatures.some(({ length }) => length !== signatureBytes))
    throw new RangeError('a signature has 64 bytes')
  return Buffer.concat([Uint8Array.from(compact(signatures.length)), ...signatures, message])
}

export function splitTransaction(bytes: Uint8Array): { signatures: Uint8Array[]; message: Uint8Array } {
  if (bytes.length > transactionBytesMax) throw new InvalidMessageError('the transaction is too long')
  const from = readerOf(bytes)
  const signatures = listOf(from.length(), accountsMax, () => from.take(signatureBytes))
  return { signatures, message: bytes.subarray(from.at()) }
}

/** Returns the accounts that a legacy or versioned transaction names itself, or none if the bytes are cut short. */
export function accountKeysOf(raw: Uint8Array): string[] {
  let at = 0
  const byte = () => raw[at++] ?? 0
  const count = () => {
    const first = byte()
    return first < 0x80 ? first : (first & 0x7f) | ((byte() & 0x7f) << 7)
  }
  const signatures = count()
  at += signatures * signatureBytes
  const isVersioned = ((raw[at] ?? 0) & versionPrefix) !== 0
  at += isVersioned ? 4 : 3
  const keys = Math.min(count(), accountsMax)
  if (at + keys * addressBytes > raw.length) return []
  return Array.from({ length: keys }, (_, index) =>
    base58(raw.subarray(at + index * addressBytes, at + (index + 1) * addressBytes)),
  )
}
