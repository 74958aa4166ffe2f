import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneOf, readArguments, type Usage, UsageError } from './arguments.ts'

const commands: Usage[] = [
  { name: 'tasks list', positionals: [], options: { state: 'string' } },
  { name: 'tasks end', positionals: ['<task>'], options: { evidence: 'string', force: 'boolean' } },
  { name: 'psql', positionals: ['[<statement>]'], options: {} },
]
const read = (...argv: string[]) => readArguments(argv, commands)

test('a command of two words is parsed, with arguments and options in any order', () => {
  const { usage, by, why, json, args } = read('tasks', 'end', '--why', 'seen', 'id-1', '--force', '--by=ann')
  assert.deepEqual([usage.name, by, why, json], ['tasks end', 'ann', 'seen', false])
  assert.deepEqual(
    [args.positional('task'), args.flag('force'), args.text('evidence')],
    ['id-1', true, undefined],
  )
})

test('an argument in brackets is optional, every other one is required', () => {
  assert.equal(read('psql').args.optional('statement'), undefined)
  assert.equal(read('psql', 'select 1').args.optional('statement'), 'select 1')
  assert.throws(() => read('tasks', 'end'), UsageError)
  assert.throws(() => read('tasks', 'end', 'a', 'b'), UsageError)
})

test('an unknown option is rejected by name', () => {
  assert.throws(() => read('task'), /no command task/)
  assert.throws(() => read('tasks', 'list', '--stat', 'x'), /--stat/)
  assert.throws(() => oneOf('--outcome', ['executed', 'not_executed'], 'maybe'), /executed, not_executed/)
})

test('blank text counts as absent', () => {
  assert.equal(read('tasks', 'list', '--why', '  ').why, undefined)
})
