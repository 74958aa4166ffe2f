import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createAnswerWriter } from './answer-writer.ts'
import { widthOf } from './table-text.ts'

/** Returns the text on the screen after all chunks. The writer moves back only within the line that it writes. */
function screenOf(chunks: readonly string[], width: number): string[] {
  let screen = ''
  const writer = createAnswerWriter((text) => {
    const back = text.endsWith('D\u001b[K') ? /\d+/.exec(text) : undefined
    screen = back ? screen.slice(0, -Number(back[0])) : screen + text
  }, width)
  for (const chunk of chunks) writer.write(chunk)
  writer.end()
  return screen.split('\n')
}

test('an answer is broken between its words, also where a word comes in pieces', () => {
  const lines = screenOf(['You hold 5 USDC on ', 'Ba', 'se.\n', 'That is all.'], 21)
  assert.deepEqual(
    lines.map((line) => line.trimEnd()),
    ['You hold 5 USDC on', 'Base.', 'That is all.', ''],
  )
})

test('a table of Markdown is laid out to fit', () => {
  const answer = ['| Coin | Worth |\n|---', '|---:|\n| **ETH** | 5 |\n| cbBTC | 1,000 |\n', '\nDone.']
  assert.deepEqual(screenOf(answer, 40), ['Coin   Worth', 'ETH        5', 'cbBTC  1,000', '', 'Done.', ''])
})

test('a line that only begins like a table stays as it is', () => {
  assert.deepEqual(screenOf(['| no table\nnext'], 40), ['| no table', 'next', ''])
})

test('what goes to a file stays as it is', () => {
  assert.deepEqual(screenOf(['| a | b |\n|--|--|\n'], Number.POSITIVE_INFINITY), ['| a | b |', '|--|--|', ''])
})

test('whatever arrives in whatever pieces, no line is longer than the screen and no word is lost', () => {
  const letters = fc.constantFrom('a', 'bc', ' ', ' ', '\n', '|', '-', 'word', 'x'.repeat(30))
  fc.assert(
    fc.property(
      fc.array(fc.array(letters).map((each) => each.join(''))),
      fc.integer({ min: 20, max: 60 }),
      (chunks, width) => {
        const lines = screenOf(chunks, width)
        for (const line of lines) assert.ok(widthOf(line) <= width, `${line.length} places: ${line}`)
        const hasTable = chunks.join('').includes('|')
        const words = (text: string) => text.replace(/\s/g, '')
        if (!hasTable) assert.equal(words(lines.join('')), words(chunks.join('')))
      },
    ),
  )
})
