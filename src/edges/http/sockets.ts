import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const sweepMs = 100

/**
 * Browsers and client pools open connections in advance. Node waits for them when it closes, though nobody speaks on
 * them; so a closing server ends every connection that has no request in flight.
 */
export function sockets() {
  const answers = new Map<Socket, Set<ServerResponse>>()
  return {
    watch(server: Server): void {
      server.on('connection', (socket: Socket) => {
        answers.set(socket, new Set())
        socket.once('close', () => answers.delete(socket))
      })
      server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
        answers.get(socket)?.add(response)
        response.once('close', () => answers.get(socket)?.delete(response))
      })
      // Only 100-continue is an expectation that anybody has; Node would answer the others in a form of its own.
      server.on('checkExpectation', (request, response) => server.emit('request', request, response))
    },
    /** Whether the head of an answer is out, and its end is not. */
    isAnswering: (socket: Socket): boolean =>
      [...(answers.get(socket) ?? [])].some(({ headersSent }) => headersSent),
    /** Sweeps until it is told to stop; the first round leaves time for a request that is under way. */
    endUnused(): () => void {
      const timer = setInterval(() => {
        for (const [socket, inFlight] of answers) if (inFlight.size === 0) socket.destroy()
      }, sweepMs)
      return () => clearInterval(timer)
    },
  }
}
