/** A proxy in front of the venue's web socket that passes every frame and adds frames of its own. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type RawData, WebSocket, WebSocketServer } from 'ws'

export async function streamProxy(target: string) {
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (client) => {
    const upstream = new WebSocket(target)
    const early: string[] = []
    upstream.on('open', () => {
      for (const frame of early.splice(0)) upstream.send(frame)
    })
    client.on('message', (frame: RawData) => {
      if (upstream.readyState === WebSocket.OPEN) upstream.send(frame.toString())
      else early.push(frame.toString())
    })
    upstream.on('message', (frame: RawData) => client.send(frame.toString()))
    const end = () => {
      upstream.terminate()
      client.terminate()
    }
    for (const socket of [upstream, client])
      for (const event of ['close', 'error'] as const) socket.on(event, end)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `ws://127.0.0.1:${port}`,
    /** Sends a frame to every connected client, as if the venue had sent it. */
    inject(frame: string | Buffer) {
      for (const client of sockets.clients) client.send(frame)
    },
    connections: () => sockets.clients.size,
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
