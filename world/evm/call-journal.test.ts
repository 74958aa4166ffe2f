import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { callJournal, type MinedAt } from './call-journal.ts'

const folderOf = async (t: TestContext): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'portico-calls-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  return dir
}
const mined = (block: number): MinedAt => ({ hash: '0xaa', block, index: 0, atSeconds: 7 })
const namesOf = (entries: { call: object }[]) => entries.map(({ call }) => Object.values(call)[0])

test('a call without an answer is in the journal after a kill, and a rejected one is not', async (t) => {
  const dir = await folderOf(t)
  const before = callJournal(dir, '1')
  before.open(0, 0)
  const [, refused, landed] = ['0x01', '0x02', '0x03'].map((raw) => before.add({ raw: raw as '0x01' }, 5))
  before.markRejected(refused as number)
  before.markMined(landed as number, mined(9))
  const entries = callJournal(dir, '1').open(0, 0)
  assert.deepEqual(namesOf(entries), ['0x01', '0x03'])
  assert.deepEqual(entries[1]?.mined, mined(9))
  assert.equal(entries[0]?.takenSeconds, 5)
})

test('an incomplete last line is skipped, and later lines are read', async (t) => {
  const dir = await folderOf(t)
  const first = callJournal(dir, '1')
  first.open(0, 0)
  first.add({ raw: '0x01' }, 5)
  const [name = ''] = await readdir(dir)
  await appendFile(join(dir, name), '{"n":3,"takenSeconds":5,"call":{"ra')
  const second = callJournal(dir, '1')
  assert.deepEqual(namesOf(second.open(0, 0)), ['0x01'])
  second.add({ raw: '0x02' }, 6)
  assert.deepEqual(namesOf(callJournal(dir, '1').open(0, 0)), ['0x01', '0x02'])
})

test('a save removes the earlier files, except entries that it carries over', async (t) => {
  const dir = await folderOf(t)
  const journal = callJournal(dir, '1')
  journal.open(0, 0)
  journal.add({ raw: '0x01' }, 5)
  const pending = journal.add({ raw: '0x02' }, 5)
  const entries = journal.entries()
  const file = journal.startFile()
  // Its block becomes known while the save begins.
  journal.markMined(pending, mined(4))
  journal.carryOver(entries[1] as (typeof entries)[number])
  journal.add({ raw: '0x03' }, 6)
  // A kill before the state is saved: the state and the first file are the earlier ones.
  assert.deepEqual(namesOf(callJournal(dir, '1').open(0, 0)), ['0x01', '0x02', '0x03'])
  // A kill after it: the state names the new file.
  journal.removeBefore(file, new Set([pending]))
  assert.deepEqual(namesOf(journal.entries()), ['0x02', '0x03'])
  const later = callJournal(dir, '1')
  assert.deepEqual(namesOf(later.open(file, file)), ['0x02', '0x03'])
  assert.deepEqual(later.entries()[0]?.mined, mined(4))
})

test('a removed block is not the block of its transactions any more, also after a kill', async (t) => {
  const dir = await folderOf(t)
  const journal = callJournal(dir, '1')
  journal.open(0, 0)
  const [moved, other] = ['0x01', '0x02'].map((raw) => journal.add({ raw: raw as '0x01' }, 5)) as [
    number,
    number,
  ]
  journal.markMined(moved, mined(9))
  journal.markMined(other, { ...mined(10), hash: '0xbb' })
  journal.markRemoved('0xaa')
  const blocks = (from: typeof journal) => from.entries().map((entry) => entry.mined?.block)
  assert.deepEqual(blocks(journal), [undefined, 10])
  const later = callJournal(dir, '1')
  later.open(0, 0)
  assert.deepEqual(blocks(later), [undefined, 10])
  later.markMined(moved, mined(12))
  assert.deepEqual(blocks(later), [12, 10])
})

test('numbers continue after the files are removed, and another chain has its own files', async (t) => {
  const dir = await folderOf(t)
  const other = callJournal(dir, '11')
  other.open(0, 0)
  other.add({ raw: '0x01' }, 5)
  const journal = callJournal(dir, '1')
  assert.deepEqual(journal.open(40, 50), [])
  assert.ok(journal.add({ raw: '0x02' }, 5) > 50)
  journal.clear()
  assert.equal((await readdir(dir)).length, 1)
})
