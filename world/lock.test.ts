import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lockDirectory } from './lock.ts'

const directory = async (t: { after: (undo: () => Promise<void>) => void }) => {
  const made = await mkdtemp(join(tmpdir(), 'portico-lock-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}

test('a lock is free again after its release', async (t) => {
  const dataDir = await directory(t)
  const release = await lockDirectory(dataDir)
  await release()
  await (await lockDirectory(dataDir))()
  assert.deepEqual(await readdir(dataDir), [])
})

test('a lock of a process that has ended, or of another program, blocks no one', async (t) => {
  const dataDir = await directory(t)
  await writeFile(join(dataDir, 'world.lock'), String(process.ppid))
  await (await lockDirectory(dataDir, 0))()
  await writeFile(join(dataDir, 'world.lock'), '')
  await (await lockDirectory(dataDir, 0))()
})

test('a start waits for a running world of the same directory, and then names it in the error', async (t) => {
  const dataDir = await directory(t)
  const holder = spawn(process.execPath, ['-e', 'console.log(1);setInterval(() => {}, 1000)', dataDir])
  t.after(async () => void holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  await writeFile(join(dataDir, 'world.lock'), String(holder.pid))
  await assert.rejects(lockDirectory(dataDir, 120), new RegExp(`process ${holder.pid}`))
  const late = lockDirectory(dataDir, 10_000)
  holder.kill('SIGKILL')
  await (await late)()
})
