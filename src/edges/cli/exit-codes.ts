import { PorticoError } from '#sdk/errors.ts'
import { UsageError } from './terminal.ts'

export const exitCodes = {
  success: 0,
  unexpected: 1,
  usage: 2,
  unauthenticated: 3,
  forbidden: 4,
  notFound: 5,
  conflict: 6,
  rateLimited: 7,
  server: 8,
  connection: 9,
  taskFailed: 10,
  taskRunning: 11,
} as const

const byStatus: Readonly<Record<number, number>> = {
  0: exitCodes.connection,
  400: exitCodes.usage,
  401: exitCodes.unauthenticated,
  403: exitCodes.forbidden,
  404: exitCodes.notFound,
  409: exitCodes.conflict,
  422: exitCodes.usage,
  429: exitCodes.rateLimited,
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return exitCodes.usage
  if (!(error instanceof PorticoError)) return exitCodes.unexpected
  return byStatus[error.status] ?? (error.status >= 500 ? exitCodes.server : exitCodes.unexpected)
}
