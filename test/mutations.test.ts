import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { misfits, mutations } from './mutations/run.ts'

test('every planted mistake still fits the code: its snippet stands in its file exactly once', () => {
  assert.deepEqual(misfits(mutations), [])
})

test('there are at least sixty of them, no two alike, each with a test that exists', () => {
  assert.ok(mutations.length >= 60, `only ${mutations.length}`)
  const names = mutations.map(({ file, find, replace }) => `${file}\n${find}\n${replace}`)
  assert.equal(new Set(names).size, names.length)
  for (const { tests } of mutations) {
    assert.ok(tests.length > 0)
    for (const file of tests) assert.ok(existsSync(new URL(`../${file}`, import.meta.url)), file)
  }
})

test('a snippet that is gone, or stands twice, is told', () => {
  const [mutation] = mutations
  const read = (text: string) => () => text
  assert.match(misfits([mutation!], read('nothing of it'))[0]!, /stands 0 times/)
  assert.match(misfits([mutation!], read(mutation!.find.repeat(2)))[0]!, /stands 2 times/)
  assert.deepEqual(misfits([mutation!], read(mutation!.find)), [])
})
