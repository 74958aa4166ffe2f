import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { acceptsGzip, gzipOf, gzipPart } from './gzip.ts'

test('parts that were compressed apart are one text, with its checksum', () => {
  const long = gzipPart('"a tool", '.repeat(10_000))
  for (const [before, after] of [
    ['', ''],
    ['{"tools":[', '],"id":"ä"}'],
    ['x'.repeat(70_000), ''],
  ] as const) {
    const whole = gzipOf([gzipPart(before), long, gzipPart(after)])
    assert.equal(gunzipSync(whole).toString(), `${before}${long.bytes.toString()}${after}`)
  }
  assert.ok(long.deflated.length < long.bytes.length / 50)
})

test('only who takes gzip gets it', () => {
  for (const taken of ['gzip', 'br, gzip', 'gzip;q=0.5', 'deflate,gzip, br'])
    assert.ok(acceptsGzip(taken), taken)
  for (const refused of [undefined, '', 'br', 'gzip;q=0', 'x-gzip2'])
    assert.ok(!acceptsGzip(refused), refused)
})
