import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statesOf } from './point-states.ts'

const every = { pattern: /./, passesOf: () => 2 }
const pairs = (...labels: string[]) => labels.flatMap((label) => [`${label}:before`, `${label}:after`])

test('the end of a statement and the beginning of the next one leave the same state', () => {
  assert.deepEqual(statesOf(pairs('db:task_accept', 'net:base'), every), [
    ['db:task_accept:before@1'],
    ['db:task_accept:after@1', 'net:base:before@1'],
    ['net:base:after@1'],
  ])
})

test('reading leaves the state as it is, and a function of the database may not', () => {
  assert.deepEqual(statesOf(pairs('db:begin', 'db:select task', 'db:select task_step'), every), [
    [
      'db:begin:before@1',
      'db:begin:after@1',
      'db:select task:before@1',
      'db:select task:after@1',
      'db:select task_step:before@1',
    ],
    ['db:select task_step:after@1'],
  ])
})

test('statements that run at the same time have a state between any two of their boundaries', () => {
  const passed = ['db:update a:before', 'db:update b:before', 'db:update a:after', 'db:update b:after']
  assert.deepEqual(
    statesOf(passed, every),
    passed.map((name) => [`${name}@1`]),
  )
})

test('only points count, up to their number of passes', () => {
  const passed = pairs('db:commit', 'net:base', 'db:commit', 'db:commit')
  assert.deepEqual(statesOf(passed, { pattern: /^db:/, passesOf: () => 2 }), [
    ['db:commit:before@1'],
    ['db:commit:after@1'],
    ['db:commit:before@2'],
    ['db:commit:after@2'],
  ])
})
