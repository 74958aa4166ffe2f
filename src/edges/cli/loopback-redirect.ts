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
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      connection: 'close',
    })
    .end(pageOf(text))
}

const pageStyle =
  'body{font:1.1rem/1.5 system-ui,sans-serif;color-scheme:light dark;max-width:32rem;margin:20vh auto;padding:0 1.5rem}'

/** The first sentence is the heading. Parts of the text come from the address that the browser opened. */
function pageOf(text: string): string {
  const [heading = '', ...rest] = text.replace(/[<>&"]/g, ' ').split(/(?<=[.)]) /)
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Portico</title>
<style>${pageStyle}</style><h1>${heading.replace(/\.$/, '')}</h1><p>${rest.join(' ')}</p></html>
`
}

export async function openLoopback(): Promise<Loopback> {
  let expected: { state: string; resolve: (received: Received) => void } | undefined
  const server = createServer((request, response) => {
    const url = URL.canParse(request.url ?? '', origin()) ? new URL(request.url ?? '', origin()) : undefined
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
