import { timingSafeEqual } from 'node:crypto'
import { type Random, sha256 } from '#kernel/id.ts'

/** A key is `bk_<id>_<secret>`: the id finds the row, and the whole key is compared by its hash. */

const form = /^bk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/
const idBytes = 8
const secretBytes = 32

export type NewBackendKey = { id: string; key: string; hash: Buffer }

export function makeBackendKey(random: Random): NewBackendKey {
  const id = Buffer.from(random.bytes(idBytes)).toString('hex')
  const key = `bk_${id}_${Buffer.from(random.bytes(secretBytes)).toString('base64url')}`
  return { id, key, hash: hashKey(key) }
}

export const idOfKey = (key: string): string | undefined => form.exec(key)?.[1]
export const hashKey = (key: string): Buffer => Buffer.from(sha256(key), 'hex')
export const isHashOf = (hash: Uint8Array, key: string): boolean => timingSafeEqual(hash, hashKey(key))
