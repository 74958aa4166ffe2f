import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { parseJson } from '#kernel/wire/json.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'

/** An authorization server of somebody else, whose tokens this gateway accepts. */

type Document = Record<string, unknown>
export type PublicKey = Document & { kid: string }
export type ServerEndpoint = 'token_endpoint' | 'registration_endpoint'
export type ForwardedRequest = { contentType: string; authorization?: string | undefined; body: string }
export type AuthorizationServer = {
  issuer: string
  /** Returns the metadata (RFC 8414 or OpenID Connect Discovery). Each call throws `unavailable` in an outage. */
  metadata(): Promise<Document>
  publicKeys(): Promise<PublicKey[]>
  /** Reads the keys again after an unknown key id, at most twice a minute. */
  freshPublicKeys(): Promise<PublicKey[]>
  send(endpoint: ServerEndpoint, request: ForwardedRequest): Promise<{ status: number; body: string }>
}

const metadataMs = 10 * 60_000
const unknownKeyPauseMs = 30_000
const timeoutMs = 8_000
const maxBytes = 256 * 1024

const outage = (cause?: unknown) =>
  new Fault('unavailable', 'The authorization server does not answer; try again in a moment', { cause })

/** Returns where RFC 8414 and OpenID Connect Discovery put an issuer's document. */
function documentUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

type Options = { issuer: string; net: Net; clock: Clock }

export function createAuthorizationServer({ issuer, net, clock }: Options): AuthorizationServer {
  const fetchDocument = async (url: string): Promise<Document | undefined> => {
    const reply = await net
      .fetch({ url, method: 'GET', headers: { accept: 'application/json' }, timeoutMs, maxBytes })
      .catch((error: unknown) => {
        throw outage(error)
      })
    if (reply.status >= 500 || reply.status === 429) throw outage()
    if (reply.status !== 200) return undefined
    const parsed = parseJson(reply.body)
    return typeof parsed === 'object' && parsed !== null ? (parsed as Document) : undefined
  }
  const discover = async (): Promise<Document> => {
    for (const url of documentUrls(issuer)) {
      const found = await fetchDocument(url)
      // A document of another issuer is refused: its endpoints would receive the codes and tokens of this issuer.
      if (found?.issuer === issuer) return found
    }
    throw outage()
  }
  const nowMs = () => clock.now().getTime()
  const metadata = createCachedValue(discover, { ttlMs: metadataMs, nowMs })
  const endpoint = async (name: string): Promise<string> => {
    const url = (await metadata.get())[name]
    if (typeof url !== 'string' || !URL.canParse(url))
      throw new Fault('unavailable', `The authorization server has no ${name}`)
    return url
  }
  const loadKeys = async (): Promise<PublicKey[]> => {
    const found = await fetchDocument(await endpoint('jwks_uri'))
    if (!Array.isArray(found?.keys)) throw outage()
    return found.keys as PublicKey[]
  }
  const keys = createCachedValue(loadKeys, { ttlMs: metadataMs, nowMs })
  return {
    issuer,
    metadata: () => metadata.get(),
    publicKeys: () => keys.get(),
    freshPublicKeys: () => keys.get({ maxAgeMs: unknownKeyPauseMs }),
    async send(name, { contentType, authorization, body }) {
      const url = await endpoint(name)
      const headers = {
        accept: 'application/json',
        'content-type': contentType,
        ...(authorization !== undefined && { authorization }),
      }
      return net
        .fetch({ url, method: 'POST', headers, body, timeoutMs, maxBytes })
        .catch((error: unknown) => {
          throw outage(error)
        })
    },
  }
}
