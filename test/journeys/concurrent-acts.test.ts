/** An act uses one connection and never waits for a second one, with any number of acts and connections. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { testFunding } from '../harness/conservation.ts'
import { type Agent, bearer, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { operationsOf } from '../proof/support/contracts.ts'
import { minimalRequest, pathOf } from '../proof/support/minimal-request.ts'
import { cancelManyTasks, insertUnknownTasks } from './unknown-tasks.ts'

const connections = 4
const atOnce = 12

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

  const newTasks = (count: number) => insertUnknownTasks(db, agent, count)

  test('many concurrent cancels are answered, and each of them is accepted', async () => {
    await cancelManyTasks({ url: gateway.url, db, agent })
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
