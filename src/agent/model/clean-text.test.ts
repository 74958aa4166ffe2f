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

/** As an answer is sent: each sentence alone, and what was sent before it stays. */
const sent = (...sentences: string[]): string => sentences.map(cleanAnswer).join('')

test('an answer has no address, however it is spelt', () => {
  for (const address of [
    'https://evil.example/a',
    'HTTPS://evil.example',
    '//evil.example/a',
    '/\\evil.example/a',
    '\\\\evil.example\\a',
    'https:/evil.example/a',
    'https:\\evil.example',
    'https:evil.example',
    'www.evil.example',
    'evil.example/a?balance=123',
    'evil.example:8080/a',
    'evil.example?balance=123',
    'mailto:a@evil.example',
    'javascript:alert(1)',
    'data:text/html,evil.example',
    'tg://evil.example',
    'https&#58;&#47;&#47;evil.example',
    '&sol;&sol;evil.example',
    'https&colon;&#x2f;&#x2f;evil.example',
    'ht\u200btps:/\u200b/evil.example',
    'ht\u00adtps:/\u00ad/evil.example',
    'https:\uff0f\uff0fevil.example',
  ]) {
    const text = cleanAnswer(`See ${address} now.`)
    assert.doesNotMatch(
      text,
      /\p{Cf}|[a-z]:[\\/]|[\\/]{2}|www\.|mailto:|script:|data:|&#|&sol|evil\.example[/?:]/iu,
      address,
    )
    assert.doesNotMatch(text, /https[:;]?evil|https:/i, address)
    assert.match(text, /^See /)
    assert.match(text, / now\.$/)
  }
})

test('a link, an image or a tag that is cut in sentences is none after them', () => {
  for (const parts of [
    ['![a]', '(\n/\\evil.example/a.png)'],
    ['![a](', '\n/x/a.png)'],
    ['[a](', '\nx/a)'],
    ['[a][b].', '\n\n[b]: x/a'],
    ['[a]', '(https:evil.example)'],
    ['<img', '\nsrc=x>'],
    ['<a', '\nhref=x>'],
    ['![a][b].', '\n[b]:', '\nhttps:/evil.example'],
  ]) {
    const text = sent(...parts)
    assert.doesNotMatch(text, /!\[|\]\(|\]\[|\]:|<[a-z/]/i, JSON.stringify(parts))
  }
})

test('what is no address stays as it is', () => {
  for (const text of [
    'BTC/USDC at 64,000.5, and USDC.e/ETH.',
    'Risk: high. Price: 3.5 USD; 1 < 2 and 3 > 2.',
    'Slippage (0.5%) [1] is low.',
    'It is at 12:30, on 2026-01-02.',
    'AT&T and R&D; pump.fun is a name.',
    'Buys and/or sells.',
    'e.g. 50% of 1.5/2.',
  ])
    assert.equal(cleanAnswer(text), text)
  assert.equal(
    cleanAnswer('See ![x](https://evil.example/a.png), [this](http://evil.example).'),
    'See x, this.',
  )
})
