import type { FastifyInstance } from 'fastify'
import { type Guard, serveDocument } from './document-routes.ts'

/**
 * The issuer of the access tokens, the metadata of its authorization server, and whether this gateway has pages for
 * people.
 */
export type AuthorizationServerDocuments = {
  issuer: () => string
  metadata: () => Promise<object>
  hasPages: boolean
}
export function whyNoPages(server: AuthorizationServerDocuments | undefined): string | undefined {
  if (!server)
    return 'people do not sign in at this gateway. Agents do, with a key pair: POST /v1/auth/register'
  if (server.hasPages) return undefined
  return `people sign in at ${server.issuer()}, and act over apps: this gateway has no pages for them`
}

type WellKnownDeps = {
  baseUrl: () => string
  authorizationServer: AuthorizationServerDocuments | undefined
}

/** `offline_access` is requested from the authorization server, but it is no scope of the resource. */
const resourceScopes = ['openid', 'profile', 'email']

/**
 * Serves the discovery documents. Every 401 refers to the protected resource metadata (RFC 9728), which names no
 * authorization server if none is served; tokens then come from `auth_token` only.
 */
export function serveWellKnown(
  fastify: FastifyInstance,
  guard: Guard,
  { baseUrl, authorizationServer }: WellKnownDeps,
): void {
  const serve = (path: string, text: () => string | Promise<string>) =>
    serveDocument(fastify, { guards: guard, path, text })
  const resource = (path: string) => () =>
    JSON.stringify({
      resource: `${baseUrl()}${path}`,
      ...(authorizationServer && {
        authorization_servers: [authorizationServer.issuer()],
        scopes_supported: resourceScopes,
      }),
      bearer_methods_supported: ['header'],
      resource_documentation: `${baseUrl()}/docs`,
    })
  serve('/.well-known/oauth-protected-resource', resource(''))
  if (authorizationServer) {
    serve('/.well-known/oauth-protected-resource/mcp', resource('/mcp'))
    for (const name of ['oauth-authorization-server', 'openid-configuration'])
      serve(`/.well-known/${name}`, async () => JSON.stringify(await authorizationServer.metadata()))
  }

  const catalogue = '/.well-known/api-catalog'
  serveDocument(fastify, {
    guards: guard,
    path: catalogue,
    text: () => JSON.stringify({ linkset: linksetOf(baseUrl()) }),
    type: 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    headers: () => ({ link: `<${baseUrl()}${catalogue}>; rel="api-catalog"` }),
  })
}

function linksetOf(base: string): object[] {
  const link = (path: string, type?: string) => [{ href: `${base}${path}`, ...(type && { type }) }]
  return [
    {
      anchor: `${base}/`,
      'service-desc': link('/openapi.json', 'application/vnd.oai.openapi+json;version=3.1'),
      'service-doc': link('/docs', 'text/html'),
      status: link('/health', 'application/json'),
      'service-meta': link('/capabilities', 'application/json'),
    },
    {
      anchor: `${base}/mcp`,
      'service-desc': link('/.well-known/mcp/server-card.json', 'application/mcp-server-card+json'),
    },
  ]
}
