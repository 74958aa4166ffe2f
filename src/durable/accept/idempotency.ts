import { Fault } from '#kernel/contract/fault.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { builder, fetchOne, type Queryable } from '#store/query.ts'
import { KeyTaken } from './acceptance.ts'

export type KeyedRequest = { userId: string; key: string; operation: string; hash: string }
export type StoredKey = { taskId: string | null; response: JsonObject | null }

/** Finds the task or reply of an idempotency key; throws if the key was used for another operation or body. */
export async function findKey(
  db: Queryable,
  { userId, key, operation, hash }: KeyedRequest,
): Promise<StoredKey | undefined> {
  const row = await fetchOne(
    db,
    builder.selectFrom('idempotency').selectAll().where('user_id', '=', userId).where('key', '=', key),
  )
  if (!row) return undefined
  if (row.operation !== operation || row.body_hash !== hash) throw conflict(row.task_id)
  return { taskId: row.task_id, response: row.response as JsonObject | null }
}

const conflict = (taskId: string | null) =>
  new Fault(
    'idempotency_conflict',
    'This idempotency key was used for another request: repeat that request unchanged, or use a new key',
    { extras: taskId === null ? {} : { task_id: taskId } },
  )

/** Whether a concurrent request with the same key won; an act, which inserts its key, gets a unique violation. */
export const isKeyTaken = (error: unknown): boolean => {
  if (error instanceof KeyTaken) return true
  const { code, constraint } = error as { code?: string; constraint?: string }
  return code === '23505' && constraint === 'idempotency_pkey'
}
