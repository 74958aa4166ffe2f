import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import type { Keystore } from './keystore.ts'

type RotationDeps = { keystore: Pick<Keystore, 'rewrap'>; db: Queryable; log: Log }

/** Each call wraps every key that is still under a former key-encryption key under the current one. */
export const createKeyRotation =
  ({ keystore, db, log }: RotationDeps) =>
  async (): Promise<void> => {
    for (let after: string | null = null, more = true; more; more = after !== null) {
      const { rewrapped, broken, next } = await keystore.rewrap(db, { after })
      after = next
      if (rewrapped > 0) log.info({ rewrapped }, 'wallet keys wrapped under the current key-encryption key')
      if (broken.length > 0)
        log.error({ wallets: broken }, 'no configured key-encryption key unwraps these wallet keys')
    }
  }
