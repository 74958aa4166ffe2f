import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commands } from './commands.ts'
import { inFlags } from './flag-language.ts'

const deposit = commands.find(({ name }) => name === 'earn_deposit')
const tasks = commands.find(({ name }) => name === 'tasks_get')

test('operations, fields and requests of the interface become commands and flags', () => {
  assert.ok(deposit && tasks)
  assert.equal(
    inFlags('poll `tasks_get`, or send `wait=true`', deposit),
    'poll `portico tasks get`, or send `--wait`',
  )
  assert.equal(inFlags('add `amount_usdc`', deposit), 'add `--amount-usdc`')
  assert.equal(inFlags('`task_id` of the task', tasks), '`<task_id>` of the task')
  assert.equal(inFlags('call POST /v1/perp/setup with {}'), 'call portico perp setup')
  assert.equal(inFlags('GET /v1/tasks/0198c5f6 says more'), 'portico tasks get says more')
})

test('a field that another command takes is a flag where the text names that command', () => {
  assert.equal(
    inFlags('Next: `predmkt_order` with `quote_id`', deposit),
    'Next: `portico predmkt order` with `--quote-id`',
  )
})

test('fields of answers, paths of nothing and other words stay', () => {
  for (const text of ['`status: completed`', 'GET /v1/nothing', '`usd`', 'GET / and go'])
    assert.equal(inFlags(text, deposit), text)
})

test('no help of any command speaks of operations, requests or fields of its own input', () => {
  for (const command of commands) {
    const texts = [command.description, ...command.fields.map(({ description }) => description)]
    for (const text of texts.map((each) => inFlags(each, command))) {
      assert.doesNotMatch(text, /\bwait=true\b|(?:GET|POST|PUT|PATCH|DELETE) \/v1/, command.name)
      for (const [, name = ''] of text.matchAll(/`([a-z][a-z0-9_]*)`/g)) {
        assert.ok(!commands.some((each) => each.name === name), `${command.name}: ${name}`)
        assert.ok(!command.fields.some((field) => field.name === name), `${command.name}: ${name}`)
      }
    }
  }
})
