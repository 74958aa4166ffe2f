import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ActivePreset, type Fault, type FaultDial, methodsOf } from './faults.ts'

const bodyBytesMax = 10_000_000
/** A silent server holds the line as long as a patient client would, but not for ever. */
const silenceMs = 600_000

/** By events, not by iteration: this runs for each request to each chain. */
export const bodyOf = (incoming: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bodyBytesMax) reject(new RangeError(`The body is larger than ${bodyBytesMax} bytes.`))
      else chunks.push(chunk)
    })
    incoming.once('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
    incoming.once('error', reject)
  })

export type Verdict =
  | { now: 'answered' }
  /** The request goes on; with `dropReply` its answer is thrown away and the line is cut. */
  | { now: 'forward'; dropReply: boolean }

const forward: Verdict = { now: 'forward', dropReply: false }
const answered: Verdict = { now: 'answered' }

const page = (status: number) =>
  `<html><head><title>${status}</title></head><body><center><h1>${status}</h1></center></body></html>\n`

const sayStatus = (answer: ServerResponse, { status = 503, html }: Fault) => {
  const retry = status === 429 || status === 503 ? { 'retry-after': '1' } : {}
  const type = html ? 'text/html' : 'application/json'
  answer.writeHead(status, { 'content-type': type, ...retry })
  answer.end(
    html ? page(status) : JSON.stringify({ error: { code: -32000 - (status % 100), message: 'fault' } }),
  )
}

export const applyFault = async (
  fault: Fault | undefined,
  incoming: IncomingMessage,
  answer: ServerResponse,
): Promise<Verdict> => {
  if (!fault) return forward
  if (fault.latency_ms) await new Promise((resolve) => setTimeout(resolve, fault.latency_ms))
  if (fault.refuse) {
    incoming.socket.destroy()
    return answered
  }
  if (fault.silent) {
    setTimeout(() => incoming.socket.destroy(), silenceMs).unref()
    return answered
  }
  if (fault.status !== undefined || fault.html) {
    sayStatus(answer, fault)
    return answered
  }
  return { now: 'forward', dropReply: fault.drop_reply === true }
}

/** Applies the dial to one request. */
export const meetFault = (
  dial: FaultDial,
  incoming: IncomingMessage,
  answer: ServerResponse,
  body: Buffer,
): Promise<Verdict> => applyFault(dial.next(methodsOf(body.toString())), incoming, answer)

/** The fault of the line itself that a preset gives one request: busy, an HTML page, a lost reply, a slow node. */
export const lineFaultOf = ({ setting, random, counts }: ActivePreset): Fault | undefined => {
  const drawn = random()
  const latency = random() < setting.slowRate ? { latency_ms: Math.round(random() * setting.slowMsMax) } : {}
  const kinds: [string, number, Fault][] = [
    ['busy', setting.busyRate, { status: 429 }],
    ['html', setting.htmlRate, { status: 502, html: true }],
    ['lost_reply', setting.lostReplyRate, { drop_reply: true }],
  ]
  let bound = 0
  for (const [kind, rate, fault] of kinds) {
    bound += rate
    if (drawn >= bound) continue
    counts[kind] = (counts[kind] ?? 0) + 1
    return { ...fault, ...latency }
  }
  return latency.latency_ms === undefined ? undefined : latency
}
