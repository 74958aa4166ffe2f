import assert from 'node:assert/strict'
import { test } from 'node:test'
import { splitSentence } from './split-sentence.ts'

const now = new Date('2026-12-01T12:00:00Z')
const split = (text: string) => splitSentence(text, { now, secondsMin: 300 })
const partsOf = (text: string) => {
  const sentence = split(text)
  assert.ok('calendar' in sentence, JSON.stringify(sentence))
  return [sentence.query, sentence.calendar.type] as const
}

test('the times at the beginning or the end of a sentence are cut out of it', () => {
  for (const [text, query, type] of [
    ['every Monday at 9am, show me how eth did', 'show me how eth did', 'calendar'],
    ['show me how eth did every Monday at 09:00 New York time', 'show me how eth did', 'calendar'],
    ['every 15 minutes from 9 to 17 on weekdays: what do i hold', 'what do i hold', 'interval'],
    ['swap 20 usdc to eth on base tomorrow at 7am', 'swap 20 usdc to eth on base', 'once'],
    ['every hour check the price of btc', 'check the price of btc', 'interval'],
  ] as const)
    assert.deepEqual(partsOf(text), [query, type], text)
})

test('a sentence without times, or with times alone, is not understood', () => {
  for (const [text, field, unread] of [
    ['show me how eth did', 'schedule', ['show me how eth did']],
    ['eth', 'schedule', ['eth']],
    ['every Monday at 9am', 'query', []],
  ] as const) {
    const sentence = split(text)
    assert.ok('refusal' in sentence, text)
    const { type, ctx, ...refusal } = sentence.refusal
    assert.deepEqual([type, refusal.field, ctx.unread], ['not_understood', field, unread])
    assert.equal(ctx.examples.length, 3)
  }
})

test('times that are understood and refused say why', () => {
  const sentence = split('every minute show me the price of btc')
  assert.ok('refusal' in sentence)
  assert.deepEqual([sentence.refusal.type, sentence.refusal.ctx.minimum], ['least_interval', 300])
})

test('a word where a zone may stand makes no schedule, and beside times it is refused as a zone', () => {
  for (const text of ['what happened in crypto', 'buy btc/usdc', 'show me my fees in total today']) {
    const sentence = split(text)
    assert.ok('refusal' in sentence, text)
    assert.equal(sentence.refusal.type, 'not_understood', text)
  }
  assert.deepEqual(partsOf('show me my fees in total daily'), ['show me my fees in total', 'calendar'])
  const wrong = split('show me what i hold every Monday at 9am in Berlim')
  assert.ok('refusal' in wrong)
  assert.equal(wrong.refusal.type, 'unknown_zone')
  assert.deepEqual(wrong.refusal.ctx.suggestions, ['Europe/Berlin'])
})

test('times that are refused as a whole are not read in part', () => {
  const sentence = split('daily at 9 until 2026-11-27 show me what i hold')
  assert.ok('refusal' in sentence)
  assert.equal(sentence.refusal.type, 'never_fires')
})

test('a long text is read in bounded time', () => {
  let words = 0
  const text = Array.from({ length: 1_000 }, () => `a${words++}`)
    .join(' ')
    .slice(0, 2_000)
  assert.ok('refusal' in split(text))
})
