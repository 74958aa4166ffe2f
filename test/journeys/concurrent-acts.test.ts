/** An act uses one connection and never waits for a second one, with any number of acts and connections. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { testFunding } from '../harness/conservation.ts'
import { type Agent, bearer, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { operationsOf } from '../proof/support/contracts.ts'
import { minimalRequest, pathOf } from '../proof/support/minimal-request.ts'

const connections = 4
const atOnce = 12
const cancelsAtOnce = 120
const cancelsMs = 2_000

describe('concurrent acts on few connections', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let db: pg.Pool
  let agent: Agent

  before(async () => {
    gateway = await freshGateway({
      FAUCET_URL: 'off',
      DATABASE_POOL: String(connections),
      RATE_AUTH: '0',
      RATE_MONEY: '0',
      RATE_EXIT: '0',
      RATE_REFUSED: '0',
    })
    db = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    agent = await newAgent(gateway.url)
    testFunding.excludeUser(agent.agentId, 'its tasks of an unknown kind never end')
  })
  after(async () => {
    await db?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  /** Of a kind that no instance has, so that they never run. */
  async function newTasks(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => uuidv7(new Date(), systemRandom))
    await db.query(
      `with made as (
         insert into task (id, shard, user_id, kind, kind_version, status, state, step, data, input, deadline, created_at, updated_at)
         select id, 0, (select id from app_user where agent_id = $2), 'unknown', 1, 'pending', 'accepted', 'first', '{}', '{}',
           now() + interval '1 hour', now(), now() from unnest($1::uuid[]) as t (id) returning id, user_id)
       insert into task_queue (task_id, user_id, kind, priority, run_at) select id, user_id, 'unknown@1', 1, now() from made`,
      [ids, agent.agentId],
    )
    return ids
  }
  const cancel = (taskId: string, key?: string) =>
    http(`${gateway.url}/v1/tasks/${taskId}/cancel`, {
      method: 'POST',
      headers: { ...bearer(agent), ...(key !== undefined && { 'idempotency-key': key }) },
    })

  test('many concurrent cancels are answered within two seconds, and each of them is accepted', async (t) => {
    const ids = await newTasks(cancelsAtOnce)
    const readMs = performance.now()
    await Promise.all(ids.map((id) => http(`${gateway.url}/v1/tasks/${id}`, { headers: bearer(agent) })))
    const startedMs = performance.now()
    const answers = await Promise.all(ids.map((id, n) => cancel(id, n % 2 ? `cancel-${n}` : undefined)))
    const tookMs = Math.round(performance.now() - startedMs)
    const readsMs = Math.round(startedMs - readMs)
    t.diagnostic(
      `${cancelsAtOnce} at once on ${connections} connections: reads ${readsMs} ms, cancels ${tookMs} ms`,
    )
    assert.deepEqual(
      answers.filter(({ status }) => status !== 200).map(({ status, body }) => [status, body]),
      [],
    )
    const { rows } = await db.query(
      'select count(*)::integer as n from task where id = any($1) and cancel_requested',
      [ids],
    )
    assert.equal(rows[0].n, cancelsAtOnce)
    // On a busy machine reads of as many tasks are the measure of its speed.
    assert.ok(tookMs < Math.max(cancelsMs, 10 * readsMs), `${tookMs} ms, reads ${readsMs} ms`)
  })

  test('agents register, verify and get their tokens concurrently', async () => {
    const agents = await Promise.all(Array.from({ length: atOnce }, () => newAgent(gateway.url)))
    assert.equal(new Set(agents.map(({ agentId }) => agentId)).size, atOnce)
  })

  test('every act of the interface is answered at once, with a key and without one', async () => {
    const inputs: Record<string, object> = {
      policy_tighten: { per_transaction_usd: '100' },
      policy_kill: { on: true },
    }
    const acts = (await operationsOf(gateway.url)).filter(
      ({ entry }) => entry.kind === 'act' && entry.access !== 'public',
    )
    assert.ok(acts.some(({ name }) => name === 'tasks_cancel'))
    // The kill switch is last, because it stops later operations.
    for (const { name, entry } of acts.toSorted((a, b) =>
      a.name === 'policy_kill' ? 1 : b.name === 'policy_kill' ? -1 : 0,
    )) {
      const least = minimalRequest(entry)
      const [taskId] = await newTasks(1)
      const path = pathOf(entry, { ...least, params: { ...least.params, task_id: taskId } })
      const answers = await Promise.all(
        Array.from({ length: atOnce }, (_, n) =>
          http(`${gateway.url}${path}`, {
            method: entry.method,
            headers: { ...bearer(agent), ...(n % 2 && { 'idempotency-key': `${name}-${n}` }) },
            body: entry.body && { ...least.body, ...inputs[name] },
          }),
        ),
      )
      assert.deepEqual(
        answers.filter(({ status }) => status >= 500).map(({ body }) => body),
        [],
        name,
      )
    }
  })
})
