import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, type RequestInit, type Response, fetch as undiciFetch } from 'undici'
import { isPublicAddress } from '#kernel/wire/public-ip-address.ts'

/** Fetches addresses that strangers name: only public hosts over https, without redirects. */

type GuardOptions = {
  timeoutMs?: number
  bytesMax?: number
  connections?: number
  /** Allows addresses of this machine too, over http and on any port; for development only. */
  allowLoopback?: boolean
  /** A test can replace the resolver, which addresses are public, and the trusted certificate. */
  lookup?: LookupFunction
  isPublic?: (address: string) => boolean
  ca?: string
}

export class RefusedAddress extends Error {
  override name = 'RefusedAddress'
}

const loopback = /^(?:127\.0\.0\.1|\[::1\]|localhost)$/
const isLoopbackAddress = (address: string): boolean => address === '127.0.0.1' || address === '::1'

/** Returns why a URL is refused, or undefined; the addresses of a name are checked when the socket opens. */
export function refusalOf(
  text: string,
  {
    isPublic = isPublicAddress,
    allowLoopback = false,
  }: Pick<GuardOptions, 'isPublic' | 'allowLoopback'> = {},
): string | undefined {
  const url = URL.parse(text)
  if (!url) return 'this is no URL'
  if (url.username !== '' || url.password !== '') return 'the URL carries credentials'
  if (allowLoopback && url.protocol === 'http:' && loopback.test(url.hostname)) return undefined
  if (url.protocol !== 'https:') return 'only https is fetched'
  if (url.port !== '') return 'only the default port is fetched'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) > 0) return isPublic(host) ? undefined : 'the address is not public'
  // Names without a dot, and those that never leave the local network, are not public.
  const name = host.replace(/\.$/, '')
  if (!name.includes('.') || /\.(?:localhost|local|internal|lan|home|arpa|test|invalid|onion)$/.test(name))
    return 'the name is not public'
  return undefined
}

export type GuardedFetch = {
  fetch(url: string, init?: RequestInit): Promise<Response>
  refusalOf(url: string): string | undefined
} & AsyncDisposable

export function openGuardedFetch({
  timeoutMs = 3_000,
  bytesMax = 64 * 1024,
  connections = 4,
  allowLoopback = false,
  lookup = systemLookup,
  isPublic = isPublicAddress,
  ca,
}: GuardOptions = {}): GuardedFetch {
  /** The socket opens to the addresses that were checked, so a second answer of the resolver changes nothing. */
  const guardedLookup: LookupFunction = (hostname, options, callback) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, [])
      const addresses = Array.isArray(found) ? found.map(({ address }) => address) : []
      const isAllowed =
        allowLoopback && hostname === 'localhost' ? isLoopbackAddress : (each: string) => isPublic(each)
      if (addresses.length === 0 || !addresses.every(isAllowed))
        return callback(new RefusedAddress(`${hostname} leads to an address that is not public`), [])
      callback(null, found)
    })
  const agent = new Agent({
    connections,
    maxResponseSize: bytesMax,
    maxHeaderSize: 16 * 1024,
    connect: { timeout: timeoutMs, lookup: guardedLookup, ...(ca !== undefined && { ca }) },
  })
  const refusal = (url: string) => refusalOf(url, { isPublic, allowLoopback })
  return {
    refusalOf: refusal,
    async fetch(url, init = {}) {
      const reason = refusal(url)
      if (reason !== undefined) throw new RefusedAddress(reason)
      const clock = AbortSignal.timeout(timeoutMs)
      const signal = init.signal ? AbortSignal.any([init.signal, clock]) : clock
      return undiciFetch(url, { ...init, signal, redirect: 'manual', dispatcher: agent })
    },
    [Symbol.asyncDispose]: () => agent.destroy(),
  }
}
