import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { corsHeaders, foreignOriginMessage, isForeignOrigin } from './origin-check.ts'

export type ListeningServer = { port: number; close: () => Promise<void> }

const bind = (server: Server, port: number) =>
  new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })

/** Listens on loopback. A preferred port falls back to a free one; a required port does not. */
export const listen = async (
  onRequest: RequestListener,
  port: { preferredPort: number } | { requiredPort: number },
  onUpgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void,
): Promise<ListeningServer> => {
  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, answer) => {
    if (!isForeignOrigin(incoming)) {
      for (const [name, value] of Object.entries(corsHeaders(incoming))) answer.setHeader(name, value)
      if (incoming.method === 'OPTIONS') return answer.writeHead(204).end()
      return onRequest(incoming, answer)
    }
    answer.writeHead(403, { 'content-type': 'application/json', connection: 'close' })
    answer.end(JSON.stringify({ detail: foreignOriginMessage }))
  })
  const upgraded = new Set<Duplex>()
  if (onUpgrade)
    server.on('upgrade', (request, socket, head) => {
      // Node has taken its own listener away, and the peer may reset the connection.
      socket.on('error', () => {})
      if (isForeignOrigin(request)) return socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n')
      upgraded.add(socket)
      socket.once('close', () => upgraded.delete(socket))
      onUpgrade(request, socket, head)
    })
  const number =
    'requiredPort' in port
      ? await bind(server, port.requiredPort).catch((cause: NodeJS.ErrnoException) => {
          if (cause.code !== 'EADDRINUSE') throw cause
          throw new Error(
            `Port ${port.requiredPort} is in use. Set WORLD_PORT to another one; 0 picks a free one.`,
            {
              cause,
            },
          )
        })
      : await bind(server, port.preferredPort).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EADDRINUSE') throw error
          return bind(server, 0)
        })
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
      for (const socket of upgraded) socket.destroy()
    })
  return { port: number, close }
}
