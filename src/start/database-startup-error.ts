import type { Config } from '#config.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { StoreRefusal } from '#store/operator-error.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'

/**
 * SQLSTATEs of a refused login, a missing database and a missing permission. PostgreSQL's own message is shown for
 * them, because it is clear.
 */
const refusalCodes = /^(28|3D)|^42501$/

/** Turns a database error that an operator can fix into one sentence; other errors stay unchanged. */
export function toStartupError(error: unknown, { DATABASE_URL }: Pick<Config, 'DATABASE_URL'>): unknown {
  if (!DATABASE_URL || !(error instanceof Error) || error instanceof Fault) return error
  const { code = '' } = error as { code?: string }
  const location = `The database at ${new URL(DATABASE_URL).host}`
  if (refusalCodes.test(code))
    return new StoreRefusal(`${location} refused the connection: ${error.message}. Check DATABASE_URL.`, {
      cause: error,
    })
  if (!isDatabaseUnavailable(error)) return error
  const reason = code || error.message
  const sentence = `${location} cannot be reached (${reason}). Check DATABASE_URL; without it the gateway starts an embedded server.`
  return new StoreRefusal(sentence, { cause: error })
}
