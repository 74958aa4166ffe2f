/**
 * A standby that takes over: one that has everything goes on by itself, one that lacks commits holds money. With the
 * tools of a PostgreSQL server, which the embedded one does not have: without them the tests are skipped, and say so.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TaskKind } from '#kernel/task.ts'
import { query } from '#store/query.ts'
import { openTestCore } from '../harness/core.ts'
import { eventually } from '../harness/gateway.ts'
import { executed, newUser } from './engine-fixture.ts'

const bin = [15, 16, 17, 18]
  .map((major) => `/usr/lib/postgresql/${major}/bin`)
  .find((folder) => existsSync(join(folder, 'pg_basebackup')))
const skip = bin === undefined && 'pg_basebackup of a PostgreSQL server is not installed here'
const takeoverMsMax = 30_000

/** A server refuses to run as root. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** One address for the clients, which another server takes over. */
async function takeoverAddress(first: number) {
  let target = first
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const backend = connect({ host: '127.0.0.1', port: target })
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
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `postgresql://postgres@127.0.0.1:${(server.address() as AddressInfo).port}/postgres`,
    switchTo(port: number) {
      target = port
      for (const socket of open) socket.destroy()
    },
    [Symbol.dispose]() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}

/** A primary with a standby that streams from it. */
async function cluster() {
  const folder = mkdtempSync(join(tmpdir(), 'portico-failover-'))
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid)
  const [primaryPort, standbyPort] = [await freePort(), await freePort()]
  const [primary, standby] = [join(folder, 'primary'), join(folder, 'standby')]
  const run = (tool: string, ...words: string[]) =>
    execFileSync(join(bin!, tool), words, { ...account, cwd: folder, stdio: 'pipe' })
  const start = (data: string) => run('pg_ctl', '-D', data, '-l', `${data}.log`, '-w', 'start')
  const stop = (data: string, mode: 'fast' | 'immediate') =>
    run('pg_ctl', '-D', data, '-m', mode, '-w', 'stop')
  const settings = (port: number) =>
    `\nport = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\nmax_connections = 60\n`
  run('initdb', '-D', primary, '-U', 'postgres', '-A', 'trust', '--no-sync')
  appendFileSync(join(primary, 'postgresql.conf'), settings(primaryPort))
  start(primary)
  const address = ['-h', '127.0.0.1', '-p', String(primaryPort), '-U', 'postgres']
  run('pg_basebackup', '-D', standby, '-R', '--no-sync', '-c', 'fast', ...address)
  appendFileSync(join(standby, 'postgresql.conf'), settings(standbyPort))
  start(standby)
  const running = new Set([primary, standby])
  const stopOnce = (data: string, mode: 'fast' | 'immediate') => {
    if (running.delete(data)) stop(data, mode)
  }
  return {
    primaryPort,
    standbyPort,
    stopPrimary: (mode: 'fast' | 'immediate') => stopOnce(primary, mode),
    stopStandby: () => stopOnce(standby, 'fast'),
    startStandby() {
      start(standby)
      running.add(standby)
    },
    promote: () => run('pg_ctl', '-D', standby, '-w', 'promote'),
    [Symbol.dispose]() {
      for (const data of running) stop(data, 'immediate')
      rmSync(folder, { recursive: true })
    },
  }
}

const kind: TaskKind = { kind: 'test', version: 1, priority: 1, steps: { only: async () => executed } }

async function instanceOn(url: string) {
  const core = await openTestCore({ databaseUrl: url, config: { LEASE_MS: 900 } })
  const { taskEngine, db } = core
  const runtime = taskEngine.createRuntime([], [kind])
  await taskEngine.time.open(async () => [])
  runtime.start()
  return {
    holds: taskEngine.holds,
    rows: <Row extends object>(text: string) => query<Row>(db, text),
    async runTask() {
      const id = await taskEngine.transact((tx) =>
        taskEngine.enqueue(tx, {
          userId: newUser(),
          kind,
          input: {},
          admission: { data: {}, first: 'only' },
        }),
      )
      taskEngine.announceQueued()
      await eventually(
        async () =>
          (await query(db, `select 1 from task where id = $1 and status = 'completed'`, [id])).length === 1 ||
          undefined,
        'the end of a task',
        takeoverMsMax,
      )
    },
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  }
}

/** A database that is being replaced refuses for a moment. */
const settled = <T>(look: () => Promise<T | undefined>, what: string) =>
  eventually(() => look().catch(() => undefined), what, takeoverMsMax)

test('a standby that has everything takes over, and money goes on by itself', { skip }, async () => {
  using servers = await cluster()
  using address = await takeoverAddress(servers.primaryPort)
  await using instance = await instanceOn(address.url)
  await instance.runTask()
  servers.stopPrimary('fast')
  servers.promote()
  address.switchTo(servers.standbyPort)
  await settled(async () => {
    const rows = await instance.rows('select 1 from database_witness where timeline = 2')
    return rows.length === 1 && !instance.holds.find() ? true : undefined
  }, 'the heartbeats know the new timeline')
  await instance.runTask()
  assert.deepEqual(await instance.rows('select * from money_hold'), [])
})

test('a standby that lacks acknowledged commits takes over, and money is on hold', { skip }, async () => {
  using servers = await cluster()
  using address = await takeoverAddress(servers.primaryPort)
  await using instance = await instanceOn(address.url)
  await instance.runTask()
  servers.stopStandby()
  await instance.runTask()
  servers.stopPrimary('immediate')
  servers.startStandby()
  servers.promote()
  address.switchTo(servers.standbyPort)
  const stored = await settled(async () => {
    const [row] = await instance.rows<{ reason: string }>(`select reason from money_hold where scope = 'all'`)
    return row && instance.holds.find() ? row : undefined
  }, 'money is on hold')
  assert.ok(['went_back', 'lost_commits'].includes(stored.reason), stored.reason)
})
