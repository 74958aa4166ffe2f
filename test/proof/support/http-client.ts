/** A client that sends exactly the given bytes, over a few connections that stay open. */
import { Agent, type IncomingHttpHeaders, request as open } from 'node:http'

export type HttpRequest = {
  method: string
  path: string
  headers?: Record<string, string | string[]>
  body?: string | Uint8Array
}
export type HttpReply = { status: number; headers: IncomingHttpHeaders; text: string; ms: number }

export type HttpClient = { send(request: HttpRequest): Promise<HttpReply> } & Disposable

export function createHttpClient(url: string, { sockets = 8, msMax = 20_000 } = {}): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets })
  const { hostname, port } = new URL(url)
  const send = ({ method, path, headers = {}, body }: HttpRequest) =>
    new Promise<HttpReply>((resolve, reject) => {
      const startedMs = performance.now()
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const asked = open({ hostname, port, agent, method, path, headers: { ...length, ...headers } })
      const timer = setTimeout(() => asked.destroy(new Error(`no answer within ${msMax} ms`)), msMax)
      asked.once('error', (error) => {
        clearTimeout(timer)
        reject(new Error(`${method} ${path.slice(0, 200)}: ${error.message}`, { cause: error }))
      })
      asked.once('response', (answer) => {
        const chunks: Buffer[] = []
        const finish = () => {
          clearTimeout(timer)
          const { statusCode: status = 0, headers: wasContinued } = answer
          const ms = performance.now() - startedMs
          resolve({ status, headers: wasContinued, text: Buffer.concat(chunks).toString(), ms })
        }
        // A stream never ends by itself: its opening is the answer.
        if (answer.headers['content-type']?.startsWith('text/event-stream')) {
          finish()
          answer.destroy()
          return
        }
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.once('end', finish)
        answer.once('error', finish)
      })
      asked.end(body)
    })
  return { send, [Symbol.dispose]: () => agent.destroy() }
}

/** Runs all of them with limited concurrency; the first failure ends it. */
export async function runConcurrently<T>(
  items: readonly T[],
  concurrency: number,
  run: (item: T) => Promise<void>,
) {
  const rest = items.values()
  const worker = async () => {
    for (const item of rest) await run(item)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}
