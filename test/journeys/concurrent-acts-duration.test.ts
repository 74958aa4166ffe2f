/** How long concurrent cancels take on few connections. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { testFunding } from '../harness/conservation.ts'
import { type Agent, bearer, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { insertUnknownTasks } from './unknown-tasks.ts'

const connections = 4
const cancelsAtOnce = 120
const cancelsMs = 2_000

describe('concurrent cancels on few connections', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let db: pg.Pool
  let agent: Agent

  before(async () => {
    gateway = await freshGateway({
      FAUCET_URL: 'off',
      DATABASE_POOL: String(connections),
      RATE_AUTH: '0',
      RATE_EXIT: '0',
    })
    db = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    agent = await newAgent(gateway.url)
    testFunding.excludeUser(agent.agentId, 'its tasks of an unknown kind never end')
  })
  after(async () => {
    await db?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const cancel = (taskId: string, key?: string) =>
    http(`${gateway.url}/v1/tasks/${taskId}/cancel`, {
      method: 'POST',
      headers: { ...bearer(agent), ...(key !== undefined && { 'idempotency-key': key }) },
    })

  test('many concurrent cancels are answered within two seconds, and each of them is accepted', async (t) => {
    const ids = await insertUnknownTasks(db, agent, cancelsAtOnce)
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
})
