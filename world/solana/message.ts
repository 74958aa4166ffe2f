import { toBase58 } from './base58.ts'

export type Instruction = { programIdIndex: number; accounts: number[]; data: Uint8Array }
export type Lookup = { accountKey: string; writableIndexes: number[]; readonlyIndexes: number[] }
export type Message = {
  version: 'legacy' | 0
  header: {
    numRequiredSignatures: number
    numReadonlySignedAccounts: number
    numReadonlyUnsignedAccounts: number
  }
  accountKeys: string[]
  recentBlockhash: string
  instructions: Instruction[]
  addressTableLookups: Lookup[]
}
export type WireTransaction = {
  bytes: Uint8Array
  messageBytes: Uint8Array
  signatures: string[]
  message: Message
}

const packetBytesMax = 1232

type Reader = {
  u8: () => number
  length: () => number
  take: (count: number) => Uint8Array
  done: () => boolean
  at: () => number
}

const reader = (bytes: Uint8Array): Reader => {
  let at = 0
  const take = (count: number): Uint8Array => {
    if (at + count > bytes.length) throw new RangeError('io error: unexpected end of file')
    at += count
    return bytes.subarray(at - count, at)
  }
  const u8 = (): number => take(1)[0] as number
  const length = (): number => {
    let value = 0
    for (let shift = 0; shift < 21; shift += 7) {
      const byte = u8()
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new RangeError('a length takes more than three bytes')
  }
  return { u8, length, take, done: () => at === bytes.length, at: () => at }
}

const readMany = <T>(count: number, one: () => T): T[] => Array.from({ length: count }, one)
const key = (from: Reader): string => toBase58(from.take(32))
const indexes = (from: Reader): number[] => [...from.take(from.length())]

const readMessage = (from: Reader): Message => {
  const first = from.u8()
  const versioned = first >= 0x80
  if (versioned && (first & 0x7f) !== 0) throw new RangeError(`unsupported message version ${first & 0x7f}`)
  const header = {
    numRequiredSignatures: versioned ? from.u8() : first,
    numReadonlySignedAccounts: from.u8(),
    numReadonlyUnsignedAccounts: from.u8(),
  }
  const accountKeys = readMany(from.length(), () => key(from))
  const recentBlockhash = key(from)
  const instructions = readMany(from.length(), () => ({
    programIdIndex: from.u8(),
    accounts: indexes(from),
    data: from.take(from.length()),
  }))
  const addressTableLookups = versioned
    ? readMany(from.length(), () => ({
        accountKey: key(from),
        writableIndexes: indexes(from),
        readonlyIndexes: indexes(from),
      }))
    : []
  return {
    version: versioned ? 0 : 'legacy',
    header,
    accountKeys,
    recentBlockhash,
    instructions,
    addressTableLookups,
  }
}

const checkCounts = (message: Message, signatureCount: number): void => {
  const { numRequiredSignatures, numReadonlySignedAccounts, numReadonlyUnsignedAccounts } = message.header
  const staticCount = message.accountKeys.length
  if (numRequiredSignatures === 0 || numRequiredSignatures > staticCount)
    throw new RangeError('sanitize failure')
  if (numReadonlySignedAccounts >= numRequiredSignatures) throw new RangeError('sanitize failure')
  if (numReadonlyUnsignedAccounts > staticCount - numRequiredSignatures)
    throw new RangeError('sanitize failure')
  if (signatureCount !== numRequiredSignatures)
    throw new RangeError('signature count does not match the header')
}

/** Parses the message alone, as getFeeForMessage receives it. */
export const parseMessage = (bytes: Uint8Array): Message => {
  const from = reader(bytes)
  const message = readMessage(from)
  if (!from.done()) throw new RangeError('bytes left over')
  checkCounts(message, message.header.numRequiredSignatures)
  return message
}

/** Parses a signed transaction (legacy or v0); throws RangeError with the reason. */
export const parseTransaction = (bytes: Uint8Array): WireTransaction => {
  if (bytes.length > packetBytesMax) {
    throw new RangeError(`too large: ${bytes.length} bytes (max: encoded/raw 1644/${packetBytesMax})`)
  }
  const from = reader(bytes)
  const signatures = readMany(from.length(), () => toBase58(from.take(64)))
  const messageBytes = bytes.subarray(from.at())
  const message = readMessage(from)
  if (!from.done()) throw new RangeError('bytes left over')
  checkCounts(message, signatures.length)
  return { bytes, messageBytes, signatures, message }
}

/** Static keys, then looked-up writable, then looked-up readonly: the order that every index refers to. */
export type ResolvedKeys = { keys: string[]; writable: string[]; readonly: string[] }

export const isSigner = (message: Message, index: number): boolean =>
  index < message.header.numRequiredSignatures

export const isWritable = (message: Message, loadedWritable: number, index: number): boolean => {
  const { numRequiredSignatures, numReadonlySignedAccounts, numReadonlyUnsignedAccounts } = message.header
  const staticCount = message.accountKeys.length
  if (index >= staticCount) return index < staticCount + loadedWritable
  if (index < numRequiredSignatures) return index < numRequiredSignatures - numReadonlySignedAccounts
  return index < staticCount - numReadonlyUnsignedAccounts
}
