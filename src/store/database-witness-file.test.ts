import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { timeFile } from './database-witness-file.ts'

test('what was seen of a database is read again, each database by itself, and a cut file is no memory', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-time-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const memory = timeFile(folder)
  const record = { witness: 'w', generation: 0, beat: 7, system: '7001', timeline: 1, lsn: '900' }
  assert.equal(memory.read('one'), undefined)
  memory.write('one', { ...record, beat: 6 })
  memory.write('one', record)
  assert.deepEqual(timeFile(folder).read('one'), record)
  assert.equal(memory.read('other'), undefined)
  assert.equal(memory.isRestored(), false)
  memory.markRestored()
  assert.equal(timeFile(folder).isRestored(), true)
  memory.forgetRestored()
  assert.equal(memory.isRestored(), false)
  truncateSync(join(folder, 'database-time', 'one.json'), 5)
  assert.equal(memory.read('one'), undefined)
})
