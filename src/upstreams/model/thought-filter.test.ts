import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThoughtFilter } from './thought-filter.ts'

const shown = (text: string, size: number): string => {
  const filter = createThoughtFilter()
  const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
    filter.push(text.slice(at * size, (at + 1) * size)),
  )
  return pieces.join('') + filter.end()
}

test('thoughts before a text are left out, however it is cut, and nothing else is', () => {
  for (let size = 1; size < 20; size++)
    for (const [given, wanted] of [
      ['<think>I sell all. </thin</think>Hold.', 'Hold.'],
      ['\n<think></think>Hold.', 'Hold.'],
      ['<think>no end', ''],
      ['A <think>b</think> c', 'A <think>b</think> c'],
      ['<thin', '<thin'],
      [' <b>', ' <b>'],
      ['', ''],
    ] as const)
      assert.equal(shown(given, size), wanted, `${given} by ${size}`)
})
