/** Reads the stream of an answer as a client does. */
import { eventsOf, type SentEvent } from '../harness/stream.ts'

export type ChatRequest = {
  url: string
  query: string
  headers: Record<string, string>
  key?: string
  lastId?: string
  body?: Record<string, unknown>
  until?: (event: SentEvent, all: SentEvent[]) => boolean
}

export class Refused extends Error {
  readonly status: number
  readonly body: Record<string, unknown>
  constructor(status: number, body: Record<string, unknown>) {
    super(`${status} ${JSON.stringify(body)}`)
    this.status = status
    this.body = body
  }
}

export const isEnd = ({ event }: SentEvent): boolean => event === 'done' || event === 'error'

export async function openChat({ url, query, headers, key, lastId, body }: ChatRequest, signal: AbortSignal) {
  const reply = await fetch(`${url}/v1/chat`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...headers,
      ...(key !== undefined && { 'idempotency-key': key }),
      ...(lastId !== undefined && { 'last-event-id': lastId }),
    },
    body: JSON.stringify({ query, ...body }),
    signal,
  })
  if (reply.status !== 200) throw new Refused(reply.status, (await reply.json()) as Record<string, unknown>)
  return reply
}

/** The events up to the last one, or to the one after which the client leaves. */
export async function readChat(request: ChatRequest): Promise<SentEvent[]> {
  const { until = isEnd } = request
  const left = new AbortController()
  const timer = setTimeout(() => left.abort(new Error('no end of the answer')), 30_000)
  const all: SentEvent[] = []
  try {
    const reply = await openChat(request, left.signal)
    for await (const event of eventsOf(reply)) {
      all.push(event)
      if (until(event, all)) return all
    }
    return all
  } finally {
    clearTimeout(timer)
    left.abort()
  }
}
