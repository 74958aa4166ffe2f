/**
 * A primary with a standby that streams from it, and one address for the clients. Made with the tools of a PostgreSQL
 * server, which the embedded one does not have: without them the tests are skipped, and say so.
 */
import { execFile } from 'node:child_process'
import { appendFileSync, chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connectionProxy } from './connection-proxy.ts'

const bin = [15, 16, 17, 18]
  .map((major) => `/usr/lib/postgresql/${major}/bin`)
  .find((folder) => existsSync(join(folder, 'pg_basebackup')))
export const skip = bin === undefined && 'pg_basebackup of a PostgreSQL server is not installed here'

/** A server refuses to run as root. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const standbyName = 'standby'
const settingsOf = (port: number) => `
port = ${port}
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
max_connections = 100
cluster_name = '${standbyName}'
`
const urlOf = (port: number) => `postgresql://postgres@127.0.0.1:${port}/postgres`

export type StandbyCluster = Awaited<ReturnType<typeof standbyCluster>>

/** `isSynchronous`: commits of the primary wait for the standby. */
export async function standbyCluster({ isSynchronous = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'portico-failover-'))
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid)
  const [primaryPort, standbyPort] = [await freePort(), await freePort()]
  const [primary, standby] = [join(folder, 'primary'), join(folder, 'standby')]
  const run = async (tool: string, ...words: string[]) => {
    await promisify(execFile)(join(bin!, tool), words, { ...account, cwd: folder })
  }
  const running = new Set<string>()
  const start = async (data: string) => {
    await run('pg_ctl', '-D', data, '-l', `${data}.log`, '-w', 'start')
    running.add(data)
  }
  const stop = async (data: string, mode: 'fast' | 'immediate') => {
    if (running.delete(data)) await run('pg_ctl', '-D', data, '-m', mode, '-w', 'stop')
  }
  const primaryUrl = urlOf(primaryPort)
  await using parts = new AsyncDisposableStack()
  parts.defer(async () => {
    for (const data of [...running]) await stop(data, 'immediate')
    rmSync(folder, { recursive: true })
  })
  await run(
    'initdb',
    '-D',
    primary,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale',
    'C',
    '--no-sync',
  )
  appendFileSync(join(primary, 'postgresql.conf'), settingsOf(primaryPort))
  await start(primary)
  await run('pg_basebackup', '-D', standby, '-R', '--no-sync', '-c', 'fast', '-d', primaryUrl)
  appendFileSync(join(standby, 'postgresql.conf'), settingsOf(standbyPort))
  await start(standby)
  const requireNames = async (names: string) => {
    appendFileSync(join(primary, 'postgresql.conf'), `synchronous_standby_names = '${names}'\n`)
    await run('pg_ctl', '-D', primary, 'reload')
  }
  if (isSynchronous) await requireNames(standbyName)
  const address = parts.use(await connectionProxy(primaryUrl))
  const owned = parts.move()
  return {
    /** Of the primary, and of the standby once it has taken over. */
    url: address.url,
    stopPrimary: (mode: 'fast' | 'immediate') => stop(primary, mode),
    /** It gets nothing of what the primary commits from now on. */
    stopStandby: () => stop(standby, 'fast'),
    startStandby: () => start(standby),
    /** Commits wait for so many standbys, of which there is one. */
    requireStandbys: (count: number) => requireNames(`ANY ${count} (${standbyName}, other)`),
    /** The standby becomes the server at the address. */
    async takeOver() {
      await run('pg_ctl', '-D', standby, '-w', 'promote')
      address.switchTo(urlOf(standbyPort))
    },
    drop: () => owned.disposeAsync(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
