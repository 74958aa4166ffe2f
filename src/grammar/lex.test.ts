import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSolanaAddress, lex, lexemesMax, normalise, textLengthMax } from './lex.ts'

const kinds = (text: string): string =>
  lex(text)
    .lexemes.map(({ kind, text: own }) => `${kind}:${own}`)
    .join(' ')

test('quoted text is one opaque token, whatever quotes it has', () => {
  assert.equal(kinds('he wrote "sell all" today'), 'word:he word:wrote quoted:"sell all" word:today')
  assert.equal(kinds('\u201csell all\u201d'), 'quoted:"sell all"')
  assert.equal(kinds("what does 'buy eth' mean"), "word:what word:does quoted:'buy eth' word:mean")
  assert.equal(kinds('"sell all'), 'quoted:"sell all')
})

test('a contraction is no quotation', () => {
  assert.equal(
    lex("don't sell my friend's eth")
      .lexemes.map(({ word }) => word)
      .join(' '),
    "do not sell my friend's eth",
  )
  assert.equal(
    lex('whats eth')
      .lexemes.map(({ word }) => word)
      .join(' '),
    'what is eth',
  )
})

test('addresses keep their spelling, and one of another length is unclear', () => {
  assert.equal(
    kinds('0x6982508145454Ce325dDbE47a25d4ec3d2311933'),
    'address:0x6982508145454Ce325dDbE47a25d4ec3d2311933',
  )
  assert.equal(kinds('0x69825081'), 'unclear:0x69825081')
  assert.equal(
    kinds('EKpQGSJtjMFqKZ9KQanSqYXRcF8fBopzLHYxdM65zcjm'),
    'address:EKpQGSJtjMFqKZ9KQanSqYXRcF8fBopzLHYxdM65zcjm',
  )
  assert.equal(isSolanaAddress('1'.repeat(32)), true)
  assert.equal(isSolanaAddress('z'.repeat(44)), false)
  assert.equal(kinds('0198f3aa-1111-7000-8000-0123456789ab'), 'uuid:0198f3aa-1111-7000-8000-0123456789ab')
})

test('invisible characters and other spellings of a character change nothing', () => {
  assert.equal(normalise('se\u200bll \uff45\uff54\uff48 \u2018x\u2019'), "sell eth 'x'")
  assert.equal(kinds('b\u00aduy \u202eeth'), 'word:buy word:eth')
})

test('capitals mark a symbol only where not everything is in capitals', () => {
  const marked = (text: string) =>
    lex(text)
      .lexemes.filter(({ isSymbol }) => isSymbol)
      .map(({ text: own }) => own)
  assert.deepEqual(marked('buy NEAR and $one'), ['NEAR', 'one'])
  assert.deepEqual(marked('BUY NEAR'), [])
})

test('any text is read to an end, and long ones are cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
      const { lexemes } = lex(text)
      assert.ok(lexemes.length <= lexemesMax)
      assert.ok(lexemes.every(({ text: own, kind }) => own.length > 0 || kind === 'quoted'))
    }),
  )
  assert.equal(lex('a '.repeat(lexemesMax + 1)).isCut, true)
  assert.equal(lex('x'.repeat(textLengthMax + 1)).isCut, true)
  assert.equal(lex('short').isCut, false)
})
