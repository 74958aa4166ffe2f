import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isConditionOf, protocolOf } from './outcome-ids.ts'

/** Tokens of real markets: two of a standard one, and one each of two with negative risk. */
const realTokens = [
  '45601394554497090173642354630373884477724604907691447337031201817815960365378',
  '102652665954921241745169157447280060113772926009745753029489061659654862632571',
  '21742633143463906290569050155826241533067272736897614950488156847949938836455',
  '31974447302330162086995746309500877260929998201718217388109724292047967921664',
]
const yesOfV2 = (1n << 248n) | (0xabcdef0123456789n << 120n)

test('ids of real markets belong to the first protocol', () => {
  for (const token of realTokens) assert.equal(protocolOf(token), 'v1')
})

test('an id whose reserved bits are zero belongs to the second protocol', () => {
  assert.equal(protocolOf(String(yesOfV2)), 'v2')
  assert.equal(protocolOf(String(yesOfV2 + 1n)), 'v2')
  for (const bit of [40n, 71n, 103n]) assert.equal(protocolOf(String(yesOfV2 | (1n << bit))), 'v1')
  for (const bit of [39n, 104n]) assert.equal(protocolOf(String(yesOfV2 | (1n << bit))), 'v2')
})

test('a text that is no id of 256 bits has no protocol', () => {
  for (const text of ['', '0', '007', '-1', '1.0', '0x12', 'abc', String(1n << 256n), '9'.repeat(79)])
    assert.equal(protocolOf(text), undefined, text)
})

test('the condition of the second protocol begins the ids of its outcomes', () => {
  const condition = `0x${yesOfV2.toString(16).padStart(64, '0').slice(0, 62)}`
  assert.ok(isConditionOf(condition, String(yesOfV2), 'v2'))
  assert.ok(isConditionOf(condition.toUpperCase().replace('0X', '0x'), String(yesOfV2 + 1n), 'v2'))
  assert.ok(!isConditionOf(condition, String(yesOfV2 + 256n), 'v2'))
  assert.ok(!isConditionOf(`0x${'1'.repeat(64)}`, String(yesOfV2), 'v2'))
  assert.ok(isConditionOf(`0x${'1'.repeat(64)}`, realTokens[0]!, 'v1'))
  assert.ok(!isConditionOf(`0x${'1'.repeat(62)}`, realTokens[0]!, 'v1'))
})
