import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createWitnessFile } from './database-witness-file.ts'

test('what was seen of a database is read again, each database by itself, and a cut file is no memory', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-time-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = createWitnessFile(folder)
  const record = { witness: 'w', generation: 0, beat: 7, system: '7001', timeline: 1, lsn: '900' }
  assert.equal(file.read('one'), undefined)
  file.write('one', { ...record, beat: 6 })
  file.write('one', record)
  assert.deepEqual(createWitnessFile(folder).read('one'), record)
  assert.equal(file.read('other'), undefined)
  assert.equal(file.isRestored(), false)
  file.markRestored()
  assert.equal(createWitnessFile(folder).isRestored(), true)
  file.forgetRestored()
  assert.equal(file.isRestored(), false)
  truncateSync(join(folder, 'database-time', 'one.json'), 5)
  assert.equal(file.read('one'), undefined)
})
