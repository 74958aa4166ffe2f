import { createLru } from '#kernel/async/create-lru.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { KeyEncryptionKeys, Sealer } from '#kernel/wire/sealed-secret.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { PredictionKeyRow } from '#store/tables/predmkt.ts'

/** The venue's keys of owners are sealed in the database, and opened when a request is signed. */

type NewKey = Omit<PredictionKeyRow, 'revoked_at'>
export type VenueKeys = {
  of(userId: string): Promise<VenueCredentials | undefined>
  /** Seals a key, outside any transaction, because wrapping may be a network call. */
  seal(userId: string, credentials: VenueCredentials): Promise<NewKey>
  /** Stores a sealed key in place of an earlier one of the same owner. */
  add(tx: Tx, key: NewKey): Promise<void>
  revoke(tx: Tx, userId: string): Promise<void>
  rewrap(): Promise<void>
}

type VenueKeyDeps = {
  db: Queryable
  venue: string
  sealer: Sealer
  keyEncryptionKeys: KeyEncryptionKeys
  clock: Clock
  random: Random
  log: Log
}

const openedMax = 1_000
const rowsMax = 100
const firstId = '00000000-0000-0000-0000-000000000000'

const aadOf = ({
  id,
  user_id,
  venue,
  owner_address,
}: Pick<NewKey, 'id' | 'user_id' | 'venue' | 'owner_address'>) =>
  ['prediction_key', id, user_id, venue, owner_address].join('|')

export function createVenueKeys(deps: VenueKeyDeps): VenueKeys {
  const { db, venue, sealer, keyEncryptionKeys, clock, random, log } = deps
  // A key never changes under its id, so an opened one is never stale.
  const opened = createLru<string, VenueCredentials>(openedMax)
  const open = async (row: NewKey): Promise<VenueCredentials> => {
    const known = opened.get(row.id)
    if (known) return known
    const secret = await sealer.unseal(row, aadOf(row))
    try {
      const {
        key,
        secret: hmac,
        passphrase,
      } = JSON.parse(secret.toString('utf8')) as Omit<VenueCredentials, 'owner'>
      const credentials = { owner: row.owner_address, key, secret: hmac, passphrase }
      opened.set(row.id, credentials)
      return credentials
    } finally {
      secret.fill(0)
    }
  }
  const sealWithId = async (
    id: string,
    owner: Pick<NewKey, 'user_id' | 'owner_address'>,
    keys: VenueCredentials,
  ) => {
    const { key, secret, passphrase } = keys
    const bytes = Buffer.from(JSON.stringify({ key, secret, passphrase }))
    try {
      return await sealer.seal(bytes, aadOf({ id, venue, ...owner }))
    } finally {
      bytes.fill(0)
    }
  }
  const rewrapOne = async (row: PredictionKeyRow): Promise<void> => {
    try {
      const sealed = await sealWithId(row.id, row, await open(row))
      await query(
        db,
        'update prediction_key set ciphertext = $2, wrapped_dek = $3, kek_id = $4 where id = $1 and kek_id = $5',
        [row.id, sealed.ciphertext, sealed.wrapped_dek, sealed.kek_id, row.kek_id],
      )
    } catch (error) {
      log.error({ error, key: row.id }, 'a key of a prediction market cannot be decrypted')
    }
  }
  return {
    async of(userId) {
      const row = await fetchOne(
        db,
        builder
          .selectFrom('prediction_key')
          .selectAll()
          .where('user_id', '=', userId)
          .where('venue', '=', venue)
          .where('revoked_at', 'is', null),
      )
      return row && open(row)
    },
    async seal(userId, credentials) {
      const now = clock.now()
      const id = uuidv7(now, random)
      const owner = { user_id: userId, owner_address: credentials.owner }
      return { id, venue, ...owner, ...(await sealWithId(id, owner, credentials)), created_at: now }
    },
    async add(tx, row) {
      await query(
        tx,
        'update prediction_key set revoked_at = $4 where user_id = $1 and venue = $2 and owner_address = $3 and revoked_at is null',
        [row.user_id, row.venue, row.owner_address, row.created_at],
      )
      await query(
        tx,
        `insert into prediction_key (id, user_id, venue, owner_address, ciphertext, wrapped_dek, kek_id, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [
          row.id,
          row.user_id,
          row.venue,
          row.owner_address,
          row.ciphertext,
          row.wrapped_dek,
          row.kek_id,
          row.created_at,
        ],
      )
    },
    async revoke(tx, userId) {
      await query(
        tx,
        'update prediction_key set revoked_at = $3 where user_id = $1 and venue = $2 and revoked_at is null',
        [userId, venue, clock.now()],
      )
    },
    async rewrap() {
      for (let after = firstId; ; ) {
        const rows = await fetchAll(
          db,
          builder
            .selectFrom('prediction_key')
            .selectAll()
            .where('kek_id', '<>', keyEncryptionKeys.current.id)
            .where('id', '>', after)
            .orderBy('id')
            .limit(rowsMax),
        )
        for (const row of rows) await rewrapOne(row)
        const last = rows.at(-1)
        if (!last) return
        after = last.id
      }
    },
  }
}
