import { createHash, randomBytes as nodeRandomBytes } from 'node:crypto'

/** The port for randomness, so that a seeded run is reproducible byte for byte. */
export type Random = { bytes(count: number): Uint8Array; fraction(): number }

export const systemRandom: Random = {
  bytes: (count) => nodeRandomBytes(count),
  fraction: () => Math.random(),
}

export const uuidOf = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')

/** A UUIDv7 starts with the time, so primary keys are inserted in order. */
export function uuidv7(at: Date, random: Random): string {
  const bytes = random.bytes(16)
  let ms = at.getTime()
  for (let i = 5; i >= 0; i--) {
    bytes[i] = ms % 256
    ms = Math.floor(ms / 256)
  }
  bytes[6] = 0x70 | (bytes[6]! & 0x0f)
  bytes[8] = 0x80 | (bytes[8]! & 0x3f)
  return uuidOf(Buffer.from(bytes).toString('hex'))
}

export const timeOfId = (id: string): Date => new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))

/**
 * Returns the smallest UUIDv7 of a time, with which a comparison finds the ids that were made before or after that
 * time.
 */
export function minIdAt(at: Date): string {
  const hex = at.getTime().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Returns `agt_` and a ULID: always 30 characters, so that the length distinguishes an id from a token. */
export function agentId(at: Date, random: Random): string {
  let value = (BigInt(at.getTime()) << 80n) | BigInt(`0x${Buffer.from(random.bytes(10)).toString('hex')}`)
  let text = ''
  for (let i = 0; i < 26; i++) {
    text = crockford[Number(value & 31n)] + text
    value >>= 5n
  }
  return `agt_${text}`
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** PostgreSQL raises an error for a malformed UUID; this check lets such an id be "not found" instead. */
export const isUuid = (text: string): boolean => uuidPattern.test(text)

export const sha256 = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** The shard of a user, one of 256 that can be spread over several databases. */
export const shardOf = (userId: string): number => Number.parseInt(sha256(userId).slice(0, 2), 16)
