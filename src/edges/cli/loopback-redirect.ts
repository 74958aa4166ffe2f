import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The browser brings the authorization code to an address of this machine, as in RFC 8252. */
export type Loopback = {
  redirectUri: string
  /** Resolves with the request of the browser that carries this `state`; every other request is refused. */
  receive: (state: string, signal: AbortSignal) => Promise<{ url: string; answer: (text: string) => void }>
} & AsyncDisposable

type Received = { url: string; answer: (text: string) => void }

const path = '/callback'

const send = (response: ServerResponse, status: number, text: string): void => {
  response
    .writeHead(status, {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      connection: 'close',
    })
    .end(`${text}\n`)
}

export async function openLoopback(): Promise<Loopback> {
  let expected: { state: string; resolve: (received: Received) => void } | undefined
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '', origin())
    const isReturn = request.method === 'GET' && url?.pathname === path
    if (!isReturn || !expected || url.searchParams.get('state') !== expected.state)
      return send(response, 404, 'There is nothing here.')
    expected.resolve({ url: url.href, answer: (text) => send(response, 200, text) })
    expected = undefined
  })
  const origin = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    redirectUri: `${origin()}${path}`,
    receive: (state, signal) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted()
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        expected = { state, resolve }
      }),
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}
