import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isQuestion } from './chat-question.ts'

const id = '01a22d72-7a06-7203-a7ec-c72f2769ec59'

test('words that begin with the name of an operation are a question', () => {
  for (const words of [
    'chat cancel my eth order',
    'chat files please',
    'chat threads about eth',
    'chat stream what i hold',
    'chat what do i hold',
  ])
    assert.equal(isQuestion(words.split(' ')), true, words)
  assert.equal(isQuestion(['chat', 'cancel my order']), true)
  assert.equal(
    isQuestion(['--base-url', 'http://127.0.0.1:8080', 'chat', '--thread', id, 'cancel', 'it']),
    true,
  )
})

test('an operation with its ids is no question', () => {
  for (const words of [
    `chat cancel ${id}`,
    `chat thread ${id} --json`,
    `chat decide ${id} ${id} --status accepted`,
    'chat threads',
    'chat threads --limit 5',
    'chat decide this that --status accepted',
    'chat cancel it --json {}',
    'chat files mine --json @input.json',
    'chat --help',
    'chat',
    'tasks list',
    'complete -- chat cancel my order',
  ])
    assert.equal(isQuestion(words.split(' ')), false, words)
})
