import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { corsHeaders, foreignOriginMessage, isForeignOrigin } from '#world/origin-check.ts'
import { answer, injectFailures, json, plain, readBody, sleep } from '#world/venue-core/http.ts'
import type { InjectedFailures } from '#world/venue-core/injected-failures.ts'
import { RequestError } from '#world/venue-core/request-error.ts'
import { dispatch, HttpError, type Reply, type Request, type Route } from './http.ts'
import type { Engine } from './machine.ts'
import type { RealismControl } from './realism.ts'

export type Service = 'clob' | 'gamma' | 'data' | 'relayer' | 'bridge' | 'geoblock'

type Deps = {
  engine: Engine
  faults: InjectedFailures
  realism: RealismControl
  services: Record<Service, readonly Route[]>
}

const html = { 'content-type': 'text/html; charset=UTF-8' } as const
const badGateway =
  '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n'

/** Each service has a path of its own before the paths of upstream, because all share one port. */
const split = (url: string, names: readonly string[]): { service: string; rest: string } | undefined => {
  const [, first = ''] = url.split('/')
  const service = first.split('?')[0] ?? ''
  if (!names.includes(service)) return undefined
  const rest = url.slice(service.length + 1)
  return { service, rest: rest.startsWith('/') ? rest : `/${rest}` }
}

const parse = (text: string): unknown => {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpError(400, 'Invalid payload')
  }
}

const errorReply = (error: unknown): Reply => {
  if (error instanceof HttpError)
    return {
      status: error.status,
      body: { error: error.message, ...error.more },
      headers: error.headers,
    }
  if (error instanceof RequestError) return { status: 400, body: { error: error.message } }
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  return { status: 500, body: { error: 'Internal server error' } }
}

const serveRoute = async (
  { services }: Deps,
  service: string,
  { incoming, text, rest }: { incoming: IncomingMessage; text: string; rest: string },
): Promise<Reply> => {
  try {
    const url = new URL(rest, 'http://venue')
    const request: Request = {
      method: incoming.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      headers: incoming.headers,
      text,
      body: parse(text),
    }
    return await dispatch(services[service as Service], request)
  } catch (error) {
    return errorReply(error)
  }
}

/** What the dial does with a request: before it, or with its reply. */
type Fate = { isHtml: boolean; isBusy: boolean; losesReply: boolean; lateMs: number; queueMs: number }

const drawFate = (realism: RealismControl): Fate => {
  const { htmlRate, busyRate, lostReplyRate } = realism.current()
  return {
    isHtml: realism.isHit('htmlRate', htmlRate),
    isBusy: realism.isHit('busyRate', busyRate),
    losesReply: realism.isHit('lostReplyRate', lostReplyRate),
    lateMs: realism.lagMs('lateReply'),
    queueMs: realism.lagMs('queue'),
  }
}

const noFate: Fate = { isHtml: false, isBusy: false, losesReply: false, lateMs: 0, queueMs: 0 }

const bodyOf = ({ body, headers }: Reply): string =>
  headers?.['content-type'] === plain['content-type'] ? String(body) : JSON.stringify(body)

const handle = async (deps: Deps, incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { engine, faults, realism } = deps
  const found = split(incoming.url ?? '/', Object.keys(deps.services))
  if (!found) {
    incoming.resume()
    return answer(response, 404, plain, 'Not Found')
  }
  const text = await readBody(incoming)
  const { service, rest } = found
  const failures = faults.takeMatching(service, rest.split('?')[0] ?? '')
  if (failures.length > 0 && (await injectFailures(failures, incoming, response))) return
  const fate = realism.isSet() ? drawFate(realism) : noFate
  if (fate.queueMs > 0) await sleep(fate.queueMs)
  if (fate.isBusy)
    return answer(response, 429, { ...json, 'Retry-After': '1' }, '{"error":"Too Many Requests"}')
  const reply = await serveRoute(deps, service, { incoming, text, rest })
  const losesReply = fate.losesReply || failures.some(({ effect }) => effect === 'dropReply')
  const write = (): void => {
    if (losesReply) incoming.socket.resetAndDestroy()
    else if (fate.isHtml) answer(response, 502, html, badGateway)
    else answer(response, reply.status, { ...json, ...reply.headers }, bodyOf(reply))
  }
  // Replies after the commands are written to the log.
  engine.afterPersist(() => {
    if (fate.lateMs > 0) setTimeout(write, fate.lateMs).unref()
    else write()
  })
}

export const serve = (deps: Deps): Server =>
  createServer((incoming, response) => {
    if (isForeignOrigin(incoming)) return answer(response, 403, plain, foreignOriginMessage)
    for (const [name, value] of Object.entries(corsHeaders(incoming))) response.setHeader(name, value)
    if (incoming.method === 'OPTIONS') return void response.writeHead(204).end()
    handle(deps, incoming, response).catch((error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
      answer(response, 500, json, '{"error":"Internal server error"}')
    })
  })
