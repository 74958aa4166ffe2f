import { pino } from 'pino'
import type { Log } from '#kernel/log.ts'
import { redact } from './redact.ts'

/** Copies only standard fields: libraries attach whole connections to their errors. */
function serializeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack, cause } = error
  const { code } = error as { code?: unknown }
  return {
    type: name,
    message,
    stack,
    ...(typeof code === 'string' && { code }),
    ...(cause !== undefined && { cause: serializeError(cause) }),
  }
}

/** Structured lines on standard error; standard output is for the banner. */
export function logger(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: redact },
      serializers: { error: serializeError },
    },
    pino.destination({ fd: 2, sync: false }),
  )
}
