import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBody } from '#world/fault-injection.ts'
import { type ListeningServer, listen } from '#world/listen.ts'
import type { Api } from './api.ts'
import type { RealismControl } from './realism.ts'

const windowMs = 60_000
const clientsMax = 10_000

/** Requests of each client within the current minute. */
const createRateLimit = (nowMs: () => number) => {
  const counts = new Map<string, { startedMs: number; count: number }>()
  /** Seconds until the client may ask again; undefined when it may now. */
  return (client: string, perMinute: number): number | undefined => {
    if (perMinute === 0) return undefined
    const now = nowMs()
    const known = counts.get(client)
    const current = known && now - known.startedMs < windowMs ? known : { startedMs: now, count: 0 }
    if (counts.size >= clientsMax) counts.clear()
    counts.set(client, current)
    current.count += 1
    return current.count > perMinute ? Math.ceil((current.startedMs + windowMs - now) / 1000) : undefined
  }
}

const send = (
  answer: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) => {
  const text = JSON.stringify(body)
  const type = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
  }
  answer.writeHead(status, { ...type, ...headers })
  answer.end(text)
}

const htmlPage =
  '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n'

const fieldsOf = (text: string): Record<string, unknown> | undefined => {
  if (text === '') return {}
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

type ServerDeps = { api: Api; realism: RealismControl; port: number }

export const serve = ({ api, realism, port }: ServerDeps): Promise<ListeningServer> => {
  const overLimit = createRateLimit(() => performance.now())

  const handle = async (incoming: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const { pathname: path, searchParams: query } = new URL(incoming.url ?? '/', 'http://solver')
    const fields = fieldsOf((await readBody(incoming)).toString())
    const { busy, html, lostReply, quotesPerMinute, readsPerMinute } = realism.current()
    const isQuote = path === '/quote/v2'
    const header = incoming.headers['x-api-key']
    const apiKey = typeof header === 'string' ? header : undefined
    const waitSeconds = overLimit(
      `${isQuote} ${apiKey ?? incoming.socket.remoteAddress}`,
      isQuote ? quotesPerMinute : readsPerMinute,
    )
    if (waitSeconds !== undefined || realism.isHit(busy)) {
      realism.count('busy')
      return send(answer, 429, { message: 'Too many requests' }, { 'retry-after': String(waitSeconds ?? 1) })
    }
    if (realism.isHit(html)) {
      realism.count('html')
      answer.writeHead(502, { 'content-type': 'text/html' }).end(htmlPage)
      return
    }
    if (!fields) return send(answer, 400, { message: 'Body is not valid JSON', errorCode: 'INVALID_INPUT' })
    const reply = await api({ method: incoming.method ?? 'GET', path, query, fields, apiKey })
    // The request took effect: only its answer is lost.
    const isLost = realism.isHit(lostReply)
    realism.count(isLost ? 'lostReply' : 'answered')
    if (isLost) incoming.socket.destroy()
    else send(answer, reply.status, reply.body)
  }

  return listen(
    (incoming, answer) => {
      handle(incoming, answer).catch((error: Error) => {
        process.stderr.write(`${error.stack}\n`)
        if (answer.headersSent) answer.destroy()
        else send(answer, 500, { message: 'Internal server error', errorCode: 'SERVICE_UNAVAILABLE' })
      })
    },
    { preferredPort: port },
  )
}
