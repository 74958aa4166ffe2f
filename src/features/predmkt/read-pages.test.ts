import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPages } from './read-pages.ts'

const pages = [
  { items: [1, 2], nextCursor: 'b' },
  { items: [3], nextCursor: null },
]
const read = async (cursor: string | undefined) => pages[cursor === undefined ? 0 : 1]

test('a list is read to its end, or as far as its pages may go', async () => {
  assert.deepEqual(await readPages(read, 2), { items: [1, 2, 3], isWhole: true })
  assert.deepEqual(await readPages(read, 1), { items: [1, 2], isWhole: false })
})

test('a page that is not answered ends the list', async () => {
  const failing = async (cursor: string | undefined) => (cursor === undefined ? pages[0] : undefined)
  assert.deepEqual(await readPages(failing, 5), { items: [1, 2], isWhole: false })
})
