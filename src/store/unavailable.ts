/** Whole classes: 08 connection exceptions, 53 disk, memory or connections used up. */
const codeClasses = /^(08|53)/
/** Shutdown, crash, starting up, not taking connections now, a connection that was idle too long, and a primary that became a replica. */
const codes = new Set(['57P01', '57P02', '57P03', '57P05', '55000', '25P03', '25006'])
const systemCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'EMFILE',
])
/** node-postgres gives these no code. */
const messages =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/

/**
 * Whether the database was out of reach rather than unwilling: the caller answers 503 with Retry-After. After a
 * lost commit the work may have landed all the same, so this alone never says that nothing happened.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    const { code, syscall } = each as { code?: string; syscall?: string }
    if (code !== undefined && (codes.has(code) || codeClasses.test(code))) return true
    // A missing file elsewhere is no lost connection: only the socket's counts.
    if (code !== undefined && systemCodes.has(code)) return code !== 'ENOENT' || syscall === 'connect'
    if (messages.test(each.message)) return true
  }
  return false
}
