import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ListeningServer, listen } from '#world/listen.ts'
import type { RealismControl } from '#world/solver/realism.ts'
import { codes, invalid, LifiError } from './errors.ts'

/** LI.FI over HTTP, with its limits: quotes are counted in windows of two hours, the rest by the minute. */

type Handler = (query: URLSearchParams) => Promise<unknown>
export type LifiRoutes = Readonly<Record<string, Handler>>
export type QuoteLimit = { perWindow: number }

const quoteWindowMs = 2 * 3_600_000
const readWindowMs = 60_000
const clientsMax = 10_000

const createLimit = (nowMs: () => number, windowMs: number) => {
  const counts = new Map<string, { startedMs: number; count: number }>()
  return (client: string, max: number) => {
    const now = nowMs()
    const known = counts.get(client)
    const current = known && now - known.startedMs < windowMs ? known : { startedMs: now, count: 0 }
    if (counts.size >= clientsMax) counts.clear()
    counts.set(client, current)
    current.count += 1
    const resetSeconds = Math.ceil((current.startedMs + windowMs - now) / 1_000)
    return { isOver: max > 0 && current.count > max, left: Math.max(0, max - current.count), resetSeconds }
  }
}

const send = (
  answer: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) => {
  const text = JSON.stringify(body)
  answer.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    ...headers,
  })
  answer.end(text)
}

const htmlPage = '<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>\n'

type ServerDeps = {
  routes: LifiRoutes
  realism: RealismControl
  /** Quotes per two hours without a key; 0: no limit. */
  quoteLimit: QuoteLimit
}

export const serveLifi = ({ routes, realism, quoteLimit }: ServerDeps): Promise<ListeningServer> => {
  const nowMs = () => performance.now()
  const limits = { quote: createLimit(nowMs, quoteWindowMs), read: createLimit(nowMs, readWindowMs) }

  const handle = async (incoming: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const { pathname, searchParams: query } = new URL(incoming.url ?? '/', 'http://lifi')
    const { busy, html, lostReply, readsPerMinute } = realism.current()
    const isQuote = pathname === '/v1/quote'
    const client = String(incoming.headers['x-lifi-api-key'] ?? incoming.socket.remoteAddress)
    const max = isQuote ? quoteLimit.perWindow : readsPerMinute
    const { isOver, left, resetSeconds } = limits[isQuote ? 'quote' : 'read'](client, max)
    const headers = {
      'ratelimit-limit': String(max),
      'ratelimit-remaining': String(left),
      'ratelimit-reset': String(resetSeconds),
    }
    if (isOver || realism.isHit(busy)) {
      realism.count('busy')
      const message = `Rate limit exceeded, retry in ${Math.ceil(resetSeconds / 60)} minutes`
      return send(answer, 429, { message, code: codes.rateLimit }, headers)
    }
    if (realism.isHit(html)) {
      realism.count('html')
      answer.writeHead(502, { 'content-type': 'text/html' }).end(htmlPage)
      return
    }
    const run = incoming.method === 'GET' ? routes[pathname] : undefined
    const body = run ? await run(query) : invalid(`Not found: ${incoming.method} ${pathname.slice(0, 100)}`)
    const isLost = realism.isHit(lostReply)
    realism.count(isLost ? 'lostReply' : 'answered')
    if (isLost) incoming.socket.destroy()
    else send(answer, 200, body, headers)
  }

  return listen(
    (incoming, answer) => {
      handle(incoming, answer).catch((error: Error) => {
        if (answer.headersSent) return answer.destroy()
        if (error instanceof LifiError)
          return send(answer, error.status, { message: error.message, code: error.code })
        process.stderr.write(`${error.stack}\n`)
        send(answer, 500, { message: 'Internal server error', code: codes.server })
      })
    },
    { preferredPort: 0 },
  )
}
