/** The tasks extension over the product: two instances behind one address, and the official client of the extension. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client'
import { tasksExtension } from '#edges/mcp/protocol-task.ts'
import { taskOperations } from '../conformance/mcp/task-fixtures.ts'
import { createHttpApp } from '../edges/http-app.ts'
import { testDatabase } from '../harness/cluster.ts'
import { openTestCore } from '../harness/core.ts'
import { eventually } from '../harness/gateway.ts'
import { clientsOf, modernClient, type ToolReply } from './clients.ts'
import { openPair, type Pair } from './instances.ts'
import { RpcFailure, type TaskClient, taskClient } from './task-client.ts'

let pair: Pair
let owner: { authorization: string }

before(async () => {
  pair = await openPair()
  owner = await pair.user()
})
after(() => pair?.[Symbol.asyncDispose]())

const earn = (amount: string, more: object = {}) => ({
  name: 'earn_enable',
  arguments: { amount_usdc: amount, ...more },
})
const refusalOf = async (run: Promise<unknown>): Promise<[number, unknown]> => {
  const error = await run.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  assert.ok(error instanceof RpcFailure, String(error))
  return [error.error.code, error.error.data?.code]
}
const ended = ({ send }: TaskClient, taskId: string) =>
  eventually(async () => {
    const task = await send('tasks/get', { taskId })
    return task.status === 'working' ? undefined : task
  }, 'the end of the task')

test('the official client of the extension calls a money tool, follows its task and gets its result', async () => {
  const session = taskClient(pair.url, owner).openSession()
  const execution = await session.callTool('earn_enable', { amount_usdc: '21', idempotency_key: 'followed' })
  const { outcome } = await execution.settle()
  const result = resultFromTaskOutcome(outcome as never) as ToolReply
  assert.deepEqual(
    [result.isError, result.structuredContent?.status, result.structuredContent?.outcome],
    [false, 'completed', 'executed'],
  )
  await session.close()
})

test('a call answers with a handle at once, and its repetition with the same task or its end', async () => {
  const client = taskClient(pair.url, owner)
  const created = await client.send('tools/call', earn('22', { idempotency_key: 'handle' }))
  assert.deepEqual([created.resultType, created.status, created.ttlMs], ['task', 'working', null])
  assert.equal(created._meta?.['portico/idempotency_key'], 'handle')
  assert.equal('structuredContent' in created, false)
  const task = await ended(client, created.taskId)
  assert.deepEqual([task.resultType, task.status], ['complete', 'completed'])
  assert.equal(task.result?.structuredContent?.task_id, created.taskId)
  const again = await client.send('tools/call', earn('22', { idempotency_key: 'handle' }))
  assert.deepEqual([again.resultType, again.structuredContent?.task_id], ['complete', created.taskId])
  const fresh = await client.send('tools/call', earn('22'))
  assert.match(String(fresh.content[0]?.text), /possible_duplicate/)
  // A task that has ended stays as it is.
  const ack = await client.send('tasks/cancel', { taskId: created.taskId })
  assert.deepEqual([ack.resultType, ack.status], ['complete', undefined])
  assert.equal((await client.send('tasks/get', { taskId: created.taskId })).status, 'completed')
})

test('a client that does not declare the extension gets the plain answer, and none of its methods', async () => {
  const clients = await clientsOf(pair.url, owner)
  for (const client of clients) {
    const reply = await client.call('earn_enable', {
      amount_usdc: '23',
      idempotency_key: client.name,
      confirm_repeat: true,
    })
    assert.equal(typeof reply.structuredContent?.task_id, 'string', JSON.stringify(reply))
    await client[Symbol.asyncDispose]()
  }
  const modern = await modernClient(pair.url, owner)
  assert.ok(tasksExtension in ((modern.capabilities() as { extensions?: object }).extensions ?? {}))
  await modern[Symbol.asyncDispose]()
})

test('an address that only reads cancels no task, and one of a section cancels it as its tool does', async () => {
  const { taskId } = await taskClient(pair.url, owner).send(
    'tools/call',
    earn('31', { idempotency_key: 'read-only' }),
  )
  const reading = taskClient(pair.url, { ...owner, query: '?mode=read' })
  assert.deepEqual(await refusalOf(reading.send('tasks/cancel', { taskId })), [-32_602, 'validation'])
  assert.equal((await reading.send('tasks/get', { taskId })).taskId, taskId)
  const section = taskClient(pair.url, { ...owner, query: '?sections=earn' })
  assert.equal((await section.send('tasks/cancel', { taskId })).resultType, 'complete')
})

test('a task is bound to its user: for others it does not exist', async () => {
  const [mine, other] = [taskClient(pair.url, owner), taskClient(pair.url, await pair.user())]
  const { taskId } = await mine.send('tools/call', earn('24'))
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    for (const [client, id] of [
      [other, taskId],
      [mine, 'none'],
      [mine, 'x'.repeat(65)],
    ] as const)
      assert.equal((await refusalOf(client.send(method, { taskId: id, inputResponses: {} })))[0], -32_602)
  assert.equal((await ended(mine, taskId)).status, 'completed')
})

test('reading a task counts against the limit of reads, and cancelling one against that of exits', async () => {
  await using parts = new AsyncDisposableStack()
  const core = parts.use(await openTestCore({ databaseUrl: parts.use(await testDatabase()).url }))
  const operations = taskOperations(core)
  const runtime = core.taskEngine.createRuntime(operations, [])
  runtime.start()
  const userId = '0198a000-0000-7000-8000-000000000002'
  const perMinute = (points: number) => ({ points, windowSeconds: 60 })
  const app = await createHttpApp({
    operations,
    execute: runtime.invoke,
    limits: {
      auth: perMinute(0),
      read: perMinute(2),
      money: perMinute(0),
      exit: perMinute(1),
      stream: perMinute(0),
      image: perMinute(0),
      refused: perMinute(0),
    },
    authenticate: async () => ({
      userId,
      agentId: 'agt_1',
      scheme: 'keypair',
      scopes: new Set(['read', 'trade'] as const),
    }),
  })
  parts.defer(() => app.close())
  const client = taskClient(app.url, owner)
  // The handle is part of the call and takes no point of the reads.
  const { taskId } = await client.send('tools/call', { name: 'slow_compute', arguments: { seconds: 60 } })
  for (let count = 0; count < 2; count++)
    assert.equal((await client.send('tasks/get', { taskId })).status, 'working')
  assert.deepEqual(await refusalOf(client.send('tasks/get', { taskId })), [-32_000, 'rate_limited'])
  await client.send('tasks/cancel', { taskId })
  assert.deepEqual(await refusalOf(client.send('tasks/cancel', { taskId })), [-32_000, 'rate_limited'])
  // A cancel says what is wanted; the task ends by itself.
  await eventually(
    async () => (await core.taskEngine.tasks.find(userId, taskId)).status === 'cancelled' || undefined,
    'the task is cancelled',
  )
})
