import { Fault } from '#kernel/contract/fault.ts'
import { isConflict } from '#store/serialization-conflict.ts'
import { isStatementTimeout } from '#store/timeouts.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'

/** Throws database errors as retryable faults: nothing is accepted while the database is away or in conflict. */
export function throwAsFault(error: unknown): never {
  if (isConflict(error))
    throw new Fault('unavailable', 'Other requests changed the same rows; try again', {
      cause: error,
      extras: { retry_after: 1 },
    })
  // Most likely a row stayed locked until the statement timeout. The server has rolled the statement back.
  if (isStatementTimeout(error))
    throw new Fault('unavailable', 'The database took too long and nothing was changed; try again', {
      cause: error,
      extras: { retry_after: 1 },
    })
  if (error instanceof Fault || !isDatabaseUnavailable(error)) throw error
  throw new Fault('unavailable', 'The database is unavailable', { cause: error, extras: { retry_after: 1 } })
}

export const isInsufficientBalance = (error: unknown) =>
  error instanceof Fault && error.code === 'insufficient_balance'

export const acceptanceUnknown = (key: string, cause: unknown) =>
  new Fault(
    'unavailable',
    'The database connection was lost and the task may exist; repeat the request with the same key',
    {
      cause,
      extras: { outcome: 'unknown', idempotency_key: key, retry_after: 1 },
    },
  )

/** Throws a failed upstream read as a fault without an unknown outcome, because no task exists yet. */
export function throwAdmissionFault(error: unknown): never {
  const isRead = error instanceof Fault && /^upstream_(timeout|rejected)$/.test(error.code)
  if (!isRead) throw error
  throw new Fault('unavailable', error.message, { cause: error, extras: error.extras })
}

export const accountBusy = ({ cause }: { cause?: unknown } = {}) =>
  new Fault('unavailable', 'The account is settling many tasks at once; try again', {
    cause,
    extras: { retry_after: 1 },
  })
