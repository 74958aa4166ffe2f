import assert from 'node:assert/strict'
import { spawn as spawnProgram } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { processesOf } from '../harness/processes.ts'
import {
  embeddedFixture,
  isRoot,
  killServer,
  nobody,
  postmasterOf,
  query,
  serverProcesses,
  waitUntil,
} from './embedded-fixture.ts'

type Ready = { url: string; version: string }

test('a killed process leaves its server to the next one, and the last one stops it', async (t) => {
  const { dataDir, open, spawn } = embeddedFixture(t)
  const first = spawn()
  const { url, version } = await first.waitForLine<Ready>('ready')
  const pid = postmasterOf(dataDir)
  await first.kill()
  await query(url, 'create table kept (id int)')

  const second = spawn()
  const third = await open()
  assert.deepEqual(await second.waitForLine<Ready>('ready'), { url, version })
  assert.equal(third.url, url)
  assert.equal(postmasterOf(dataDir), pid)
  await assert.rejects(open({ fsync: true }), /runs with fsync off, which can lose money/)
  await second.close()
  assert.deepEqual(await query(third.url, 'select * from kept'), [])
  await Promise.all([third.close(), third.close()])
  assert.equal(postmasterOf(dataDir), 0)
})

test('no acknowledged insert is lost when node and every server process are killed', async (t) => {
  const { dataDir, open, spawn } = embeddedFixture(t)
  const first = spawn({ fsync: true })
  const { url } = await first.waitForLine<Ready>('ready')
  await query(url, 'create table written (writer int, n int, primary key (writer, n))')
  const acknowledged = [0, 0, 0, 0]
  const pool = new pg.Pool({ connectionString: url, max: acknowledged.length })
  pool.on('error', () => {})
  const writers = acknowledged.map(async (_, writer) => {
    const client = await pool.connect()
    client.on('error', () => {})
    try {
      for (let n = 1; ; n++) {
        await client.query({
          name: 'write',
          text: 'insert into written values ($1, $2)',
          values: [writer, n],
        })
        acknowledged[writer] = n
      }
    } catch (error) {
      assert.ok(isDatabaseUnavailable(error), String(error))
    } finally {
      client.release(true)
    }
  })
  await waitUntil(() => acknowledged.every((n) => n > 200), 'every writer has written')
  const pids = await serverProcesses(url, dataDir)
  first.process.kill('SIGKILL')
  killServer(pids)
  await Promise.all(writers)
  await pool.end()

  const startedMs = performance.now()
  const second = await open({ fsync: true })
  t.diagnostic(`recovered in ${Math.round(performance.now() - startedMs)} ms, acknowledged ${acknowledged}`)
  const rows = await query<{ writer: number; last: number; count: number }>(
    second.url,
    'select writer, max(n) as last, count(*)::int as count from written group by writer order by writer',
  )
  await second.close()
  for (const { writer, last, count } of rows) {
    assert.equal(count, last)
    assert.ok(
      last >= (acknowledged[writer] as number),
      `writer ${writer} lost ${acknowledged[writer]}, has ${last}`,
    )
  }
  assert.equal(rows.length, acknowledged.length)
})

test('a server that is killed under its instance is started again', async (t) => {
  const { dataDir, open } = embeddedFixture(t)
  const lines: string[] = []
  const server = await open({ progress: (line) => lines.push(line) })
  await query(server.url, 'create table kept (id int)')
  const pid = postmasterOf(dataDir)
  process.kill(pid, 'SIGKILL')
  const startedMs = performance.now()
  await waitUntil(() => query(server.url, 'select 1').catch(() => undefined), 'the server answers again')
  t.diagnostic(`back after ${Math.round(performance.now() - startedMs)} ms`)
  await waitUntil(() => postmasterOf(dataDir), 'the new server is known')
  assert.notEqual(postmasterOf(dataDir), pid)
  assert.deepEqual(await query(server.url, 'select * from kept'), [])
  assert.ok(lines.includes('The database server ended; restarting it'))
  await server.close()
  assert.equal(postmasterOf(dataDir), 0)
})

test('three processes that start at once share one database, and any of them may leave first', async (t) => {
  const { dataDir, spawn } = embeddedFixture(t)
  const all = [1, 2, 3].map(() => spawn())
  const ready = await Promise.all(all.map((each) => each.waitForLine<Ready>('ready')))
  const url = ready[0]?.url ?? ''
  const names = readdirSync(join(dataDir, 'postgres')).sort()
  assert.deepEqual(names, ['data', 'server.log', 'socket'])
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name !== 'postgres'),
    ['postgres.json'],
  )
  await all[0]?.kill()
  await all[1]?.close()
  assert.deepEqual(await query(url, 'select 1 as one'), [{ one: 1 }])
  await all[2]?.close()
  assert.equal(postmasterOf(dataDir), 0)
})

