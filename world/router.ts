import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBody } from './fault-injection.ts'
import { foreignOriginMessage, isForeignOrigin } from './origin-check.ts'

/** Rejects a request with one sentence for the reader. */
export class HttpError extends Error {
  readonly status: number
  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

export type Fields = Record<string, unknown>
export type RouterRequest = { method: string; path: string; query: URLSearchParams; fields: Fields }
export type Route = {
  method: string
  path: RegExp
  run: (request: RouterRequest, parts: string[]) => unknown
}

const parseFields = (text: string): Fields => {
  if (text.trim() === '') return {}
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new HttpError(400, 'body is not JSON.')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new HttpError(400, 'body must be a JSON object.')
  }
  return parsed as Fields
}

const dispatch = async (routes: readonly Route[], incoming: IncomingMessage) => {
  if (isForeignOrigin(incoming)) throw new HttpError(403, foreignOriginMessage)
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://world')
  const method = incoming.method ?? 'GET'
  const matching = routes.filter(({ path }) => path.test(pathname))
  const route = matching.find((candidate) => candidate.method === method)
  if (!route) {
    if (matching.length === 0) throw new HttpError(404, `There is nothing at ${pathname}.`)
    throw new HttpError(405, `${pathname} takes ${matching.map((each) => each.method).join(', ')}.`)
  }
  const fields = parseFields((await readBody(incoming)).toString())
  const parts = (route.path.exec(pathname) ?? []).slice(1)
  return await route.run({ method, path: pathname, query: searchParams, fields }, parts)
}

const send = (answer: ServerResponse, status: number, body: unknown) => {
  const text = `${JSON.stringify(body, null, 2)}\n`
  answer.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  answer.end(text)
}

/** A small JSON server: the result of a route is the answer, a rejection is a sentence with a status. */
export const createRouter =
  (routes: readonly Route[]) => (incoming: IncomingMessage, answer: ServerResponse) => {
    dispatch(routes, incoming).then(
      (body) => send(answer, 200, body),
      (error: Error) => {
        const status = error instanceof HttpError ? error.status : 500
        send(answer, status, { detail: error.message })
      },
    )
  }

export const numberField = (fields: Fields, name: string, min: number, max: number): number => {
  const value = fields[name]
  if (typeof value === 'number' && Number.isFinite(value) && value >= min && value <= max) return value
  throw new HttpError(400, `${name} must be a number from ${min} to ${max}.`)
}

export const textField = (fields: Fields, name: string, lengthMax = 200): string => {
  const value = fields[name]
  if (typeof value === 'string' && value !== '' && value.length <= lengthMax) return value
  throw new HttpError(400, `${name} must be text of 1 to ${lengthMax} characters.`)
}

/** A misspelt field would otherwise be ignored silently. */
export const rejectUnknownFields = (fields: Fields, allowed: readonly string[]): void => {
  const unknownField = Object.keys(fields).find((name) => !allowed.includes(name))
  if (unknownField !== undefined) {
    throw new HttpError(400, `${unknownField} is not a field here; the fields are ${allowed.join(', ')}.`)
  }
}
