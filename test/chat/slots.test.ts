import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { type ChatApp, openChatApp } from './chat-app.ts'
import { isEnd } from './read-chat.ts'
import { addSchedule, startRun } from './schedule-fixture.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

describe('the places of answers', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ env: { RUNNER_SLOTS: '2' }, overrides: { addOperations: testOperations } })
  })
  after(async () => app?.[Symbol.asyncDispose]())

  test('answers take no place of other tasks, and more of them run than there are places for tasks', async () => {
    const user = await app.user()
    const open = Array.from({ length: 8 }, () => user.ask(script({ say: 'a' }, { hang: true })))
    const running = await eventually(async () => {
      const { items } = await user.get<{ items: { task_id: string; status: string }[] }>(
        '/v1/tasks?kind=chat',
      )
      return items.filter(({ status }) => status === 'running').length === 8 ? items : undefined
    }, 'all answers run')
    const { body } = await http<{ status: string; task_id: string }>(`${app.url}/test/move?wait=true`, {
      method: 'POST',
      body: { units: 1 },
      headers: bearer(user),
    })
    assert.equal(body.status, 'completed')
    const cancel = (id: unknown) =>
      http(`${app.url}/v1/chat/${id}/cancel`, { method: 'POST', headers: bearer(user) })
    assert.equal((await cancel(body.task_id)).status, 404, 'a task that is no answer')
    for (const { task_id } of running) await cancel(task_id)
    for (const events of await Promise.all(open))
      assert.equal((events.at(-1)!.data as { status: string }).status, 'cancelled')
  })

  test('users with many answers leave a place for one who asks for the first time', async () => {
    await using single = await openChatApp({ count: 1, env: { STREAMS_PER_USER: '100' } })
    const [one, two, third] = [await single.user(), await single.user(), await single.user()]
    const open = [one, two].flatMap((user) =>
      Array.from({ length: 36 }, () => user.ask(script({ say: 'a' }, { hang: true })).catch(() => undefined)),
    )
    const running = async () => {
      const { rows } = await single.db.query<{ count: number }>(
        `select count(*)::integer as count from task where kind = 'chat' and status = 'running' group by user_id order by 1`,
      )
      return rows.map(({ count }) => count)
    }
    await eventually(async () => {
      const { rows } = await single.db.query(`select 1 from task where kind = 'chat'`)
      return rows.length === 72 || undefined
    }, 'all questions are accepted')
    const counts = await running()
    assert.ok(counts.length === 2 && counts[0]! + counts[1]! < 64, counts.join())
    const events = await third.ask(script({ say: 'at once' }))
    assert.equal((events.at(-1)!.data as { status: string }).status, 'completed')
    await single.db.query(`update task set cancel_requested = true where kind = 'chat'`)
    assert.equal(open.length, 72)
  })

  test('runs of schedules take no place of the chats of their user', async () => {
    await using single = await openChatApp({ count: 1 })
    const user = await single.user()
    const instance = single.instances[0]!
    for (let n = 0; n < 36; n++)
      await startRun(instance, await addSchedule(instance, user, { query: script({ hang: true }) }))
    const running = async () => {
      const text = `select 1 from task where kind = 'chat' and status = 'running'`
      return (await single.db.query(text)).rows.length
    }
    await eventually(async () => (await running()) >= 30 || undefined, 'the chats of the runs', 60_000)
    const events = await user.ask(script({ say: 'at once' }))
    assert.equal((events.at(-1)!.data as { status: string }).status, 'completed')
    await single.db.query(`update task set cancel_requested = true where status = 'running'`)
  })

  test('an instance that stops leaves its answers to another one at once', async () => {
    const user = await app.user()
    const query = script({ call: 'credits_packs' }, { spell: 'x'.repeat(200), everyMs: 25 })
    const [leaving, staying] = app.instances
    const got = await user.ask(query, {
      key: 'moved',
      url: leaving!.url,
      until: (event, all) => all.length === 10 || isEnd(event),
    })
    const order: string[] = []
    const stopped = leaving![Symbol.asyncDispose]().then(() => order.push('stopped'))
    got.push(...(await user.ask(query, { key: 'moved', url: staying!.url, lastId: got.at(-1)!.id! })))
    order.push('answered')
    await stopped
    assert.deepEqual(order, ['stopped', 'answered'])
    assert.deepEqual(
      got.map(({ id }) => id?.split(':')[1]),
      got.map((_, at) => String(at + 1)),
    )
    assert.equal((got.at(-2)!.data as { text: string }).text, `credits_packs ok. ${'x'.repeat(200)}`)
    assert.equal(got.filter(({ event }) => event === 'tool_call').length, 1)
  })
})
