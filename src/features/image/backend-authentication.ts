import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Queryable } from '#store/query.ts'
import { hashKey, idOfKey, isHashOf } from './backend-key-format.ts'
import * as store from './backend-store.ts'

type BackendsDeps = { db: Queryable; clock: Clock }

/** An unknown key is compared with this hash, so that an unknown id takes as long as a wrong secret. */
const noHash = hashKey('')

/** Reads the header X-BACKEND-KEY; throws unauthorized. */
export const authenticateBackend =
  ({ db, clock }: BackendsDeps) =>
  async (key: string | undefined): Promise<Caller> => {
    if (key === undefined)
      throw new Fault('unauthorized', "Images are made with a backend's key only: send it in X-BACKEND-KEY")
    const keyId = idOfKey(key)
    const row = keyId === undefined ? undefined : await store.findKey(db, keyId)
    const isRight = isHashOf(row?.key_hash ?? noHash, key)
    const isOver = row?.expires_at != null && row.expires_at <= clock.now()
    if (!row || !isRight || isOver)
      throw new Fault('unauthorized', 'The key in X-BACKEND-KEY is unknown, replaced or revoked')
    const backend = { id: row.id, name: row.name, accountId: row.account_id }
    // The id belongs to no user: a request of a backend becomes a task of the user who pays.
    return { userId: row.id, agentId: `backend:${row.name}`, scheme: 'backend', scopes: new Set(), backend }
  }
