import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from '#kernel/contract/fault.ts'

/** The cookies of the pages are not readable by scripts, and forms of other sites do not send them. */

/** Refuses a name that occurs twice: a script can add a cookie for a longer path, which comes first. */
export function readCookie({ headers }: IncomingMessage, name: string): string | undefined {
  const named = (headers.cookie ?? '').split(/; ?/).filter((each) => each.startsWith(`${name}=`))
  if (named.length > 1)
    throw new Fault(
      'bad_request',
      'A cookie of this page came twice. Delete the cookies of this address, and open the page again.',
    )
  const value = named[0]?.slice(name.length + 1) ?? ''
  return /^[\w.-]{1,4096}$/.test(value) ? value : undefined
}

type Cookie = { name: string; value: string; path: string; seconds: number; baseUrl: string }

/** A lifetime of 0 seconds deletes the cookie. */
export function setCookie(response: ServerResponse, { name, value, path, seconds, baseUrl }: Cookie): void {
  const attributes = [`Path=${path}`, `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax']
  if (baseUrl.startsWith('https:')) attributes.push('Secure')
  response.appendHeader('set-cookie', [`${name}=${value}`, ...attributes].join('; '))
}
