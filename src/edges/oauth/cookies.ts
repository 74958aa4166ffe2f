import type { IncomingMessage, ServerResponse } from 'node:http'

/** Cookies of the pages of this gateway: out of reach of scripts, and not sent by forms of other sites. */

export const readCookie = ({ headers }: IncomingMessage, name: string): string | undefined =>
  new RegExp(`(?:^|; )${name}=([\\w.-]{1,4096})(?:;|$)`).exec(headers.cookie ?? '')?.[1]

type Cookie = { name: string; value: string; path: string; seconds: number; baseUrl: string }

/** No seconds delete it. */
export function setCookie(response: ServerResponse, { name, value, path, seconds, baseUrl }: Cookie): void {
  const attributes = [`Path=${path}`, `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax']
  if (baseUrl.startsWith('https:')) attributes.push('Secure')
  response.appendHeader('set-cookie', [`${name}=${value}`, ...attributes].join('; '))
}
