import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const sweepMs = 100

/**
 * Browsers and client pools open connections in advance. Node waits for them when it closes, though nobody speaks on
 * them; so a closing server ends every connection that has no request in flight.
 */
export function sockets(server: Server) {
  const requests = new Map<Socket, number>()
  server.on('connection', (socket: Socket) => {
    requests.set(socket, 0)
    socket.once('close', () => requests.delete(socket))
  })
  const count = (socket: Socket, change: number) => {
    const before = requests.get(socket)
    if (before !== undefined) requests.set(socket, before + change)
  }
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    count(socket, 1)
    response.once('close', () => count(socket, -1))
  })
  return {
    /** Sweeps until it is told to stop; the first round leaves time for a request that is under way. */
    endUnused(): () => void {
      const timer = setInterval(() => {
        for (const [socket, inFlight] of requests) if (inFlight === 0) socket.destroy()
      }, sweepMs)
      return () => clearInterval(timer)
    },
  }
}
