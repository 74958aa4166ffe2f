import type { Socket } from 'node:net'
import type { Clock } from '#kernel/clock.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { securityHeaders } from './headers.ts'
import { faultNamed, faultOf, print } from './problem.ts'

/** Answers requests that Node's parser rejects: headers that are too large, bytes that are not HTTP, a slow client. */
export const createClientErrors =
  (clock: Clock, baseUrl: () => string, isAnswering: (socket: Socket) => boolean) =>
  (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
      socket.destroy()
      return
    }
    const requestId = uuidv7(clock.now(), systemRandom)
    const fault = faultOf(error) ?? faultNamed('bad_request', error)
    const { status, headers, body } = print(fault, { requestId, accept: undefined, baseUrl: baseUrl() })
    const lines = Object.entries({
      ...securityHeaders,
      ...headers,
      'x-request-id': requestId,
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    const reason = status === 431 ? 'Request Header Fields Too Large' : 'Bad Request'
    socket.end(`HTTP/1.1 ${status} ${reason}\r\n${lines.join('')}\r\n${body}`)
  }
