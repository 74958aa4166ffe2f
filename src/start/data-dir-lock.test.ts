import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { InUse, lockDataDir } from './data-dir-lock.ts'

test('a killed gateway that is not reaped yet does not lock its folder', {
  skip: process.platform === 'linux' ? false : 'reads /proc',
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'portico-lock-'))
  // The shell becomes another program, which never waits for the shell's child.
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => {
    parent.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  })
  const [said] = (await once(parent.stdout, 'data')) as [Buffer]
  const pid = Number(said.toString())
  const stat = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  const isSleep = () => readFileSync(`/proc/${parent.pid}/comm`, 'utf8') === 'sleep\n'
  const until = async (isSo: () => boolean) => {
    const deadline = Date.now() + 10_000
    while (!isSo()) {
      assert.ok(Date.now() < deadline, 'the child did not end')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  await until(isSleep)
  process.kill(pid, 'SIGKILL')
  await until(() => stat()[0] === 'Z')
  writeFileSync(join(dir, 'gateway.pid'), `${pid} ${stat()[19]}`)
  const lock = lockDataDir(dir)
  assert.equal(Number(readFileSync(join(dir, 'gateway.pid'), 'utf8').split(' ')[0]), process.pid)
  lock[Symbol.dispose]()
})

test('a folder whose gateway runs is rejected', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'portico-lock-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, 'gateway.pid'), `${process.ppid} `)
  assert.throws(() => lockDataDir(dir), InUse)
})
