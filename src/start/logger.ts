import { pino } from 'pino'
import type { Log } from '#kernel/log.ts'
import { formatLogLine } from './log-format.ts'
import { redact } from './redact.ts'

/** Copies only standard fields, because libraries attach whole connections to their errors. */
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

/** People at a terminal get text; every other reader gets JSON. */
const terminal = { write: (line: string) => void process.stderr.write(formatLogLine(line)) }

/** Log lines go to standard error; standard output is for the banner. */
export function logger(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: redact },
      serializers: { error: serializeError },
    },
    process.stderr.isTTY ? terminal : pino.destination({ fd: 2, sync: false }),
  )
}
