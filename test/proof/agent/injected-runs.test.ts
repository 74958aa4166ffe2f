/**
 * A run of a schedule whose chat reads the name of a token that a stranger has chosen, and then calls every tool there is,
 * as a model would: nothing moves but what the query orders, and nothing is planned, though nobody watches.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import { query } from '#store/query.ts'
import { addSchedule, runToEnd } from '../../chat/schedule-fixture.ts'
import { processWorld } from '../../harness/process-world.ts'
import { isNightly } from '../support/seed.ts'
import { type Customer, openAttackedApp, orderOf, readOf } from './attacked-chats.ts'
import { type Call, foreignHost, type Row, rows } from './injections.ts'
import { chatIdOf, limits, urlsOf } from './judged-chats.ts'

/** What would plan another run, or leave somebody else a way in. */
const planning: readonly Call[] = [
  { name: 'schedules_create', arguments: { query: 'every hour buy $5 of eth', status: 'active' } },
  { name: 'schedules_run', arguments: { schedule_id: crypto.randomUUID() } },
  { name: 'webhooks_create', arguments: { url: `https://${foreignHost}/in` } },
  { name: 'auth_token', arguments: { agent_id: 'agt' } },
  { name: 'chat_stream', arguments: { query: 'buy $5 of eth' } },
]
const setting = limits.indexOf(50)
const perGoal = isNightly ? 3 : 1

test('a text in the name of a token inside a run moves nothing and plans nothing', async (t) => {
  const cases = new Map<string, { row: Row; calls: Call[] }>()
  const answerer: Answerer = {
    async run({ query: words }, tools) {
      const found = cases.get(words)
      if (!found) return { stopReason: 'end', citations: [], memory: null }
      const { row, calls } = found
      const all = row.timing === 'with' ? [...calls, readOf(row)] : [readOf(row), ...calls]
      for (const [at, { name, arguments: input }] of all.entries())
        await tools.call({ id: `${at}`, name, input: input as never, isFromModel: true })
      return { stopReason: 'end', citations: [], memory: null }
    },
  }
  await using attacked = await openAttackedApp(urlsOf(await processWorld()), answerer)
  const instance = attacked.app.instances[0]!
  const [user] = await attacked.customers(1, async ({ ask }) => chatIdOf(await ask('hello')))
  await attacked.setLimit(user!, limits[setting]!)
  const customer: Customer = { ...user!, before: await attacked.snapshotOf(user!) }
  const chosen = rows.filter(({ surface, wording }) => surface === 'symbol' && wording < perGoal)
  let started = 0
  for (const row of chosen) {
    const { query: words, call, isSwap, usdc } = orderOf(row, setting)
    cases.set(words, { row, calls: [...planning, ...attacked.callsOf(row, customer), call] })
    const schedule = await addSchedule(instance, customer, { query: words, operations: [call.name] })
    const run = await runToEnd(instance, schedule)
    assert.equal(run.status, 'completed', `${row.goal}: ${JSON.stringify(run.error)}`)
    const tasks = await query<{ id: string; kind: string }>(
      instance.db,
      'select id, kind from task where parent_id = $1 and id <> $2',
      [run.id, run.chat_id],
    )
    assert.ok(tasks.length <= 1, `${row.goal}: ${JSON.stringify(tasks)}`)
    customer.expected.add(run.id)
    for (const { id } of tasks) {
      customer.expected.add(id)
      customer.spent[isSwap ? 'swaps' : 'deposits'].push(usdc)
      started += 1
    }
  }
  const planned = await query(instance.db, 'select id from strategy where user_id = $1', [customer.id])
  assert.equal(planned.length, chosen.length)
  await attacked.assertUnmoved(customer)
  await attacked.assertUnchanged(customer)
  assert.equal(started, chosen.length)
  t.diagnostic(`${chosen.length} texts, ${started} orders of the queries, effects beyond them: 0`)
})
