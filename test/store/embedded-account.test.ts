import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { packagedNative } from '#store/embedded/binaries.ts'
import { isReachable } from '#store/embedded/cluster-paths.ts'
import { serverFolder } from '../harness/cluster.ts'
import { embeddedFixture, freshFolder, isRoot, nobody, postmasterOf, query } from './embedded-fixture.ts'

type Ready = { url: string; version: string }

const root = { skip: isRoot ? false : 'needs root, who runs the server under another account' }
const native = packagedNative()
const nodeForAll =
  isRoot && isReachable(dirname(process.execPath), nobody) && isReachable(import.meta.dirname, nobody)

const onPath = (() => {
  try {
    return execFileSync('sh', ['-c', 'command -v postgres'], { encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
})()

test('root puts the database of a closed folder where the server can reach it', root, async (t) => {
  const { dataDir, open } = embeddedFixture(t, { mode: 0o700 })
  const first = await open()
  const home = serverFolder(dataDir)
  assert.match(home, /^\/var\/(lib\/portico\/|tmp\/portico-pg-)[0-9a-f]{12}-[0-9a-f]{8}$/)
  assert.equal(statSync(home).uid, nobody.uid)
  assert.equal(statSync(home).mode & 0o777, 0o700)
  await query(first.url, 'create table kept (id int)')
  await first.close()
  const second = await open()
  assert.deepEqual(await query(second.url, 'select * from kept'), [])
  await second.close()

  renameSync(home, `${home}.aside`)
  t.after(() => rmSync(`${home}.aside`, { recursive: true, force: true }))
  await assert.rejects(open(), /is missing from .*Restore it, or delete/)
  rmSync(home, { recursive: true })
  symlinkSync(`${home}.aside`, home)
  await assert.rejects(open(), /must be a folder, not a link/)
  rmSync(home)
  mkdirSync(home, { mode: 0o777 })
  execFileSync('chmod', ['777', home])
  await assert.rejects(open(), /must be a folder, not a link, with mode 0700/)
  rmSync(home, { recursive: true })
})

test('a database that root can no longer hand over is rejected, not replaced', root, async (t) => {
  const { dataDir, open } = embeddedFixture(t)
  await (await open()).close()
  execFileSync('chmod', ['700', dataDir])
  await assert.rejects(open(), /cannot be reached by the account 65534/)
})

test('binaries that the server cannot read are copied once and checked each time', root, async (t) => {
  assert.ok(native, 'the binary package is installed')
  const closed = freshFolder(0o700)
  const version = `test-${process.pid}`
  const copy = `/var/tmp/portico-pg-${version}-0`
  t.after(() => {
    rmSync(closed, { recursive: true, force: true })
    rmSync(copy, { recursive: true, force: true })
  })
  cpSync(native, join(closed, 'native'), { recursive: true, verbatimSymlinks: true })
  writeFileSync(join(closed, 'package.json'), JSON.stringify({ version }))

  const { open } = embeddedFixture(t)
  const server = await open({ native: join(closed, 'native') })
  assert.match(server.version, /^18\./)
  await server.close()
  assert.equal(lstatSync(copy).mode & 0o777, 0o755)

  rmSync(join(copy, 'share/postgresql/timezone/UTC'))
  await (await open({ native: join(closed, 'native') })).close()
  assert.ok(statSync(join(copy, 'share/postgresql/timezone/UTC')).size > 0)

  appendFileSync(join(copy, 'lib/postgresql/plpgsql.so'), 'more')
  await assert.rejects(
    open({ native: join(closed, 'native') }),
    /plpgsql\.so is not the copy .* that the gateway made/,
  )
})

test(
  'a server under a borrowed account admits root only, and no other process of that account',
  root,
  async (t) => {
    const { open } = embeddedFixture(t)
    const server = await open()
    const rules = 'select type, auth_method from pg_hba_file_rules'
    assert.deepEqual(await query(server.url, rules), [{ type: 'local', auth_method: 'peer' }])
    if (nodeForAll) {
      const script = `const { default: pg } = await import(${JSON.stringify(import.meta.resolve('pg'))})
      const client = new pg.Client({ connectionString: process.argv[1] })
      await client.connect().then(() => console.log('let in'), (error) => console.log(error.message))
      process.exit()`
      const output = execFileSync(process.execPath, ['--input-type=module', '-e', script, server.url], {
        ...nobody,
        encoding: 'utf8',
      })
      assert.match(output, /Peer authentication failed|EACCES/)
    }
    await server.close()
  },
)

test('an ordinary user owns the server', {
  skip: nodeForAll ? false : 'needs root and a node that all may run',
}, async (t) => {
  const { dataDir, spawn } = embeddedFixture(t, { mode: 0o700, account: nobody })
  const first = spawn({}, { account: nobody })
  const { url } = await first.waitForLine<Ready>('ready')
  const status = readFileSync(`/proc/${postmasterOf(dataDir)}/status`, 'utf8')
  assert.match(status, new RegExp(`^Uid:\\s+${nobody.uid}\\s`, 'm'))
  assert.deepEqual(await query(url, 'select 1 as one'), [{ one: 1 }])
  await first.close()
  assert.equal(postmasterOf(dataDir), 0)
})

test('the server on PATH is used without the package, and neither reads the data of the other', {
  skip: onPath && native ? false : 'needs a postgres on PATH besides the package',
}, async (t) => {
  const { open } = embeddedFixture(t)
  const server = await open({ native: null })
  const major = Number.parseInt(server.version, 10)
  const [shown] = await query<{ server_version: string }>(server.url, 'show server_version')
  assert.ok(shown?.server_version.startsWith(server.version))
  await server.close()
  const again = await open()
  assert.equal(Number.parseInt(again.version, 10), major)
  await again.close()

  const newer = embeddedFixture(t)
  await (await newer.open()).close()
  const refused = newer.spawn({ native: null })
  if (major === 18) assert.ok(await refused.waitForLine<Ready>('ready'))
  else
    assert.match(
      await refused.waitForLine<string>('refused'),
      /written by PostgreSQL 18, and the available server is .*pg_dump/,
    )
})
