/** How long concurrent cancels take on few connections. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { testFunding } from '../harness/conservation.ts'
import { type Agent, freshGateway, newAgent } from '../harness/gateway.ts'
import { cancelManyTasks } from './unknown-tasks.ts'

const connections = 4
const cancelsMsMax = 2_000

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

  test('many concurrent cancels are answered within two seconds', async (t) => {
    const { readsMs, cancelsMs } = await cancelManyTasks({ url: gateway.url, db, agent })
    t.diagnostic(`on ${connections} connections: reads ${readsMs} ms, cancels ${cancelsMs} ms`)
    assert.ok(cancelsMs < cancelsMsMax, `${cancelsMs} ms, reads ${readsMs} ms`)
  })
})
