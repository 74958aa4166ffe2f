import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSplitter } from './sentence-splitter.ts'

const all = (...pieces: string[]): string[] => {
  const splitter = createSplitter()
  const found = pieces.flatMap((piece) => splitter.push(piece))
  return [...found, splitter.rest()].filter((text) => text !== '')
}

test('white space belongs to the sentence behind it, and a decimal point ends none', () => {
  assert.deepEqual(all('One is 1.5. Two', ' is 2.25! "Three."\n- four'), [
    'One is 1.5.',
    ' Two is 2.25!',
    ' "Three."',
    '\n- four',
  ])
})

test('pieces of any size give the same sentences, and nothing is lost', () => {
  const text = fc.array(fc.constantFrom('a', '.', ' ', '\n', '1', '!', '"', 'long '.repeat(300)), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 50 }), (parts, size) => {
      const whole = parts.join('')
      const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
        whole.slice(at * size, (at + 1) * size),
      )
      assert.equal(all(...pieces).join(''), whole)
    }),
    { numRuns: 200 },
  )
})

test('a text without white space is broken, so that no sentence is long', () => {
  for (const size of [997, 60_000]) {
    const text = `${'a-'.repeat(30_000)} b`
    const splitter = createSplitter()
    const found: string[] = []
    for (let at = 0; at < text.length; at += size) found.push(...splitter.push(text.slice(at, at + size)))
    found.push(splitter.rest())
    assert.ok(Math.max(...found.map(({ length }) => length)) <= 4_001)
    assert.equal(found.join('').replaceAll(' ', ''), text.replaceAll(' ', ''))
  }
})

test('a language without spaces is cut at its own marks', () => {
  assert.deepEqual(all('价格是1.5。然后', '呢？好'), ['价格是1.5。', '然后呢？', '好'])
})
