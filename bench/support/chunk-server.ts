/**
 * The source of an answer, over a WebSocket: a message `{n, everyMs}` is answered with so many pieces of text and the end
 * of the connection. Each piece begins with the time at which it was sent, in nanoseconds of the machine.
 */
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type WebSocket, WebSocketServer } from 'ws'

export type Asked = { n: number; everyMs: number }

async function answer(socket: WebSocket, { n, everyMs }: Asked): Promise<void> {
  for (let at = 0; at < n; at++) {
    if (everyMs > 0) await delay(everyMs)
    socket.send(`${process.hrtime.bigint()} and a word `)
  }
  socket.close()
}

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
server.on('connection', (socket) => {
  socket.once('message', (text) => void answer(socket, JSON.parse(String(text)) as Asked))
})
server.once('listening', () => console.log(`ready ws://127.0.0.1:${(server.address() as AddressInfo).port}`))
