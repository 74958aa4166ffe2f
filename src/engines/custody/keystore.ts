import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { EvmCrypto, SvmCrypto } from '#kernel/task/signer.ts'
import type { Tx } from '#kernel/task/task.ts'
import { BrokenEnvelope, decrypt, encrypt, keyBytes } from '#kernel/wire/encrypted-envelope.ts'
import type { KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import type { Queryable } from '#store/query.ts'
import type { SealedAgent } from './agent-key-store.ts'
import * as store from './wallet-store.ts'

type KeyBinding = { user_id: string; kind: string; address: string; version: number }
type SealedRow = KeyBinding & Pick<store.WalletRow, 'ciphertext' | 'wrapped_dek' | 'kek_id'>
export type PreparedWallet = store.WalletRow

/** Binds a sealed key to its row, so that it cannot be decrypted from another row. */
const aadOf = ({ user_id, kind, address, version }: KeyBinding) =>
  ['wallet', user_id, kind, address, version].join('|')

/** An agent's key is bound to its venue as well as to its user and address. */
const sealedAgentKey = (row: SealedAgent): SealedRow => ({ ...row, kind: store.agentKind(row.venue) })

const version = 1

type KeystoreDeps = {
  keyEncryptionKeys: KeyEncryptionKeys
  crypto: { evm: Pick<EvmCrypto, 'addressOf'>; svm: Pick<SvmCrypto, 'addressOf'> }
  clock: Clock
  random: Random
}

export type Keystore = {
  /** Generates and seals one key per kind. Wrapping may be a network call, so call it outside any transaction. */
  prepare(userId: string): Promise<PreparedWallet[]>
  /** Stores the prepared wallets unless the user has wallets already; returns the stored ones. */
  provision(tx: Tx, prepared: PreparedWallet[]): Promise<store.Wallet[]>
  /** Decrypts the secret for one call and wipes it afterwards. */
  withKey<T>(row: store.WalletRow, use: (secret: Uint8Array) => Promise<T>): Promise<T>
  /** Generates and seals the key of an agent; call it outside any transaction. */
  prepareAgent(userId: string, venue: string): Promise<SealedAgent>
  withAgentKey<T>(row: SealedAgent, use: (secret: Uint8Array) => Promise<T>): Promise<T>
  /** Tests every key-encryption key in use on some of its rows; returns those that fail. */
  unusableKeyEncryptionKeys(db: Queryable): Promise<UnusableKek[]>
  /**
   * Wraps the data keys of some wallets under the current key-encryption key. `next` is the cursor of the
   * next call, null at the end. A crash and a restart without `after` are safe, because each row names the
   * key that wrapped it. `broken` rows can be decrypted under no configured key and need an operator.
   */
  rewrap(db: Queryable, options?: { after?: string | null; limit?: number }): Promise<Rewrapped>
}
/** A key-encryption key in use that unwraps nothing is not configured, or is not the one that wrapped the rows. */
export type UnusableKek = { kekId: string; reason: 'absent' | 'wrong' }
export type Rewrapped = { rewrapped: number; broken: string[]; next: string | null }

/** For each key-encryption key, this many rows are tried and one must unwrap: one damaged row prevents no start. */
const rowsToTry = 3

/** Whether the key is wrong or the row damaged; any other error may be temporary and aborts the rotation. */
const isBroken = (error: unknown): boolean =>
  error instanceof BrokenEnvelope || (error instanceof Fault && error.code === 'upstream_rejected')

export function createKeystore({ keyEncryptionKeys, crypto, clock, random }: KeystoreDeps): Keystore {
  const unwrap = async (row: SealedRow) => {
    const kek = keyEncryptionKeys.find(row.kek_id)
    if (!kek)
      throw new Fault(
        'unavailable',
        'The key of this wallet cannot be opened: the operator has to configure its key in KEY_ENCRYPTION_KEYS, or the key service',
      )
    return kek.unwrap(row.wrapped_dek, `${row.kek_id}|${aadOf(row)}`)
  }

  const seal = async <K extends string>(userId: string, kind: K, family: store.WalletKind) => {
    const secret = random.bytes(keyBytes)
    const dek = random.bytes(keyBytes)
    try {
      const at = clock.now()
      const address = await crypto[family].addressOf(secret)
      const row = { id: uuidv7(at, random), user_id: userId, kind, address, version, created_at: at }
      const kek = keyEncryptionKeys.current
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
      const kek = keyEncryptionKeys.current
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
    if (!keyEncryptionKeys.find(kekId)) return [{ kekId, reason: 'absent' }]
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
      return userId === undefined ? [] : store.readWallets(tx, userId)
    },
    async unusableKeyEncryptionKeys(db) {
      const inUse = await store.keyEncryptionKeysInUse(db)
      return (await Promise.all(inUse.map(({ kek_id }) => checkKek(db, kek_id)))).flat()
    },
    async rewrap(db, { after = null, limit = 100 } = {}) {
      const rows = await store.keysWrappedByOthers(db, keyEncryptionKeys.current.id, { after, limit })
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
