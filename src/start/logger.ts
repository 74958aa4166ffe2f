import { pino } from 'pino'
import type { Log } from '#kernel/log.ts'

const secrets = [
  'authorization',
  'x-backend-key',
  'signature',
  'secret',
  'token',
  'password',
  'privateKey',
  'raw',
  'signed',
]

/** Structured lines on standard error; standard output belongs to the banner. */
export function logger(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: secrets.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
        censor: '[redacted]',
      },
      serializers: { error: pino.stdSerializers.err },
    },
    pino.destination({ fd: 2, sync: false }),
  )
}
