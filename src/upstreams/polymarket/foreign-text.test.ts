import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashesOf, lineOf, parseReply, tradeIdsOf } from './foreign-text.ts'

const control = String.fromCharCode(0, 7, 27, 127)
const turned = String.fromCharCode(0x202e, 0x200b, 0x2028)
const half = String.fromCharCode(0xd83d)

test('texts of a reply are cut, and lose what a database refuses', () => {
  const reply = {
    error: `${control}no${half}`,
    list: [`a\nb\t${control}c`, 'x'.repeat(100_000)],
    deep: { er: { text: control, number: 1, none: null } },
  }
  const read = parseReply(JSON.stringify(reply)) as typeof reply
  assert.equal(read.error.replace('\ufffd', ''), 'no')
  assert.deepEqual(read.list, ['a\nb\tc', 'x'.repeat(20_000)])
  assert.deepEqual(read.deep, { er: { text: '', number: 1, none: null } })
  assert.equal(parseReply('"a\\u0000b"'), 'ab')
  assert.equal(parseReply('<html>'), undefined)
  const turning = String.fromCharCode(0x61c, 0x200e, 0x200f, 0x202a, 0x202e, 0x2066, 0x2069)
  assert.equal(
    parseReply(JSON.stringify(`a${turning}b\n\u05d0 \u{1f468}\u200d\u{1f469}`)),
    'ab\n\u05d0 \u{1f468}\u200d\u{1f469}',
  )
  assert.equal(parseReply('null'), null)
})

test('a reply may be nested as deep as it is long', () => {
  const depth = 5_000
  assert.ok(Array.isArray(parseReply('['.repeat(depth) + ']'.repeat(depth))))
})

test('a line has a length and shows what it says', () => {
  assert.equal(lineOf(`a${control}b${turned}c\nd`, 300), 'a b c d')
  assert.equal(lineOf('x'.repeat(1_000), 300).length, 300)
  assert.ok(lineOf(`${'x'.repeat(299)}\ud83d\ude00`, 300).isWellFormed())
})

test('only ids of their form are taken, and only so many', () => {
  const hash = `0x${'ab'.repeat(32)}`
  assert.deepEqual(hashesOf([hash, '', '0x1', `${hash}0`, `${hash}\n`]), [hash])
  assert.equal(hashesOf(Array.from({ length: 1_000 }, () => hash)).length, 200)
  const trade = '2cc74848-cf46-40f7-805e-10e1d4567fe8'
  assert.deepEqual(tradeIdsOf([trade, '', 'a b', 'x'.repeat(81)]), [trade])
  assert.equal(tradeIdsOf(Array.from({ length: 1_000 }, () => trade)).length, 200)
})
