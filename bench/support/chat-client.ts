/** Reads the stream of an answer as cheaply as it can: the client must not be what is measured. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { median } from './measure.ts'

export type Answered = { metaMs: number; totalMs: number; chunks: number; delayMs: number }
type Target = { url: string; headers?: Record<string, string> }

const connections = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

async function post({ url, headers = {} }: Target, query: string): Promise<IncomingMessage> {
  const body = JSON.stringify({ query })
  const sent = request(`${url}/v1/chat`, {
    method: 'POST',
    agent: connections,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
  })
  sent.end(body)
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  if (reply.statusCode !== 200) throw new Error(`${url}: ${reply.statusCode} ${await textOf(reply)}`)
  return reply
}

async function textOf(reply: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of reply) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}

export async function ask(target: Target, query: string): Promise<Answered> {
  const startMs = performance.now()
  const reply = await post(target, query)
  let metaMs = 0
  let chunks = 0
  let text = ''
  const delays: number[] = []
  for await (const part of reply) {
    const atNs = process.hrtime.bigint()
    if (metaMs === 0 && String(part).includes('event: meta')) metaMs = performance.now() - startMs
    const frames = (text + String(part)).split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      if (frame.includes('event: error')) throw new Error(frame)
      if (!frame.includes('event: chunk')) continue
      // Pieces that come faster than they are stored share an event.
      for (const [, sentNs] of frame.matchAll(/(\d+) and/g)) {
        chunks += 1
        delays.push(Number(atNs - BigInt(sentNs!)) / 1e6)
      }
    }
  }
  return {
    metaMs,
    totalMs: performance.now() - startMs,
    chunks,
    delayMs: delays.length === 0 ? 0 : median(delays),
  }
}

/** A stream that stays open, once it has begun. */
export async function hold(target: Target, query: string): Promise<Disposable> {
  const reply = await post(target, query)
  await once(reply, 'data')
  reply.resume().on('error', () => undefined)
  return { [Symbol.dispose]: () => void reply.destroy() }
}
