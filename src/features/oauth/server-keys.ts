import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import type { Transact } from '#durable/transactions.ts'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { keyBytes } from '#kernel/wire/encrypted-envelope.ts'
import { createSealer, type KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { OAuthKeyRow } from '#store/tables/oauth.ts'

/** The authorization server's signing and cookie keys are in the database, so that all instances have the same ones. */

export type Jwk = Record<string, unknown> & { kid: string }
/** The key in use comes first. `version` changes with the set. */
export type ServerKeys = { version: string; signing: Jwk[]; cookies: string[] }
export type OAuthKeys = {
  /** Returns the keys for the authorization server, and makes new ones if none are in use. */
  current(): Promise<ServerKeys>
  publicKeys(): Promise<Jwk[]>
  /** Reads the public keys again after an unknown key id, at most twice a minute. */
  freshPublicKeys(): Promise<Jwk[]>
  rewrap(): Promise<void>
}

type KeysDeps = {
  db: Queryable
  transact: Transact
  keyEncryptionKeys: KeyEncryptionKeys
  clock: Clock
  random: Random
  log: Log
}

const dayMs = 86_400_000
const rotationMs = 30 * dayMs
/** The next key is published this long before it signs. */
const leadMs = 10 * 60_000
/** A former key stays longer than any session or token that it signed is valid. */
const retentionMs = 16 * dayMs
const cachedMs = 60_000
const unknownKeyPauseMs = 30_000
const purposes = ['signing', 'cookie'] as const
/** The advisory lock that a transaction takes, so that only one of several instances makes a key. */
const lockId = 7_061_951

const aadOf = ({ id, purpose }: Pick<OAuthKeyRow, 'id' | 'purpose'>) => ['oauth', purpose, id].join('|')

/** Seals keys in the same envelope as wallet keys, bound to their row. */
function createKeySealer({ log, ...deps }: Pick<KeysDeps, 'keyEncryptionKeys' | 'random' | 'log'>) {
  const sealer = createSealer(deps)
  return {
    seal: (secret: Uint8Array, row: Pick<OAuthKeyRow, 'id' | 'purpose'>) => sealer.seal(secret, aadOf(row)),
    /** Returns the unsealed key; undefined if the key-encryption key is missing or differs. */
    async unseal(row: OAuthKeyRow): Promise<Buffer | undefined> {
      if (!deps.keyEncryptionKeys.find(row.kek_id)) return undefined
      return sealer.unseal(row, aadOf(row)).catch((error: unknown) => {
        log.error({ error, key: row.id }, 'a key of the authorization server cannot be decrypted')
        return undefined
      })
    },
  }
}

export function createOAuthKeys({
  db,
  transact,
  keyEncryptionKeys,
  clock,
  random,
  log,
}: KeysDeps): OAuthKeys {
  const rows = (on: Queryable): Promise<OAuthKeyRow[]> =>
    fetchAll(on, builder.selectFrom('oauth_key').selectAll().orderBy('active_at', 'desc'))

  const { seal, unseal } = createKeySealer({ keyEncryptionKeys, random, log })

  const make = async (purpose: OAuthKeyRow['purpose'], activeAt: Date): Promise<OAuthKeyRow> => {
    const id = Buffer.from(random.bytes(16)).toString('base64url')
    const row = { id, purpose, created_at: clock.now(), active_at: activeAt }
    if (purpose === 'cookie')
      return { ...row, public_jwk: null, ...(await seal(random.bytes(keyBytes), row)) }
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const shared = { kid: id, alg: 'ES256', use: 'sig' }
    const publicJwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }), ...shared }
    const secret = Buffer.from(JSON.stringify({ ...privateKey.export({ format: 'jwk' }), ...shared }))
    return { ...row, public_jwk: publicJwk, ...(await seal(secret, row)) }
  }

  /** Returns when the next key has to be used, or undefined if the newest is young enough. */
  const dueAt = (all: readonly OAuthKeyRow[], purpose: OAuthKeyRow['purpose']): Date | undefined => {
    const now = clock.now()
    const usable = all.filter(
      (row) => row.purpose === purpose && keyEncryptionKeys.find(row.kek_id) !== undefined,
    )
    const newest = usable[0]
    if (!newest) return now
    return later(newest.active_at, rotationMs - leadMs) <= now ? later(now, leadMs) : undefined
  }

  const rotate = async (): Promise<OAuthKeyRow[]> => {
    const known = await rows(db)
    const due = purposes.filter((purpose) => dueAt(known, purpose))
    if (due.length === 0) return known
    // Wrapping a key may be a network call, so it happens outside the transaction.
    const made = await Promise.all(due.map((purpose) => make(purpose, dueAt(known, purpose)!)))
    await transact(async (tx) => {
      await query(tx, 'select pg_advisory_xact_lock($1)', [lockId])
      const now = await rows(tx)
      for (const row of made) {
        if (!dueAt(now, row.purpose)) continue
        await fetchAll(
          tx,
          builder
            .insertInto('oauth_key')
            .values({ ...row, public_jwk: row.public_jwk && (JSON.stringify(row.public_jwk) as never) }),
        )
      }
      await query(
        tx,
        `delete from oauth_key k where active_at < $1 and exists (
           select from oauth_key n where n.purpose = k.purpose and n.active_at > k.active_at and n.active_at < $2)
         returning id`,
        [later(clock.now(), -rotationMs - retentionMs), clock.now()],
      )
    })
    return rows(db)
  }

  const load = async (): Promise<ServerKeys> => {
    const all = await rotate()
    const now = clock.now()
    // The newest key comes first; keys that are not in use yet come last.
    const ordered = all.toSorted((a, b) => Number(a.active_at > now) - Number(b.active_at > now))
    const opened = await Promise.all(ordered.map(async (row) => ({ row, secret: await unseal(row) })))
    const of = (purpose: OAuthKeyRow['purpose']) =>
      opened.flatMap(({ row, secret }) => (row.purpose === purpose && secret ? [secret] : []))
    return {
      version: opened.map(({ row, secret }) => `${row.id}:${secret !== undefined}`).join(),
      signing: of('signing').map((secret) => JSON.parse(secret.toString()) as Jwk),
      cookies: of('cookie').map((secret) => secret.toString('base64url')),
    }
  }

  const nowMs = () => clock.now().getTime()
  const server = createCachedValue(load, { ttlMs: cachedMs, nowMs })
  const publicSet = createCachedValue(
    async () => (await rows(db)).flatMap(({ public_jwk }) => (public_jwk ? [public_jwk as Jwk] : [])),
    { ttlMs: cachedMs, nowMs },
  )
  return {
    current: () => server.get(),
    publicKeys: () => publicSet.get(),
    freshPublicKeys: () => publicSet.get({ maxAgeMs: unknownKeyPauseMs }),
    async rewrap() {
      const former = (await rows(db)).filter(({ kek_id }) => kek_id !== keyEncryptionKeys.current.id)
      for (const row of former) {
        const secret = await unseal(row)
        if (!secret) continue
        const { ciphertext, wrapped_dek, kek_id } = await seal(secret, row)
        await query(
          db,
          `update oauth_key set ciphertext = $2, wrapped_dek = $3, kek_id = $4
           where id = $1 and kek_id = $5 returning id`,
          [row.id, ciphertext, wrapped_dek, kek_id, row.kek_id],
        )
      }
    },
  }
}
