import { errors } from 'oidc-provider'
import { isOwnClient } from '#kernel/contract/caller.ts'

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])
const isLoopback = ({ protocol, hostname }: URL): boolean =>
  protocol === 'http:' && loopbackHosts.has(hostname)

const redirectsMax = 10
const redirectLengthMax = 1_024

export type Metadata = {
  client_id?: string
  client_secret?: string
  client_secret_expires_at?: number
  redirect_uris?: unknown
  post_logout_redirect_uris?: unknown
  response_types?: unknown
  scope?: string
  token_endpoint_auth_method?: string
  application_type?: string
}

function redirectsOf(field: string, given: unknown): URL[] {
  const refuse = (why: string): never => {
    throw new errors.InvalidClientMetadata(`${field} ${why}`)
  }
  const uris: unknown[] = Array.isArray(given) ? given : []
  if (uris.length > redirectsMax) refuse(`must name at most ${redirectsMax}`)
  const urls = uris.map((uri) => {
    const url = typeof uri === 'string' && uri.length <= redirectLengthMax ? URL.parse(uri) : null
    return url ?? refuse('must only contain valid uris')
  })
  for (const url of urls) {
    if (url.username !== '' || url.password !== '') refuse('must not carry credentials')
    if (url.protocol === 'http:' && !isLoopback(url)) refuse('may use http for loopback addresses only')
  }
  return urls
}

/**
 * Redirects must go to https, to the loopback interface or to an app on the device. A client with one of the latter two
 * becomes a native client, whatever type it names, so that any loopback port works, as RFC 8252 demands.
 */
export function checkClient(metadata: Metadata): void {
  const { client_id, redirect_uris, post_logout_redirect_uris = [], response_types } = metadata
  // The gateway's own clients are not checked; the ids of other clients are random, or addresses.
  if (client_id !== undefined && isOwnClient(client_id)) return
  if (response_types !== undefined && String(response_types) !== 'code')
    throw new errors.InvalidClientMetadata('response_types must be code')
  const urls = redirectsOf('redirect_uris', redirect_uris)
  if (urls.length === 0) throw new errors.InvalidClientMetadata('redirect_uris must name at least one')
  redirectsOf('post_logout_redirect_uris', post_logout_redirect_uris)
  if (urls.some(({ protocol }) => protocol !== 'https:')) metadata.application_type = 'native'
  // The `scope` of a client is ignored, because the person decides on the consent page. An unknown scope would make the
  // registration fail, and a known one would limit later requests.
  delete metadata.scope
  if (metadata.token_endpoint_auth_method === 'none') {
    delete metadata.client_secret
    delete metadata.client_secret_expires_at
  }
}
