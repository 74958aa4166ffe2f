import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'
import type { Endpoint } from '#world/proxy.ts'
import type { Recorder } from './recorder.ts'
import { rpcAt } from './rpc.ts'

const messageBytesMax = 10_000_000

const connect = (recorder: Recorder, { host, port }: Endpoint, client: WebSocket, node: WebSocket) => {
  const rpc = rpcAt(port, host)
  const queued: string[] = []
  const pass = (text: string) => {
    if (node.readyState === node.CONNECTING) queued.push(text)
    else node.send(text)
  }
  client.on('message', (data: RawData) => {
    const text = String(data)
    if (!recorder.isChange(text)) return pass(text)
    recorder.record(text, rpc.post).then(
      (replyText) => client.send(replyText),
      () => client.terminate(),
    )
  })
  let shown = Promise.resolve()
  node.on('open', () => {
    for (const text of queued) node.send(text)
  })
  node.on('message', (data: RawData) => {
    shown = Promise.all([shown, recorder.recordShown()]).then(() => client.send(String(data)))
    shown.catch(() => client.terminate())
  })
  for (const socket of [client, node]) {
    socket.on('error', () => {})
    socket.on('close', () => {
      rpc.close()
      client.terminate()
      node.terminate()
    })
  }
}

/** Joins a client's WebSocket with the node's; calls that change the chain go through the recorder. */
export const recordedSocket =
  (recorder: Recorder) =>
  (endpoint: Endpoint, incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const join = async () => {
      const { WebSocket, WebSocketServer } = await import('ws')
      const server = new WebSocketServer({ noServer: true, maxPayload: messageBytesMax })
      server.handleUpgrade(incoming, socket, head, (client) =>
        connect(recorder, endpoint, client, new WebSocket(`ws://${endpoint.host}:${endpoint.port}`)),
      )
    }
    join().catch(() => socket.destroy())
  }
