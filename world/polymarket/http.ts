import type { IncomingHttpHeaders } from 'node:http'

export type Request = {
  method: string
  /** Without the prefix of its service, and without the query. */
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  text: string
  body: unknown
}

/** Sent as JSON unless its content type is plain text. */
export type Reply = { status: number; body: unknown; headers?: Record<string, string> }

/** Answered with `{error}`, as all services of the venue answer. */
export class HttpError extends Error {
  readonly status: number
  readonly more: Record<string, unknown>
  readonly headers: Record<string, string>
  constructor(
    status: number,
    message: string,
    more: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ) {
    super(message)
    this.status = status
    this.more = more
    this.headers = headers
  }
}

export const ok = (body: unknown): Reply => ({ status: 200, body })

export type Handler = (request: Request, parameters: readonly string[]) => Reply | Promise<Reply>
export type Route = { method: string; path: RegExp; handle: Handler }

/** `:name` in a path is a parameter. */
export const route = (methodAndPath: string, handle: Handler): Route => {
  const [method = '', path = ''] = methodAndPath.split(' ')
  return { method, path: new RegExp(`^${path.replaceAll(/:[a-zA-Z]+/g, '([^/]+)')}$`), handle }
}

export const dispatch = (routes: readonly Route[], request: Request): Reply | Promise<Reply> => {
  let isKnown = false
  for (const { method, path, handle } of routes) {
    const match = path.exec(request.path)
    if (!match) continue
    isKnown = true
    if (method === request.method) return handle(request, match.slice(1).map(decodeURIComponent))
  }
  throw new HttpError(isKnown ? 405 : 404, isKnown ? 'method not allowed' : 'not found')
}

export const integerOf = (
  query: URLSearchParams,
  name: string,
  { fallback, max, min = 0 }: { fallback: number; max: number; min?: number },
): number => {
  const text = query.get(name)
  if (text === null || text === '') return fallback
  const value = Number(text)
  return Number.isInteger(value) ? Math.max(min, Math.min(max, value)) : fallback
}

/** Repeated or comma-separated. */
export const listOf = (query: URLSearchParams, name: string): string[] =>
  query
    .getAll(name)
    .flatMap((value) => value.split(','))
    .map((value) => value.trim())
    .filter((value) => value !== '')

export const booleanOf = (query: URLSearchParams, name: string): boolean | undefined => {
  const value = query.get(name)
  return value === 'true' ? true : value === 'false' ? false : undefined
}

/** The fields of a record that a view shows as they are. */
export const pick = <T extends object, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> =>
  Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<T, K>
