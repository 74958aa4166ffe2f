import type { IncomingMessage } from 'node:http'

const ownHost = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/
/** Pages of this machine, and browser extensions of its user, such as wallets. */
const ownOrigin =
  /^https?:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$|^(chrome|moz|safari-web)-extension:\/\/[\w-]+$/

/**
 * Browsers reach loopback too: a page of another origin, or one whose name resolves to this machine, must not change
 * this world's clock or money. Programs send no origin and use the name of the machine.
 */
export const isForeignOrigin = ({ headers, rawHeaders }: IncomingMessage): boolean => {
  if (!ownHost.test(headers.host ?? '')) return true
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
  if (names.filter((name) => name === 'host').length > 1) return true
  return headers.origin !== undefined && !ownOrigin.test(headers.origin)
}

export const foreignOriginMessage = 'This world accepts requests of its own machine only.'

/** For a page that may read the answers; no other page may. */
export const corsHeaders = ({ headers, method }: IncomingMessage): Record<string, string> => {
  if (headers.origin === undefined) return {}
  const allowed = { 'access-control-allow-origin': headers.origin, vary: 'origin' }
  if (method !== 'OPTIONS') return allowed
  const asked = headers['access-control-request-headers'] ?? 'content-type'
  return {
    ...allowed,
    'access-control-allow-methods': 'GET, POST, PUT, DELETE',
    'access-control-allow-headers': asked,
    'access-control-max-age': '600',
  }
}
