/** One of two instances is stopped for longer than its lease, in the middle of a task, and goes on later. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { bearer, eventually, type Gateway } from '../harness/gateway.ts'
import { type SentEvent, sentEvents } from '../harness/stream.ts'
import { base, type World, worldOf } from '../journeys/world.ts'
import { type CrashApp, createCrashApp, deposit, newCustomer } from './crash-app.ts'

/** The stream of a client that stays connected. */
function openStream(url: string, headers: Record<string, string>) {
  const stop = new AbortController()
  const received: SentEvent[] = []
  const ended = (async () => {
    for await (const sent of sentEvents(`${url}/v1/notifications/stream?after=0`, headers, stop.signal))
      received.push(sent)
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error
  })
  return {
    received,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
    },
  }
}

describe('one of two instances is stopped and goes on', () => {
  let app: CrashApp
  let stopped: Gateway
  let other: Gateway
  let world: World
  before(async () => {
    app = await createCrashApp()
    world = await worldOf(app.control)
    stopped = await app.gateway()
    other = await app.gateway()
  })
  after(async () => {
    stopped?.child.kill('SIGCONT')
    await stopped?.stop()
    await other?.stop()
    await app?.[Symbol.asyncDispose]()
  })

  const instanceIds = async () =>
    (await app.admin.query<{ id: string }>('select id from instance order by id')).rows.map(({ id }) => id)
  const ownerOf = async (taskId: string) =>
    (
      await app.admin.query<{ owner: string | null }>('select owner from task_queue where task_id = $1', [
        taskId,
      ])
    ).rows[0]?.owner

  test('the other ends its tasks and notifies; it does nothing twice, and its streams catch up', async () => {
    // The older one is the one that stops. A gateway is ready before it runs tasks.
    const [stoppedId, ...others] = await eventually(async () => {
      const ids = await instanceIds()
      return ids.length === 2 ? ids : undefined
    }, 'both have a lease')
    const customer = await newCustomer(other.url)
    const headers = bearer(customer)
    await using streamThere = openStream(stopped.url, headers)
    await using streamHere = openStream(other.url, headers)
    const isCompleted = (taskId: string) => (sent: SentEvent) =>
      sent.event === 'task.completed' && (sent.data as { task_id: string }).task_id === taskId

    // The reply to the stored bytes is on its way while the instance is stopped.
    await world.fault(`evm:${base}`, { latency_ms: 2_000, methods: ['eth_sendRawTransaction'] })
    const accepted = await deposit(stopped.url, customer, 'interrupted', false)
    const { task_id: interrupted } = accepted.body
    await eventually(async () => {
      const { rows } = await app.admin.query('select 1 from effect where task_id = $1', [interrupted])
      return rows.length > 0 && (await ownerOf(interrupted)) === stoppedId ? true : undefined
    }, 'the instance runs the task and has stored its effect')
    stopped.child.kill('SIGSTOP')
    await world.heal()

    const waited = await deposit(other.url, customer, 'interrupted', true)
    assert.deepEqual([waited.body.task_id, waited.body.outcome], [interrupted, 'executed'])
    assert.deepEqual(await instanceIds(), others, 'the stopped instance has lost its lease')
    const meanwhile = await deposit(other.url, customer, 'meanwhile', true)
    assert.equal(meanwhile.body.outcome, 'executed', JSON.stringify(meanwhile.body))
    const both = [interrupted, meanwhile.body.task_id]
    await eventually(
      async () => (both.every((id) => streamHere.received.some(isCompleted(id))) ? true : undefined),
      'the stream of the other instance has the ends of both tasks',
    )

    stopped.child.kill('SIGCONT')
    await eventually(
      async () => ((await instanceIds()).length === 2 ? true : undefined),
      'the stopped instance has a lease again',
    )
    const idsOf = ({ received }: { received: SentEvent[] }) => received.map(({ id }) => id)
    await eventually(
      async () => (both.every((id) => streamThere.received.some(isCompleted(id))) ? true : undefined),
      'its stream catches up',
    )
    assert.deepEqual(idsOf(streamThere), idsOf(streamHere), 'each event once, without a gap')
    const again = await deposit(stopped.url, customer, 'again', true)
    assert.equal(again.body.outcome, 'executed', 'it works again')
    const { deposits } = await app.vaultEffects(customer.address)
    assert.equal(deposits, 3, 'each task once')
    const { rows } = await app.admin.query<{ attempts: number }>(
      `select count(*)::integer as attempts from tx_attempt join effect on effect.id = effect_id where task_id = any($1)`,
      [both],
    )
    assert.equal(rows[0]!.attempts, 2, 'nothing was signed twice')
  })
})
