import type { FastifyInstance } from 'fastify'
import { type Guard, serveDocument } from './pages.ts'

/**
 * The discovery documents. Every 401 refers to the protected resource metadata (RFC 9728), which names no authorization
 * server while none is served: tokens come from `auth_token` only.
 */
export function serveWellKnown(fastify: FastifyInstance, guard: Guard, baseUrl: () => string): void {
  serveDocument(fastify, {
    guards: guard,
    path: '/.well-known/oauth-protected-resource',
    text: () =>
      JSON.stringify({
        resource: baseUrl(),
        bearer_methods_supported: ['header'],
        resource_documentation: `${baseUrl()}/docs`,
      }),
  })

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
  ]
}
