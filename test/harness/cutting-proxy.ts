/** A proxy in front of a gateway that cuts the stream of an answer within an event, at a byte that the client names. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

const header = 'x-cut-within'
/** So many bytes after the beginning of this event of the reply, counted from 1. */
export type Cut = { event: number; bytes: number }
export const cutHeader = ({ event, bytes }: Cut): Record<string, string> => ({
  [header]: `${event}:${bytes}`,
})

const asked = new RegExp(`\\r\\n${header}: (\\d+):(\\d+)\\r\\n`, 'i')
/** The framing of HTTP ends its lines by CR LF, so that only events begin like this. */
const eventStart = /\nid: ?[0-9a-f-]{36}:\d+\n/g

export async function cuttingProxy(target: string) {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  let cuts = 0
  const server = createServer((client) => {
    const gateway = connect({ host: hostname, port: Number(port) })
    let cut: Cut | undefined
    /** What came of the reply to the request. */
    let reply = ''
    for (const [one, other] of [
      [client, gateway],
      [gateway, client],
    ] as const) {
      open.add(one)
      one.on('error', () => {})
      one.once('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
    client.on('data', (bytes) => {
      const [, event, offset] = asked.exec(bytes.toString('latin1')) ?? []
      cut = event === undefined ? undefined : { event: Number(event), bytes: Number(offset) }
      reply = ''
      gateway.write(bytes)
    })
    gateway.on('data', (bytes) => {
      const before = reply.length
      if (cut) reply += bytes.toString('latin1')
      const start = cut && [...reply.matchAll(eventStart)][cut.event - 1]?.index
      const end = cut && start !== undefined ? start + 1 + cut.bytes - before : bytes.length + 1
      if (end > bytes.length) {
        client.write(bytes)
        return
      }
      cuts++
      gateway.removeAllListeners('data')
      // Bytes before the cut arrive, and then nothing.
      client.write(bytes.subarray(0, Math.max(0, end)), () => {
        client.destroy()
        gateway.destroy()
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: () => cuts,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of open) socket.destroy()
      await once(server, 'close')
    },
  }
}
