/** SQLSTATE class 08 is connection exceptions; class 53 is exhausted disk, memory or connections. */
const codeClasses = /^(08|53)/
/** SQLSTATEs of shutdown, crash, startup, refused connections, idle timeouts, and a primary made a replica. */
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
/** node-postgres reports these failures without a code. */
const messages =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/

/**
 * Whether the database was unreachable, as opposed to rejecting the statement: the caller answers 503 with
 * Retry-After. A lost reply to a commit is such an error too, so this alone never proves that nothing happened.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    const { code, syscall } = each as { code?: string; syscall?: string }
    if (code !== undefined && (codes.has(code) || codeClasses.test(code))) return true
    // ENOENT is a lost connection only if the socket is missing, and not if another file is.
    if (code !== undefined && systemCodes.has(code)) return code !== 'ENOENT' || syscall === 'connect'
    if (messages.test(each.message)) return true
  }
  return false
}
