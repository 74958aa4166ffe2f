import type { FastifyInstance } from 'fastify'

type Route = { pattern: RegExp; methods: Set<string> }

const pathOf = (url: string): string => {
  const path = url.split('?', 1)[0] ?? url
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

const patternOf = (path: string): RegExp => {
  const parts = path.split('/').map((part) => {
    if (part === '*') return '.*'
    return part.startsWith(':') ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${parts.join('/')}$`)
}

export type RouteTable = { methodsAt(url: string): string[] }

/** Records the methods of every mounted path, because Fastify's router cannot list them. */
export function createRouteTable(fastify: FastifyInstance): RouteTable {
  const routes = new Map<string, Route>()
  fastify.addHook('onRoute', ({ url, method }) => {
    const path = pathOf(url)
    const entry = routes.get(path) ?? { pattern: patternOf(path), methods: new Set() }
    for (const name of [method].flat()) entry.methods.add(name)
    routes.set(path, entry)
  })
  return {
    methodsAt(url) {
      const path = pathOf(url)
      const matches = [...routes.values()].filter(({ pattern }) => pattern.test(path))
      const methods = new Set(matches.flatMap((hit) => [...hit.methods]))
      return methods.size === 0 ? [] : [...methods, 'OPTIONS'].sort()
    },
  }
}
