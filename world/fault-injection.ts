import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type ActivePreset,
  type FailureInjector,
  type InjectedFailure,
  methodsOf,
} from './injected-failures.ts'

const bodyBytesMax = 10_000_000
/** A silent server keeps the connection as long as a patient client waits, but not for ever. */
const silentMs = 600_000

/** Event handlers instead of iteration, because this runs for each request to each chain. */
export const readBody = (incoming: IncomingMessage): Promise<Buffer> =>
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

export type InjectionResult =
  | { type: 'answered' }
  /** The request is forwarded; with `dropReply` its answer is discarded and the connection is cut. */
  | { type: 'forward'; dropReply: boolean }

const forward: InjectionResult = { type: 'forward', dropReply: false }
const answered: InjectionResult = { type: 'answered' }

const htmlPage = (status: number) =>
  `<html><head><title>${status}</title></head><body><center><h1>${status}</h1></center></body></html>\n`

const sendStatus = (answer: ServerResponse, { status = 503, html }: InjectedFailure) => {
  const retry = status === 429 || status === 503 ? { 'retry-after': '1' } : {}
  const type = html ? 'text/html' : 'application/json'
  answer.writeHead(status, { 'content-type': type, ...retry })
  answer.end(
    html ? htmlPage(status) : JSON.stringify({ error: { code: -32000 - (status % 100), message: 'fault' } }),
  )
}

export const injectFailure = async (
  failure: InjectedFailure | undefined,
  incoming: IncomingMessage,
  answer: ServerResponse,
): Promise<InjectionResult> => {
  if (!failure) return forward
  if (failure.latency_ms) await new Promise((resolve) => setTimeout(resolve, failure.latency_ms))
  if (failure.refuse) {
    incoming.socket.destroy()
    return answered
  }
  if (failure.silent) {
    setTimeout(() => incoming.socket.destroy(), silentMs).unref()
    return answered
  }
  if (failure.status !== undefined || failure.html) {
    sendStatus(answer, failure)
    return answered
  }
  return { type: 'forward', dropReply: failure.drop_reply === true }
}

const sendRpcErrors = (answer: ServerResponse, code: number, body: string) => {
  const asked = JSON.parse(body) as { id: unknown } | { id: unknown }[]
  const errorOf = ({ id }: { id: unknown }) => ({
    jsonrpc: '2.0',
    id,
    error: { code, message: 'this node does not serve the call' },
  })
  answer.writeHead(200, { 'content-type': 'application/json' })
  answer.end(JSON.stringify(Array.isArray(asked) ? asked.map(errorOf) : errorOf(asked)))
}

/** Applies the settings to one request. */
export const injectNextFailure = async (
  injector: FailureInjector,
  incoming: IncomingMessage,
  answer: ServerResponse,
  body: Buffer,
): Promise<InjectionResult> => {
  const failure = injector.next(methodsOf(body.toString()))
  const result = await injectFailure(failure, incoming, answer)
  if (failure?.rpc_code === undefined || result.type === 'answered') return result
  sendRpcErrors(answer, failure.rpc_code, body.toString())
  return answered
}

/** The transport failure of a preset for one request: rate limit, HTML page, lost reply or delay. */
export const drawConnectionFailure = ({
  setting,
  random,
  counts,
}: ActivePreset): InjectedFailure | undefined => {
  const drawn = random()
  const latency = random() < setting.slowRate ? { latency_ms: Math.round(random() * setting.slowMsMax) } : {}
  const kinds: [string, number, InjectedFailure][] = [
    ['busy', setting.busyRate, { status: 429 }],
    ['html', setting.htmlRate, { status: 502, html: true }],
    ['lost_reply', setting.lostReplyRate, { drop_reply: true }],
  ]
  let bound = 0
  for (const [kind, rate, failure] of kinds) {
    bound += rate
    if (drawn >= bound) continue
    counts[kind] = (counts[kind] ?? 0) + 1
    return { ...failure, ...latency }
  }
  return latency.latency_ms === undefined ? undefined : latency
}
