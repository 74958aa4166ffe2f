import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { InjectedFailure } from './injected-failures.ts'

const bodyBytesMax = 2_000_000

export const json = { 'content-type': 'application/json' } as const
export const plain = { 'content-type': 'text/plain; charset=utf-8' } as const

export const readBody = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let size = 0
    request.on('data', (part: Buffer) => {
      size += part.length
      if (size > bodyBytesMax) request.destroy()
      else parts.push(part)
    })
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')))
    request.on('error', reject)
  })

export const answer = (
  response: ServerResponse,
  status: number,
  head: Record<string, string>,
  body: string,
): void => {
  if (response.destroyed) return
  response.writeHead(status, { ...head, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** True when the request ends here. */
export const injectFailures = async (
  failures: readonly InjectedFailure[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> => {
  for (const failure of failures) {
    if (failure.effect === 'latency') await sleep(failure.latencyMs ?? 0)
    if (failure.effect === 'reset') {
      request.socket.resetAndDestroy()
      return true
    }
    if (failure.effect === 'status') {
      answer(response, failure.status ?? 503, json, 'null')
      return true
    }
  }
  return false
}

export const listen = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
