import type { FastifyInstance } from 'fastify'
import { type Guard, serveDocument } from './pages.ts'

/** The discovery documents that every 401 and every crawler lead to. */
export function serveWellKnown(
  fastify: FastifyInstance,
  guard: Guard,
  baseUrl: () => string,
  issuer: () => string,
): void {
  const resourceAt = (path: string) => () =>
    JSON.stringify({
      resource: `${baseUrl()}${path}`,
      authorization_servers: [issuer()],
      bearer_methods_supported: ['header'],
      scopes_supported: ['openid', 'profile', 'email'],
    })
  serveDocument(fastify, guard, '/.well-known/oauth-protected-resource', resourceAt(''))
  serveDocument(fastify, guard, '/.well-known/oauth-protected-resource/mcp', resourceAt('/mcp'))

  const catalogue = '/.well-known/api-catalog'
  serveDocument(
    fastify,
    guard,
    catalogue,
    () => JSON.stringify({ linkset: linksetOf(baseUrl()) }),
    'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    () => ({ link: `<${baseUrl()}${catalogue}>; rel="api-catalog"` }),
  )
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
    { anchor: `${base}/mcp`, 'service-desc': link('/.well-known/mcp/server-card.json') },
  ]
}
