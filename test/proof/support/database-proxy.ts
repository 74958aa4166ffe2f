/** A proxy between a gateway and its database that can cut the connection like a network failure. */
import { connect, createServer, type Socket } from 'node:net'

export type DatabaseProxy = {
  /** The database through the proxy. */
  url: string
  /** Cuts every connection, and accepts none. */
  disconnect(): Promise<void>
  reconnect(): Promise<void>
  /** The next message that contains this text, or that of this count, reaches the database, and its reply is dropped. */
  dropReplyTo(text: string, count?: number): void
} & AsyncDisposable

export async function databaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const { searchParams, hostname, port: given, username, password, pathname } = new URL(databaseUrl)
  const host = searchParams.get('host') ?? (hostname || '127.0.0.1')
  const port = Number(searchParams.get('port') ?? (given || 5432))
  const user = searchParams.get('user') ?? decodeURIComponent(username)
  const reach = () =>
    host.startsWith('/') ? connect({ path: `${host}/.s.PGSQL.${port}` }) : connect({ host, port })
  const open = new Set<Socket>()
  let lost: { text: string; count: number } | undefined
  const server = createServer((client) => {
    const database = reach()
    let cut = false
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      open.add(one)
      one.on('error', () => {})
      one.once('close', () => {
        open.delete(one)
        if (!cut) other.destroy()
      })
    }
    client.pipe(database).pipe(client)
    client.on('data', (chunk: Buffer) => {
      if (lost === undefined || !chunk.includes(lost.text)) return
      lost.count -= 1
      if (lost.count > 0) return
      lost = undefined
      cut = true
      client.unpipe(database).destroy()
      database.unpipe(client).resume().end()
    })
  })
  const listen = (at: number) =>
    new Promise<number>((resolve) => {
      server.listen(at, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
    })
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of open) socket.destroy()
    })
  const here = await listen(0)
  const login = password ? `${user}:${password}` : user
  return {
    url: `postgresql://${login}@127.0.0.1:${here}${pathname}?sslmode=disable`,
    disconnect: close,
    reconnect: async () => {
      await listen(here)
    },
    dropReplyTo(text, count = 1) {
      lost = { text, count }
    },
    async [Symbol.asyncDispose]() {
      if (server.listening) await close()
    },
  }
}
