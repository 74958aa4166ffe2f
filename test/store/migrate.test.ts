import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { migrate, readMigrations } from '#store/migrate.ts'
import { testDatabase } from '../harness/cluster.ts'
import { waitUntil } from './embedded-fixture.ts'

/** An empty database and a folder of migrations, by path. */
async function migrationFixture(t: TestContext, files: Record<string, string>) {
  const { url, drop } = await testDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'portico-migrations-'))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(async () => {
    await client.end()
    await drop()
    rmSync(folder, { recursive: true })
  })
  await client.query('drop schema public cascade; create schema public')
  const write = (path: string, sql: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), sql)
  }
  for (const [name, sql] of Object.entries(files)) write(name, sql)
  return { url, folder, client, write }
}

test('each migration is applied once, in order, by the first instance', async (t) => {
  const files = {
    '01-area/0001_count.sql': 'create table counted (n int); insert into counted values (1)',
    '01-area/0002_slow.sql': 'select pg_sleep(0.2); insert into counted select max(n) + 1 from counted',
    '01-area/0003_last.sql': 'insert into counted select max(n) + 1 from counted',
  }
  const { url, folder, client } = await migrationFixture(t, files)
  const script = `
    const { migrate } = await import('#store/migrate.ts')
    const { applied } = await migrate(JSON.parse(process.argv[1]))
    console.log(applied.join())`
  const answers = await Promise.all(
    [1, 2, 3].map(async () => {
      const child = spawn(
        process.execPath,
        ['--input-type=module', '-e', script, JSON.stringify({ url, folder })],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      const chunks: Buffer[] = []
      child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
      const [code] = await once(child, 'close')
      assert.equal(code, 0)
      return Buffer.concat(chunks).toString().trim()
    }),
  )
  assert.deepEqual(answers.sort(), ['', '', Object.keys(files).join().replaceAll('01-', '')])
  assert.deepEqual((await client.query('select n from counted order by n')).rows, [
    { n: 1 },
    { n: 2 },
    { n: 3 },
  ])
  assert.deepEqual(await migrate({ url, folder }), { applied: [] })
})

test('a failing migration leaves no partial change and names its line', async (t) => {
  const { url, folder, client, write } = await migrationFixture(t, {
    '01-area/0001_good.sql': 'create table good (id int);',
    '01-area/0002_bad.sql': 'create table half (id int);\n\ninsert into nowhere values (1);\n',
  })
  await assert.rejects(
    migrate({ url, folder }),
    /The migration area\/0002_bad\.sql:3 failed: relation "nowhere" does not exist/,
  )
  const tables = `select tablename from pg_tables where schemaname = 'public' order by 1`
  assert.deepEqual(
    (await client.query(tables)).rows.map(({ tablename }) => tablename),
    ['good', 'schema_migration'],
  )
  write('01-area/0002_bad.sql', 'create table whole (id int);')
  assert.deepEqual(await migrate({ url, folder }), { applied: ['area/0002_bad.sql'] })
})

test('an edited migration that was applied is rejected', async (t) => {
  const { url, folder, write } = await migrationFixture(t, {
    '01-area/0001_first.sql': 'create table first (id int);\n',
  })
  await migrate({ url, folder })
  write('01-area/0001_first.sql', 'create table first (id int);\r\n')
  await migrate({ url, folder })
  write('01-area/0001_first.sql', 'create table first (id bigint);\n')
  await assert.rejects(migrate({ url, folder }), {
    name: 'StoreRefusal',
    message: /area\/0001_first\.sql that was applied to it on \d{4}-\d\d-\d\d is not the one of this release/,
  })
})

test('a refusal names the release that reads the database, and how to take the money out', async (t) => {
  const { url, folder, client, write } = await migrationFixture(t, {
    '01-area/0001_first.sql': 'create table first (id int);',
  })
  await migrate({ url, folder })
  const byDay = /before versions were recorded migrated it last, on \d{4}-\d\d-\d\d: .* of that day read it/
  const edit = () => write('01-area/0001_first.sql', 'create table first (id bigint);')
  edit()
  await assert.rejects(migrate({ url, folder }), byDay)
  write('01-area/0001_first.sql', 'create table first (id int);')
  write('01-area/0002_second.sql', 'create table second (id int);')
  // As a database from before versions were recorded.
  await client.query('alter table schema_migration drop column release')
  await client.query("update schema_migration set applied_at = now() - interval '2 days'")
  await migrate({ url, folder, release: '7.1.0' })
  edit()
  await assert.rejects(migrate({ url, folder, release: '8.0.0' }), (error: Error) => {
    assert.match(
      error.message,
      /Nothing was changed\. Portico 7\.1\.0 migrated it last, on .* that release reads it/,
    )
    assert.match(error.message, /Keep the database and its key-encryption keys/)
    assert.match(error.message, /withdraw the positions, and transfer the balances/)
    return true
  })
})

test('a database that is newer than the code is rejected', async (t) => {
  const { url, folder, client } = await migrationFixture(t, {
    '01-area/0001_first.sql': 'create table first (id int);',
  })
  await migrate({ url, folder })
  await client.query(
    `insert into schema_migration (area, number, name, checksum) values ('area', 2, 'area/0002_later.sql', 'x')`,
  )
  await assert.rejects(migrate({ url, folder }), {
    name: 'StoreRefusal',
    message:
      /newer than this release: it has area\/0002_later\.sql, and this release ends at area\/0001_first\.sql/,
  })
})

test('a migration yields to a reader that holds the table, and retries', async (t) => {
  const { url, folder, client, write } = await migrationFixture(t, {
    '01-area/0001_first.sql': 'create table first (id int);',
  })
  await migrate({ url, folder })
  write('01-area/0002_second.sql', `set local lock_timeout = '50ms'; alter table first add column more int;`)
  await client.query('begin; select * from first')
  const migrating = migrate({ url, folder })
  const watcher = new pg.Client({ connectionString: url })
  await watcher.connect()
  const timedOut = `select 1 from pg_stat_activity where application_name = 'portico migrate' and query = 'begin'
    or application_name = 'portico migrate' and wait_event_type = 'Lock'`
  await waitUntil(async () => (await watcher.query(timedOut)).rowCount, 'the migration waits for the reader')
  await watcher.end()
  await client.query('commit')
  assert.deepEqual(await migrating, { applied: ['area/0002_second.sql'] })
})

test('a migration that is late, duplicated or misnamed is rejected', async (t) => {
  const { url, folder, write } = await migrationFixture(t, {
    '01-area/0002_second.sql': 'create table second (id int);',
  })
  await migrate({ url, folder })
  write('01-area/0001_first.sql', 'create table first (id int);')
  await assert.rejects(
    migrate({ url, folder }),
    /area\/0001_first\.sql was added after area\/0002_second\.sql was applied/,
  )
  write('02-area/0002_again.sql', '')
  assert.throws(
    () => readMigrations(folder),
    /area\/0002_second\.sql and area\/0002_again\.sql have the same number/,
  )
  write('01-area/third.sql', '')
  assert.throws(() => readMigrations(folder), /area\/third\.sql is not named 0001_<words>\.sql/)
  write('0004_fourth.sql', '')
  assert.throws(() => readMigrations(folder), /folder 0004_fourth\.sql is not named 01-<area>/)
})

test('each area has numbers of its own and may refer to the areas before it', async (t) => {
  const { url, folder, write } = await migrationFixture(t, {
    '01-base/0001_init.sql': 'create table base (id int primary key);',
    '02-upper/0001_init.sql': 'create table upper (base_id int references base (id));',
  })
  await migrate({ url, folder })
  write('01-base/0002_more.sql', 'alter table base add column more int;')
  write('02-upper/0002_more.sql', 'alter table upper add column more int;')
  assert.deepEqual(await migrate({ url, folder }), { applied: ['base/0002_more.sql', 'upper/0002_more.sql'] })
})

test('a database with one sequence of migration numbers is rejected', async (t) => {
  const { url, folder, client } = await migrationFixture(t, {
    '01-area/0001_first.sql': 'create table first (id int);',
  })
  await client.query('create table schema_migration (number int primary key, name text, checksum text)')
  await assert.rejects(migrate({ url, folder }), {
    name: 'StoreRefusal',
    message: /Sources from before the first release wrote it: they read it\. Keep the database/,
  })
})
