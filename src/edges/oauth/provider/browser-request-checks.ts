import type { IncomingMessage } from 'node:http'

/** Checks where a request comes from by its headers `Origin` and `Sec-Fetch-*`. */

export const isRefusedOrigin = ({ headers }: IncomingMessage, base: string): boolean => {
  const { origin } = headers
  if (origin !== undefined) return origin !== new URL(base).origin
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin' && site !== 'none'
}

/**
 * Whether a request opens a page in a window, as far as the browser says what the request is for: neither a script nor
 * a frame may read a page.
 */
export const isNavigation = ({ headers }: IncomingMessage): boolean => {
  const { 'sec-fetch-dest': dest, 'sec-fetch-mode': mode } = headers
  return dest === undefined || (dest === 'document' && mode === 'navigate')
}
/**
 * Whether a person pressed the button. Chromium and Firefox report this in a header, and Safari never does, so a
 * request from Safari is accepted. A script cannot change these headers of a window that it opens.
 */
export const isPressed = ({ headers }: IncomingMessage): boolean => {
  const saysWhoPressed = headers['sec-ch-ua'] !== undefined || /Firefox\//.test(headers['user-agent'] ?? '')
  return headers['sec-fetch-dest'] === undefined || !saysWhoPressed || headers['sec-fetch-user'] === '?1'
}
