import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { EvmScheme, SvmScheme } from '#kernel/signer.ts'
import type { Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import { BrokenEnvelope, decrypt, encrypt, keyBytes } from './envelope.ts'
import type { Keks } from './keks.ts'
import * as store from './store.ts'

type Place = Pick<store.WalletRow, 'user_id' | 'kind' | 'address' | 'version'>
/** A wallet whose key is sealed already; nothing of it is stored yet. */
export type PreparedWallet = store.WalletRow

/** Binds a sealed key to its row: moved to another row it does not open. */
const placeOf = ({ user_id, kind, address, version }: Place) =>
  ['wallet', user_id, kind, address, version].join('|')

const version = 1

type Needs = {
  keks: Keks
  schemes: { evm: Pick<EvmScheme, 'addressOf'>; svm: Pick<SvmScheme, 'addressOf'> }
  clock: Clock
  random: Random
}

export type Keystore = {
  /** Makes and wraps one key per kind. Wrapping may be a network call, so this comes before any transaction. */
  prepare(userId: string): Promise<PreparedWallet[]>
  /** Stores what was prepared unless the user has wallets already; answers with those that count. */
  provision(tx: Tx, prepared: PreparedWallet[]): Promise<store.Wallet[]>
  /** Lends the secret for the time of one call and wipes it. */
  lend<T>(row: store.WalletRow, use: (secret: Uint8Array) => Promise<T>): Promise<T>
  /**
   * Wraps the data keys of some wallets under the current key-encryption key; `next` is where to go on, null at the
   * end. A crash in between loses nothing, since each row says which key wrapped it: begin again without `after`.
   * `broken` rows open under no key at hand: somebody has to look at them.
   */
  rewrap(on: Queryable, options?: { after?: string | null; most?: number }): Promise<Rewrapped>
}
export type Rewrapped = { rewrapped: number; broken: string[]; next: string | null }

/** The blob is another one or stands in another place; anything else may pass, and ends the rotation until then. */
const isBroken = (error: unknown): boolean =>
  error instanceof BrokenEnvelope || (error instanceof Fault && error.code === 'upstream_rejected')

export function keystore({ keks, schemes, clock, random }: Needs): Keystore {
  const unwrap = async (row: store.WalletRow) => {
    const kek = keks.of(row.kek_id)
    if (!kek) throw new Fault('unavailable', 'The key that protects this wallet is not at hand')
    return kek.unwrap(row.wrapped_dek, `${row.kek_id}|${placeOf(row)}`)
  }

  const seal = async (userId: string, kind: store.WalletKind): Promise<PreparedWallet> => {
    const secret = random.bytes(keyBytes)
    const dek = random.bytes(keyBytes)
    try {
      const at = clock.now()
      const address = await schemes[kind].addressOf(secret)
      const row = { id: uuidv7(at, random), user_id: userId, kind, address, version, created_at: at }
      const kek = keks.current
      return {
        ...row,
        ciphertext: encrypt(dek, random.bytes(12), secret, placeOf(row)),
        wrapped_dek: await kek.wrap(dek, `${kek.id}|${placeOf(row)}`),
        kek_id: kek.id,
      }
    } finally {
      secret.fill(0)
      dek.fill(0)
    }
  }

  const rewrapOne = async (on: Queryable, row: store.WalletRow) => {
    const dek = await unwrap(row)
    try {
      const kek = keks.current
      const wrapped = await kek.wrap(dek, `${kek.id}|${placeOf(row)}`)
      return await store.replaceDek(on, row, wrapped, kek.id)
    } finally {
      dek.fill(0)
    }
  }

  return {
    prepare: (userId) => Promise.all([seal(userId, 'evm'), seal(userId, 'svm')]),
    async provision(tx, prepared) {
      for (const wallet of prepared) await store.addWallet(tx, wallet)
      const userId = prepared[0]?.user_id
      return userId === undefined ? [] : store.walletsOf(tx, userId)
    },
    async lend(row, use) {
      const dek = await unwrap(row)
      let secret: Uint8Array | undefined
      try {
        secret = decrypt(dek, row.ciphertext, placeOf(row))
        return await use(secret)
      } finally {
        dek.fill(0)
        secret?.fill(0)
      }
    },
    async rewrap(on, { after = null, most = 100 } = {}) {
      const rows = await store.walletsOutsideKek(on, keks.current.id, { after, most })
      const broken: string[] = []
      let rewrapped = 0
      for (const row of rows) {
        try {
          if (await rewrapOne(on, row)) rewrapped++
        } catch (error) {
          if (!isBroken(error)) throw error
          broken.push(row.id)
        }
      }
      return { rewrapped, broken, next: rows.length === most ? (rows.at(-1)?.id ?? null) : null }
    },
  }
}
