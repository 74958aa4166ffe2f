import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { foreignOriginMessage, isForeignOrigin } from '#world/origin-check.ts'
import { answer, injectFailures, json, plain, readBody } from '#world/venue-core/http.ts'
import type { InjectedFailures } from '#world/venue-core/injected-failures.ts'
import type { VenueApi } from './api.ts'
import type { Engine } from './engine.ts'
import { exchangeWeight, infoWeight, type RateBudget } from './rate-budget.ts'
import { MalformedError } from './schema.ts'

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new MalformedError('Failed to parse the request body as JSON')
  }
}

type Endpoint = 'info' | 'exchange'

const typeOf = (endpoint: Endpoint, body: unknown): string => {
  const at = endpoint === 'info' ? body : (body as { action?: unknown } | null)?.action
  const type = (at as { type?: unknown } | null | undefined)?.type
  return typeof type === 'string' ? type : ''
}

const endpointOf = (request: IncomingMessage): Endpoint | undefined => {
  const path = request.url?.split('?')[0]
  return path === '/info' ? 'info' : path === '/exchange' ? 'exchange' : undefined
}

type ServerDeps = { engine: Engine; api: VenueApi; faults: InjectedFailures; rateBudget: RateBudget }

const serveEndpoint = async (
  { engine, api, faults, rateBudget }: ServerDeps,
  endpoint: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const body = parse(await readBody(request))
  const type = typeOf(endpoint, body)
  const failures = faults.takeMatching(endpoint, type)
  if (failures.length > 0 && (await injectFailures(failures, request, response))) return
  const weight =
    endpoint === 'info' ? infoWeight(type) : exchangeWeight((body as { action?: unknown } | null)?.action)
  if (!rateBudget.take(request.socket.remoteAddress ?? '', weight, Date.now()))
    return answer(response, 429, json, 'null')
  const reply = endpoint === 'info' ? api.info(body) : api.exchange(body)
  const text = JSON.stringify(reply)
  // Replies after the commands are written to the log.
  engine.afterPersist(() => {
    if (failures.some(({ effect }) => effect === 'dropReply')) request.socket.resetAndDestroy()
    else answer(response, 200, json, text)
  })
}

export const serve = (deps: ServerDeps): Server =>
  createServer((request, response) => {
    if (isForeignOrigin(request)) return answer(response, 403, plain, foreignOriginMessage)
    const endpoint = endpointOf(request)
    if (!endpoint || request.method !== 'POST') {
      request.resume()
      return answer(response, endpoint ? 405 : 404, plain, endpoint ? 'Method Not Allowed' : 'Not Found')
    }
    serveEndpoint(deps, endpoint, request, response).catch((error: unknown) => {
      if (error instanceof MalformedError) answer(response, 422, plain, error.message)
      else {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
        answer(response, 500, json, 'null')
      }
    })
  })