test('a start that is killed while it creates the database leaves no partial database', async (t) => {
  const { dataDir, open, spawn } = embeddedFixture(t)
  const first = spawn()
  assert.match(await first.waitForLine<string>('progress'), /^Creating/)
  await waitUntil(
    () =>
      existsSync(join(dataDir, 'postgres')) &&
      readdirSync(join(dataDir, 'postgres')).some((name) => name.startsWith('data.tmp-')),
    'initdb has begun',
  )
  await first.kill()
  const second = await open()
  assert.deepEqual(await query(second.url, 'select current_database() as name'), [{ name: 'portico' }])
  await second.close()
})

test('a start that is cancelled while it creates the database ends initdb and leaves no partial database', async (t) => {
  const { dataDir, open } = embeddedFixture(t)
  const cancelling = new AbortController()
  const opening = assert.rejects(open({ cancelled: cancelling.signal }))
  const home = join(dataDir, 'postgres')
  await waitUntil(
    () => existsSync(home) && readdirSync(home).some((name) => name.startsWith('data.tmp-')),
    'initdb has begun',
  )
  cancelling.abort()
  await opening
  assert.deepEqual(
    readdirSync(home).filter((name) => name.startsWith('data')),
    [],
  )
  if (process.platform === 'linux') assert.deepEqual(processesOf(dataDir), [])
  await (await open()).close()
})

test('a server whose fast shutdown hangs is stopped at once where that is forced', async (t) => {
  const { dataDir, open } = embeddedFixture(t)
  const forcing = new AbortController()
  const server = await open({ forced: forcing.signal })
  const [checkpointer] = await query<{ pid: number }>(
    server.url,
    "select pid from pg_stat_activity where backend_type = 'checkpointer'",
  )
  process.kill(checkpointer!.pid, 'SIGSTOP')
  forcing.abort()
  await server.close()
  assert.equal(postmasterOf(dataDir), 0)
})

test('a very long path and a path with a comma get a short socket folder', async (t) => {
  const { open } = embeddedFixture(t, { below: ['a, b', 'x'.repeat(120), 'y'.repeat(120)] })
  const server = await open()
  const folder = /host=(%2Ftmp%2Fportico-pg-[0-9a-f]{20})&/.exec(server.url)?.[1]
  assert.ok(folder, server.url)
  t.after(() => rmSync(decodeURIComponent(folder), { recursive: true, force: true }))
  assert.deepEqual(await query(server.url, 'select 1 as one'), [{ one: 1 }])
  await server.close()
})

test('a process id that another program reuses does not keep the server from starting', async (t) => {
  const { dataDir, open, spawn } = embeddedFixture(t)
  const first = spawn()
  const { url } = await first.waitForLine<Ready>('ready')
  await first.kill()
  const file = join(dataDir, 'postgres', 'data', 'postmaster.pid')
  const left = readFileSync(file, 'utf8')
  killServer(await serverProcesses(url, dataDir))
  // As on Linux after a reboot: the same account, another program.
  const stranger = spawnProgram('sleep', ['60'], { stdio: 'ignore', cwd: '/', ...(isRoot && nobody) })
  await once(stranger, 'spawn')
  writeFileSync(file, left.replace(/^\d+/, String(stranger.pid)))
  const second = await open().finally(() => stranger.kill())
  await second.close()
})

test('a missing database is never replaced by an empty one', async (t) => {
  const { dataDir, open } = embeddedFixture(t)
  writeFileSync(
    join(dataDir, 'postgres.json'),
    '{ "home": "postgres", "system_identifier": "7710396347815291158" }',
  )
  await assert.rejects(open(), /is missing from .*Restore it, or delete/)
  writeFileSync(join(dataDir, 'postgres.json'), '{ "home": "postg')
  await assert.rejects(open(), /postgres\.json is damaged/)
})

test('without any server program the error names all three remedies', async (t) => {
  const { spawn } = embeddedFixture(t)
  const refused = spawn({ native: null }, { path: '/nowhere' })
  const sentence = await refused.waitForLine<string>('refused')
  await refused.close()
  assert.match(sentence, /^StoreRefusal: .*optional dependencies.*postgres 15 to 18 on PATH.*DATABASE_URL/)
})
