import type { Log } from '#kernel/log.ts'

/** EX_SOFTWARE of sysexits.h: neither a refused start (1) nor an ordered stop (0). */
export const uncaughtExitCode = 70

/**
 * Logs an uncaught exception or unhandled rejection and exits at once, because the state in memory is no longer
 * trusted. Every acceptance and every signature is stored before it is answered or sent, so the next start
 * continues from there, as after `kill -9`.
 */
export function exitOnUncaught(log: Log): void {
  process.on('uncaughtException', (error: unknown, origin) => {
    log.error({ error, origin }, 'uncaught exception: the process exits')
    process.exit(uncaughtExitCode)
  })
}
