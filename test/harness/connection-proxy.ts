/** A proxy in front of a server that can cut the connections of its clients, like a network failure. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export async function connectionProxy(target: string) {
  const url = new URL(target)
  let { hostname, port } = url
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const backend = connect({ host: hostname, port: Number(port) })
    for (const [one, other] of [
      [client, backend],
      [backend, client],
    ] as const) {
      open.add(one)
      one.on('error', () => {})
      one.once('close', () => {
        open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href.replace(/\/$/, ''),
    /** Every connection that is open; later ones are accepted. */
    cut,
    /** Another server takes over the address: later connections lead there. */
    switchTo(next: string) {
      ;({ hostname, port } = new URL(next))
      cut()
    },
    async [Symbol.asyncDispose]() {
      server.close()
      cut()
      await once(server, 'close')
    },
  }
}
