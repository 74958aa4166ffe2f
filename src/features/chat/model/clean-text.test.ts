import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleanAnswer, cleanValue } from './clean-text.ts'

test('a name has no invisible sign, no new line, and an end', () => {
  const value = { name: `A\u202eB\u200b\nC\u0007${'x'.repeat(100)}`, 'k\u200bey': ['ｆｕｌｌ'] }
  assert.deepEqual(cleanValue(value), { name: `AB C${'x'.repeat(60)}`, key: ['full'] })
})

test('an answer leads nowhere and loads nothing', () => {
  for (const text of [
    '![a](https://evil.example/?q=1)',
    '[a](http://evil.example)',
    '<img src="https://evil.example/x">',
    'ftp://evil.example',
    '//evil.example/x',
    'www.evil.example',
    'a. b](https://evil.example/x)',
    'javascript://evil.example',
  ])
    assert.doesNotMatch(cleanAnswer(text), /evil/, text)
  assert.equal(cleanAnswer('a < b and c > d, 1/2.'), 'a < b and c > d, 1/2.')
})
