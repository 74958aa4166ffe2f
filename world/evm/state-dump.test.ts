import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hexResultParser } from './state-dump.ts'

const whole = Buffer.from(Array.from({ length: 300 }, (_, index) => index % 256))
const answer = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":"0x${whole.toString('hex')}"}`)

test('a state is the same however the answer is split into chunks', () => {
  for (const size of [1, 2, 3, 7, 33, 34, 100, answer.length]) {
    const parser = hexResultParser()
    const parts: Buffer[] = []
    for (let at = 0; at < answer.length; at += size) parts.push(parser.parse(answer.subarray(at, at + size)))
    assert.deepEqual(Buffer.concat(parts), whole, `chunks of ${size}`)
    assert.equal(parser.isComplete(), true)
  }
})

test('an incomplete answer and an answer with an error are no state', () => {
  const torn = hexResultParser()
  torn.parse(answer.subarray(0, answer.length - 3))
  assert.equal(torn.isComplete(), false)
  const refused = hexResultParser()
  refused.parse(Buffer.from('{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}'))
  assert.equal(refused.isComplete(), false)
  assert.match(refused.errorText(), /"no"/)
})
