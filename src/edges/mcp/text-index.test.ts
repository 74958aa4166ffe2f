import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTextIndex, wordsOf } from './text-index.ts'

test('forms of one word are equal, and words that say nothing are left out', () => {
  assert.deepEqual(wordsOf('Selling all of my orders'), wordsOf('sell order'))
  assert.deepEqual(wordsOf('traded, trades, trade'), ['trad', 'trad', 'trad'])
  assert.deepEqual(wordsOf('What is the'), [])
  assert.deepEqual(wordsOf('take `perp_open`'), ['take', 'perp_open'].flatMap(wordsOf))
})

test('a rare word counts more than a common one, and a text without any word of the query is absent', () => {
  const index = createTextIndex([
    ['swap', 'swaps a token for another token'],
    ['vault', 'puts a token into the vault'],
    ['limits', 'shows what may be spent'],
  ])
  assert.deepEqual(index.rank('my token in the vault'), ['vault', 'swap'])
  assert.deepEqual(index.rank('nothing'), [])
  assert.deepEqual(createTextIndex([]).rank('token'), [])
})

test('a name that a text mentions does not make it the answer', () => {
  const index = createTextIndex([
    ['close', 'closes a position; take perp_open to enlarge it'],
    ['open', 'opens a perp'],
  ])
  assert.equal(index.rank('open a perp')[0], 'open')
})
