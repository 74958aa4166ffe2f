import assert from 'node:assert/strict'
import { test } from 'node:test'
import { discover, sizeOf } from '../scripts/test-plan.ts'
import { mutations, staleMutations } from './mutations/run.ts'

test('every planted mistake fits the code: its snippet occurs exactly once in its file, and its tests exist', () => {
  assert.deepEqual(staleMutations(mutations), [])
})

test('there are at least sixty of them, no two alike, each with a test', () => {
  assert.ok(mutations.length >= 60, `only ${mutations.length}`)
  const names = mutations.map(({ file, find, replace }) => `${file}\n${find}\n${replace}`)
  assert.equal(new Set(names).size, names.length)
  for (const { mistake, tests } of mutations) assert.ok(tests.length > 0, mistake)
})

test('npm test has the first test of four in five of them, and npm run test:all has every test', () => {
  const files = discover()
  for (const { mistake, tests } of mutations)
    for (const each of tests) assert.ok(files.includes(each), `${mistake}: no size has ${each}`)
  const found = mutations.filter(({ tests }) => sizeOf(tests[0]!) === 'test')
  assert.ok(found.length >= 0.8 * mutations.length, `${found.length} of ${mutations.length}`)
})

test('a mutation whose snippet, file or test is missing, or whose snippet occurs twice, is reported', () => {
  const [mutation] = mutations
  const read = (text: string | undefined) => () => text
  assert.match(staleMutations([mutation!], read('nothing of it'))[0]!, /occurs 0 times/)
  assert.match(staleMutations([mutation!], read(mutation!.find.repeat(2)))[0]!, /occurs 2 times/)
  assert.match(staleMutations([mutation!], read(undefined))[0]!, /there is no src/)
  const tests = ['test/missing.test.ts']
  assert.match(staleMutations([{ ...mutation!, tests }], read(mutation!.find))[0]!, /no test test.missing/)
  assert.deepEqual(staleMutations([mutation!], read(mutation!.find)), [])
})
