import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'
import type { Place } from '#world/proxy.ts'
import type { Recorder } from './recorder.ts'
import { rpcAt } from './rpc.ts'

const messageBytesMax = 10_000_000

const speak = (recorder: Recorder, { host, port }: Place, client: WebSocket, node: WebSocket) => {
  const rpc = rpcAt(port, host)
  const early: string[] = []
  const pass = (text: string) => {
    if (node.readyState === node.CONNECTING) early.push(text)
    else node.send(text)
  }
  client.on('message', (data: RawData) => {
    const text = String(data)
    if (!recorder.isChange(text)) return pass(text)
    recorder.record(text, rpc.post).then(
      (said) => client.send(said),
      () => client.terminate(),
    )
  })
  node.on('open', () => {
    for (const text of early) node.send(text)
  })
  node.on('message', (data: RawData) => client.send(String(data)))
  for (const socket of [client, node]) {
    socket.on('error', () => {})
    socket.on('close', () => {
      rpc.close()
      client.terminate()
      node.terminate()
    })
  }
}

/** Joins a WebSocket of a client with one of the node; calls that change the chain go the way of all such calls. */
export const recordedSocket =
  (recorder: Recorder) =>
  (place: Place, incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const join = async () => {
      const { WebSocket, WebSocketServer } = await import('ws')
      const server = new WebSocketServer({ noServer: true, maxPayload: messageBytesMax })
      server.handleUpgrade(incoming, socket, head, (client) =>
        speak(recorder, place, client, new WebSocket(`ws://${place.host}:${place.port}`)),
      )
    }
    join().catch(() => socket.destroy())
  }
