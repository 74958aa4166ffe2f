import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { EvmCrypto, SvmCrypto } from '#kernel/signer.ts'
import type { Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { SealedAgent } from './agents.ts'
import { BrokenEnvelope, decrypt, encrypt, keyBytes } from './envelope.ts'
import type { Keks } from './key-encryption-keys.ts'
import * as store from './store.ts'

type KeyBinding = { user_id: string; kind: string; address: string; version: number }
type SealedRow = KeyBinding & Pick<store.WalletRow, 'ciphertext' | 'wrapped_dek' | 'kek_id'>
/** A wallet whose key is sealed already; nothing of it is stored yet. */
export type PreparedWallet = store.WalletRow

/** Binds a sealed key to its row: moved to another row it does not open. */
const aadOf = ({ user_id, kind, address, version }: KeyBinding) =>
  ['wallet', user_id, kind, address, version].join('|')

/** An agent's key is bound to its venue beside its user and address. */
const sealedAgentKey = (row: SealedAgent): SealedRow => ({ ...row, kind: store.agentKind(row.venue) })

const version = 1

type KeystoreDeps = {
  keks: Keks
  crypto: { evm: Pick<EvmCrypto, 'addressOf'>; svm: Pick<SvmCrypto, 'addressOf'> }
  clock: Clock
  random: Random
}

export type Keystore = {
  /** Makes and wraps one key per kind. Wrapping may be a network call, so this comes before any transaction. */
  prepare(userId: string): Promise<PreparedWallet[]>
  /** Stores what was prepared unless the user has wallets already; answers with those that count. */
  provision(tx: Tx, prepared: PreparedWallet[]): Promise<store.Wallet[]>
  /** Lends the secret for the time of one call and wipes it. */
  withKey<T>(row: store.WalletRow, use: (secret: Uint8Array) => Promise<T>): Promise<T>
  /** Makes and wraps the key of an agent; as with wallets this comes before any transaction. */
  prepareAgent(userId: string, venue: string): Promise<SealedAgent>
  withAgentKey<T>(row: SealedAgent, use: (secret: Uint8Array) => Promise<T>): Promise<T>
  /** Every key-encryption key in use opens one of its rows; those that do not are answered. */
  unusableKeks(db: Queryable): Promise<UnusableKek[]>
  /**
   * Wraps the data keys of some wallets under the current key-encryption key; `next` is where to go on, null at the
   * end. A crash in between loses nothing, since each row says which key wrapped it: begin again without `after`.
   * `broken` rows open under no key at hand: somebody has to look at them.
   */
  rewrap(db: Queryable, options?: { after?: string | null; limit?: number }): Promise<Rewrapped>
}
/** A key-encryption key in use that opens nothing: absent from the settings, or not the one that wrapped the rows. */
export type UnusableKek = { kekId: string; reason: 'absent' | 'wrong' }
export type Rewrapped = { rewrapped: number; broken: string[]; next: string | null }

/** Of so many rows one has to open: a single damaged row is no reason to refuse a start. */
const rowsToTry = 3

/** The blob is another one or stands in another place; anything else may pass, and ends the rotation until then. */
const isBroken = (error: unknown): boolean =>
  error instanceof BrokenEnvelope || (error instanceof Fault && error.code === 'upstream_rejected')

export function keystore({ keks, crypto, clock, random }: KeystoreDeps): Keystore {
  const unwrap = async (row: SealedRow) => {
    const kek = keks.find(row.kek_id)
    if (!kek) throw new Fault('unavailable', 'The key that protects this wallet is not at hand')
    return kek.unwrap(row.wrapped_dek, `${row.kek_id}|${aadOf(row)}`)
  }

  const seal = async <K extends string>(userId: string, kind: K, family: store.WalletKind) => {
    const secret = random.bytes(keyBytes)
    const dek = random.bytes(keyBytes)
    try {
      const at = clock.now()
      const address = await crypto[family].addressOf(secret)
      const row = { id: uuidv7(at, random), user_id: userId, kind, address, version, created_at: at }
      const kek = keks.current
      return {
        ...row,
        ciphertext: encrypt(dek, random.bytes(12), secret, aadOf(row)),
        wrapped_dek: await kek.wrap(dek, `${kek.id}|${aadOf(row)}`),
        kek_id: kek.id,
      }
    } finally {
      secret.fill(0)
      dek.fill(0)
    }
  }

  const withSealedKey: <T>(row: SealedRow, use: (secret: Uint8Array) => Promise<T>) => Promise<T> = async (
    row,
    use,
  ) => {
    const dek = await unwrap(row)
    let secret: Uint8Array | undefined
    try {
      secret = decrypt(dek, row.ciphertext, aadOf(row))
      return await use(secret)
    } finally {
      dek.fill(0)
      secret?.fill(0)
    }
  }

  const rewrapOne = async (db: Queryable, row: store.SealedKey) => {
    const dek = await unwrap(row)
    try {
      const kek = keks.current
      const wrapped = await kek.wrap(dek, `${kek.id}|${aadOf(row)}`)
      return await store.replaceDek(db, row, wrapped, kek.id)
    } finally {
      dek.fill(0)
    }
  }

  const canOpen = async (row: store.SealedKey): Promise<boolean> => {
    try {
      await withSealedKey(row, async () => {})
      return true
    } catch (error) {
      if (!isBroken(error)) throw error
      return false
    }
  }

  const checkKek = async (db: Queryable, kekId: string): Promise<UnusableKek[]> => {
    if (!keks.find(kekId)) return [{ kekId, reason: 'absent' }]
    const rows = await store.keysUnderKek(db, kekId, rowsToTry)
    for (const row of rows) if (await canOpen(row)) return []
    return rows.length === 0 ? [] : [{ kekId, reason: 'wrong' }]
  }

  return {
    prepare: (userId) => Promise.all([seal(userId, 'evm', 'evm'), seal(userId, 'svm', 'svm')]),
    async prepareAgent(userId, venue) {
      const { kind: _kind, ...row } = await seal(userId, store.agentKind(venue), 'evm')
      return { ...row, venue }
    },
    withAgentKey: (row, use) => withSealedKey(sealedAgentKey(row), use),
    withKey: withSealedKey,
    async provision(tx, prepared) {
      for (const wallet of prepared) await store.addWallet(tx, wallet)
      const userId = prepared[0]?.user_id
      return userId === undefined ? [] : store.walletsOf(tx, userId)
    },
    async unusableKeks(db) {
      const inUse = await store.keksInUse(db)
      return (await Promise.all(inUse.map(({ kek_id }) => checkKek(db, kek_id)))).flat()
    },
    async rewrap(db, { after = null, limit = 100 } = {}) {
      const rows = await store.keysOutsideKek(db, keks.current.id, { after, limit })
      const broken: string[] = []
      let rewrapped = 0
      for (const row of rows) {
        try {
          if (await rewrapOne(db, row)) rewrapped++
        } catch (error) {
          if (!isBroken(error)) throw error
          broken.push(row.id)
        }
      }
      return { rewrapped, broken, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
    },
  }
}
