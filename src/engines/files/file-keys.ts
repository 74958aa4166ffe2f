import { createHmac, timingSafeEqual } from 'node:crypto'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { isUuid, type Random, uuidv7 } from '#kernel/id.ts'
import { keyBytes } from '#kernel/wire/encrypted-envelope.ts'
import { createSealer, type KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import { builder, fetchAll, type Queryable } from '#store/query.ts'

/** The keys that sign file addresses, in the database, so that each instance serves what another one signed. */

export type FileKeys = {
  sign(text: string): Promise<string>
  verify(text: string, signature: string): Promise<boolean>
}

type FileKeysDeps = { db: Queryable; keyEncryptionKeys: KeyEncryptionKeys; clock: Clock; random: Random }
type Key = { id: string; secret: Buffer; createdAt: Date }

const rotationMs = 86_400_000
const cachedMs = 60_000
/** The shortest time between two reads of the table for unknown key ids. */
const unknownKeyPauseMs = 2_000
/** The most keys that are read: enough for valid addresses, and for keys that instances made at the same time. */
const keysMax = 16

const aadOf = (id: string) => `file|${id}`
const macOf = ({ secret }: Key, text: string) => createHmac('sha256', secret).update(text).digest()

export function createFileKeys({ db, keyEncryptionKeys, clock, random }: FileKeysDeps): FileKeys {
  const sealer = createSealer({ keyEncryptionKeys, random })

  const load = async (): Promise<Key[]> => {
    const rows = await fetchAll(
      db,
      builder.selectFrom('file_key').selectAll().orderBy('created_at', 'desc').limit(keysMax),
    )
    // A key under a key-encryption key that is no longer configured is left out: a new key replaces it within a day.
    const usable = rows.filter(({ kek_id }) => keyEncryptionKeys.find(kek_id) !== undefined)
    return Promise.all(
      usable.map(async (row) => ({
        id: row.id,
        secret: await sealer.unseal(row, aadOf(row.id)),
        createdAt: row.created_at,
      })),
    )
  }
  const nowMs = () => clock.now().getTime()
  const known = createCachedValue(load, { ttlMs: cachedMs, nowMs })

  const make = async (): Promise<Key> => {
    const now = clock.now()
    const id = uuidv7(now, random)
    const secret = Buffer.from(random.bytes(keyBytes))
    const { ciphertext, wrapped_dek, kek_id } = await sealer.seal(secret, aadOf(id))
    const row = {
      id,
      ciphertext: Buffer.from(ciphertext),
      wrapped_dek: Buffer.from(wrapped_dek),
      kek_id,
      created_at: now,
    }
    await fetchAll(db, builder.insertInto('file_key').values(row))
    known.invalidate()
    return { id, secret, createdAt: now }
  }

  let making: Promise<Key> | undefined
  const current = async (): Promise<Key> => {
    const newest = (await known.get())[0]
    if (newest && newest.createdAt > later(clock.now(), -rotationMs)) return newest
    making ??= make().finally(() => {
      making = undefined
    })
    return making
  }

  const find = async (id: string): Promise<Key | undefined> => {
    const isIt = (key: Key) => key.id === id
    return (await known.get()).find(isIt) ?? (await known.get({ maxAgeMs: unknownKeyPauseMs })).find(isIt)
  }

  return {
    async sign(text) {
      const key = await current()
      return `${key.id}.${macOf(key, text).toString('base64url')}`
    },
    async verify(text, signature) {
      const [id = '', mac = ''] = signature.split('.')
      if (!isUuid(id)) return false
      const key = await find(id)
      if (!key) return false
      const wanted = macOf(key, text)
      const given = Buffer.from(mac, 'base64url')
      return given.length === wanted.length && timingSafeEqual(given, wanted)
    },
  }
}
