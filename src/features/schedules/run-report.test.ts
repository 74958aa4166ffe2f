import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutText } from './cut-text.ts'
import { type Reported, reportText, summaryOf } from './run-report.ts'

const run: Reported = {
  title: 'x',
  number: 1,
  version: 1,
  slot: null,
  query: 'q',
  answer: null,
  startedAt: null,
  endedAt: new Date('2026-12-01T08:00:00Z'),
  creditsUsed: 1,
  started: [],
  end: {
    status: 'completed',
    outcome: 'executed',
    skipReason: null,
    error: null,
    decision: null,
  },
}

test('no line break of a text leads out of its quotation', () => {
  for (const lineBreak of ['\n', '\r', '\r\n', '\v', '\f', '\u0085', '\u2028', '\u2029']) {
    const text = reportText({
      ...run,
      title: `t${lineBreak}u`,
      query: `q${lineBreak}# Forged`,
      answer: `a${lineBreak}b`,
    })
    assert.ok(text.startsWith('# t u\n'), JSON.stringify(lineBreak))
    assert.ok(text.includes('> q\n> # Forged\n'), JSON.stringify(lineBreak))
    assert.ok(text.includes('> a\n> b\n'), JSON.stringify(lineBreak))
  }
})

test('a text is cut between characters', () => {
  const text = `${'a'.repeat(78)}😀${'b'.repeat(9)}`
  assert.equal(cutText(text, 80), `${'a'.repeat(78)}😀…`)
  assert.equal(cutText(text, 79), `${'a'.repeat(78)}…`)
  assert.equal(cutText('😀'.repeat(80), 80), '😀'.repeat(80))
  assert.ok(summaryOf({ ...run, answer: '😀'.repeat(300) }).isWellFormed())
})
