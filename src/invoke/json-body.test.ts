import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { Fault } from '#kernel/contract/fault.ts'
import type { NumberSources } from '#kernel/wire/json.ts'
import { depthMax, keysMax, parseJson } from './json-body.ts'

const parse = (text: string, sources: NumberSources = new WeakMap()) => parseJson(Buffer.from(text), sources)

/** The reason of a refusal; undefined where the text was read. */
function refusal(text: string | Uint8Array): string | undefined {
  try {
    parseJson(typeof text === 'string' ? Buffer.from(text) : text, new WeakMap())
    return undefined
  } catch (error) {
    assert.ok(error instanceof Fault)
    const reason = String(error.issues[0]?.ctx?.error)
    assert.deepEqual(
      error.issues.map(({ location, path, msg, type }) => ({ location, path, msg, type })),
      [{ location: 'body', path: [], msg: `JSON decode error: ${reason}`, type: 'json_invalid' }],
    )
    return reason
  }
}

test('an empty body is no body', () => {
  assert.equal(parse(''), undefined)
})

test('text that is not JSON is rejected with its position and a hint', () => {
  for (const [text, reason] of [
    ['{"a":1,}', 'Expecting property name in double quotes at character 7: remove the comma before it'],
    ['[1,]', 'Expecting value at character 3: remove the comma before it'],
    ["{'a':1}", 'Expecting property name in double quotes at character 1: use double quotes'],
    ['{"a":\'x\'}', 'Expecting value at character 5: use double quotes'],
    ['{a:1}', 'Expecting property name in double quotes at character 1: use double quotes around text'],
    ['{"a":True}', 'Expecting value at character 5: write true, false or null'],
    ['{"a":NaN}', 'Expecting value at character 5: a number has digits only'],
    ['{"a":.5}', 'Expecting value at character 5: a number starts with a digit'],
    ['{"a":1_000}', "Expecting ',' or '}' at character 6: a number has no separators"],
    ['{"a":01}', "Expecting ',' or '}' at character 6: a number has no leading zero"],
    ['{"a":1 // one', "Expecting ',' or '}' at character 7: JSON has no comments"],
    ['{"a":1', "Expecting ',' or '}' at character 6: the body ends too early"],
    ['{"a"=1}', "Expecting ':' at character 4"],
    ['{"a":"x', 'Invalid string at character 5: a string ends with a double quote and takes no line break'],
  ])
    assert.equal(refusal(text!), reason)
})

test('duplicate keys are rejected at each depth, escaped spelling included', () => {
  assert.match(refusal('{"a":1,"a":2}') ?? '', /Duplicate key "a"/)
  assert.match(refusal('{"x":[{"a":1,"\\u0061":2}]}') ?? '', /Duplicate key "a"/)
  assert.equal(refusal('{"a":{"a":1},"b":{"a":2}}'), undefined)
})

test('keys that could reach a prototype are rejected, similar keys are not', () => {
  assert.match(refusal('{"__proto__":{"x":1}}') ?? '', /__proto__/)
  assert.match(refusal('{"\\u005f_proto__":1}') ?? '', /__proto__/)
  assert.match(refusal('{"a":{"constructor":{"prototype":{}}}}') ?? '', /constructor/)
  assert.deepEqual(parse('{"constructor":"x","prototype":1}'), { constructor: 'x', prototype: 1 })
})

test('depth and number of keys are bounded', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  assert.equal(refusal(nested(depthMax)), undefined)
  assert.match(refusal(nested(depthMax + 1)) ?? '', /deeper/)
  const wide = (keys: number) => `{${Array.from({ length: keys }, (_, i) => `"k${i}":1`).join(',')}}`
  assert.equal(refusal(wide(keysMax)), undefined)
  assert.match(refusal(wide(keysMax + 1)) ?? '', /keys/)
})

test('a body that is not UTF-8 is rejected and not repaired', () => {
  assert.match(refusal(Buffer.from([0x22, 0xff, 0x22])) ?? '', /UTF-8/)
})

test('an object keeps the source text of each of its numbers', () => {
  const sources: NumberSources = new WeakMap()
  const value = parse('{"a":1e400,"list":[0.10,{"b":-0.0}]}', sources) as { list: [number, object] }
  assert.equal(sources.get(value)?.get('a'), '1e400')
  assert.equal(sources.get(value.list)?.get('0'), '0.10')
  assert.equal(sources.get(value.list[1])?.get('b'), '-0.0')
})

test('long strings and long lists do not overflow the stack', () => {
  const long = JSON.stringify({ text: 'a"b\\'.repeat(50_000), list: Array.from({ length: 4_900 }, () => 1) })
  assert.deepEqual(parse(long), JSON.parse(long))
})

test('every document parses as JSON.parse parses it', () => {
  const options = { maxDepth: 6, noNullPrototype: true }
  const document = fc.json(options).filter((text) => !/__proto__|"constructor"/.test(text))
  fc.assert(fc.property(document, (text) => assert.deepEqual(parse(text), JSON.parse(text))))
})

test('text that JSON.parse rejects is rejected', () => {
  const tokens = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"b"',
    '1',
    '-',
    '0',
    '.5',
    'e3',
    'true',
    'nul',
    ' ',
    '\\',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...tokens), { minLength: 1, maxLength: 12 }), (parts) => {
      const text = parts.join('')
      let expected: unknown
      try {
        expected = JSON.parse(text)
      } catch {
        assert.notEqual(refusal(text), undefined, text)
        return
      }
      const why = refusal(text)
      if (why === undefined) assert.deepEqual(parse(text), expected)
      else assert.match(why, /Duplicate/)
    }),
    { numRuns: 2_000 },
  )
})

test('values, keys and the length of a key are bounded, and a compressed body is named as such', () => {
  const list = (count: number) => `[${Array.from({ length: count }, () => '[]').join(',')}]`
  assert.deepEqual([refusal(list(4_999)), refusal(list(5_000))], [undefined, 'More than 5000 values'])
  const keyOf = (length: number) => `{"${'k'.repeat(length)}":1}`
  assert.deepEqual(
    [refusal(keyOf(256)), refusal(keyOf(257))],
    [undefined, 'A key is longer than 256 characters'],
  )
  assert.equal(refusal(gzipSync('{}')), 'The body is compressed; send it without gzip')
})
