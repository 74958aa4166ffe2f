/** Accounts at the venue that an operator freezes and unfreezes. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, freshGateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person } from './users.ts'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let operator: Operator
let database: pg.Pool
const folder = dataFolder()

before(async () => {
  gateway = await freshGateway()
  operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
  database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
})
after(async () => {
  await database?.end()
  await gateway?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

type OrderAnswer = { status: string; code?: string; reason?: string; outcome?: string }
const perp = (person: Person, path: string, body: object) =>
  person.call<OrderAnswer>(`POST /v1/perp/${path}`, { body })
const open = (person: Person) =>
  perp(person, 'open?wait=true', { asset: 'BTC', side: 'long', notional_usd: '40', leverage: 2 })

type Events = { events: { type: string; data: { state: string } }[] }
const flaggedStates = async (person: Person): Promise<string[]> => {
  const { body } = await person.call<Events>('GET /v1/notifications?limit=100')
  return body.events.filter(({ type }) => type === 'security.flagged').map(({ data }) => data.state)
}

test('a frozen account opens nothing and closes; unfrozen it opens again, and events report both', async () => {
  const person = await createFundedPerson(gateway.url)
  await perp(person, 'setup?wait=true', {})
  const funded = await perp(person, 'fund?wait=true', { amount_usd: '60' })
  assert.equal(funded.body.status, 'completed', JSON.stringify(funded.body))
  const early = await open(person)
  assert.equal(early.body.outcome, 'executed', JSON.stringify(early.body))
  // The account is registered with its first comparison.
  await eventually(async () => {
    const { rows } = await database.query('select state from venue_account')
    return rows[0]?.state === 'active' ? true : undefined
  }, 'the account is registered')

  await operator.act('odd orders', 'accounts', 'freeze', person.agentId)
  const refused = await open(person)
  assert.deepEqual([refused.status, refused.body.code], [403, 'trading_paused'])
  assert.match(refused.body.reason ?? '', /odd orders/)
  const closed = await perp(person, 'close?wait=true', { asset: 'BTC' })
  assert.equal(closed.body.outcome, 'executed', JSON.stringify(closed.body))
  const [listed] = await operator.rows('accounts', 'list')
  assert.deepEqual([listed?.agent_id, listed?.state], [person.agentId, 'frozen'])
  assert.match(await operator.refusal('accounts', 'freeze', person.agentId, '--why', 'x'), /already frozen/)

  await operator.act('the user explained', 'accounts', 'unfreeze', person.agentId)
  await eventually(
    async () => ((await flaggedStates(person)).includes('unfrozen') ? true : undefined),
    'the account is unfrozen',
    // A comparison that meets a fault or a fill of the same millisecond is repeated after up to 20 seconds.
    120_000,
  )
  assert.deepEqual(await operator.rows('accounts', 'list'), [])
  const again = await open(person)
  assert.equal(again.body.outcome, 'executed', JSON.stringify(again.body))
  await operator.rows('accounts', 'changes', person.agentId)
  assert.deepEqual((await flaggedStates(person)).toSorted(), ['frozen', 'unfrozen'])
  assert.match(
    await operator.refusal('accounts', 'unfreeze', person.agentId, '--why', 'x'),
    /no frozen venue account/,
  )
})

test('an account that is not registered cannot be frozen', async () => {
  const person = await createFundedPerson(gateway.url)
  const refused = await operator.refusal('accounts', 'freeze', person.agentId, '--why', 'x')
  assert.match(refused, /has no venue account/)
})
