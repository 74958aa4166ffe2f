import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sizeNames, sizeOf } from './sizes.ts'

test('names have their size, and null is the default', () => {
  assert.equal(sizeNames.length, 10)
  assert.deepEqual(sizeOf(null), { width: 1_024, height: 1_024 })
  assert.deepEqual(sizeOf('lanscape_4_3'), sizeOf('landscape_4_3'))
  assert.deepEqual(sizeOf('portrait_hd'), { width: 1_024, height: 1_536 })
})

test('a custom size has its height first, within the bounds', () => {
  assert.deepEqual(sizeOf('512x1024'), { width: 1_024, height: 512 })
  assert.deepEqual(sizeOf('256x2048'), { width: 2_048, height: 256 })
  for (const wrong of [
    '255x512',
    '512x255',
    '2049x512',
    '512x2049',
    '512X512',
    '0512x512',
    '512x512 ',
    '',
    'toString',
  ])
    assert.equal(sizeOf(wrong), undefined, wrong)
})
