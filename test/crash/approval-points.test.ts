/** kill -9 at any point of an approval, and of the acceptance that follows it: the money leaves once, under one task. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, type Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { personWithApp, type SignedIn } from '../journeys/signed-in.ts'
import type { Person, TaskBody } from '../journeys/users.ts'
import { base, type World, worldOf } from '../journeys/world.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { keyAt, killAtEach, recordPoints } from './failpoints.ts'

/** From the decision to the end of the task. */
const pointPattern = /^(db:(?!.*(schedule|instance|market_lease|listen)).*|net:base)/
const passesOf = (name: string) => (/db:(begin|commit)|task_step|net:/.test(name) ? 3 : 1)
const friend = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'
const amount = 1_000_000n

let app: CrashApp
/** The address is the issuer of the tokens: each gateway listens where the one before it did. */
let port: string
let person: SignedIn
/** A token of the page of approvals, which alone approves. */
let pageToken: string
let agent: Person
let renew: () => Promise<void>
let world: World
let made = 0n
let initial: bigint

const gatewayWith = (env: Record<string, string> = {}) => app.gateway({ PORT: port, ...env })
const ask = async (at: string, key: string): Promise<{ taskId: string; approvalId: string }> => {
  await renew()
  // There are more points than an app may make requests in a quarter of an hour.
  await app.admin.query(
    `delete from approval
      where exists (select from task t where t.id = approval.task_id and t.status = 'completed')`,
  )
  const { status, body } = await agent.call<TaskBody>('POST /v1/wallets/transfer', {
    body: { chain_id: base, token: 'USDC', amount: String(amount), recipient: friend },
    key,
    at,
  })
  assert.equal(status, 200, JSON.stringify(body))
  const { approvals } = (
    await person.call<{ approvals: { approval_id: string; task_id: string }[] }>('GET /v1/approvals', { at })
  ).body
  const found = approvals.find(({ task_id }) => task_id === body.task_id)
  assert.ok(found, 'the request waits')
  pageToken = await person.pageToken()
  return { taskId: body.task_id, approvalId: found.approval_id }
}
const approve = (at: string, approvalId: string) =>
  person.send<{ decision?: string }>(`POST /v1/approvals/${approvalId}/approve`, {
    at,
    headers: { authorization: `Bearer ${pageToken}` },
  })
const endedAt = (at: string, taskId: string) =>
  eventually(
    async () => {
      const { body } = await agent.call<TaskBody>(`GET /v1/tasks/${taskId}`, { at })
      return body.status === 'pending' || body.status === 'running' ? undefined : body
    },
    `task ${taskId} has ended`,
    60_000,
  )
async function assertPaidOnce(at: string, taskId: string, point: string): Promise<void> {
  const ended = await endedAt(at, taskId)
  assert.deepEqual(
    [ended.status, ended.outcome],
    ['completed', 'executed'],
    `${point}: ${JSON.stringify(ended)}`,
  )
  made += amount
  assert.equal((await world.usdcOf(friend)) - initial, made, point)
}

before(async () => {
  app = await createCrashApp()
  const first = await app.gateway()
  port = new URL(first.url).port
  const both = await personWithApp(first)
  person = both.person
  agent = both.app
  renew = both.renew
  world = await worldOf(app.control)
  await world.fund(base, person.evm, 'USDC', '100')
  await world.fund(base, person.evm, 'native', '1')
  await app.admin.query(
    `insert into transfer_recipient select gen_random_uuid(), user_id, $1, $2, 'x', 'approval', '', now(), now()
      from wallet where lower(address) = lower($3)`,
    [base, friend, person.evm],
  )
  initial = await world.usdcOf(friend)
  const { taskId, approvalId } = await ask(first.url, 'first')
  await approve(first.url, approvalId)
  await assertPaidOnce(first.url, taskId, 'first')
  await first.kill()
})
after(() => app?.[Symbol.asyncDispose]())

const pointsOfOneApproval = (): Promise<string[]> =>
  recordPoints({
    pattern: pointPattern,
    passesOf,
    needed,
    shortPoint: 'db:task_accept:before',
    launch: gatewayWith,
    async work({ url }, attempt, clear) {
      const { taskId, approvalId } = await ask(url, attempt)
      clear()
      assert.equal((await approve(url, approvalId)).body.decision, 'approved')
      await assertPaidOnce(url, taskId, attempt)
    },
  })

const needed = [/approval:before/, /approval:after/, /task_accept:before/, /^db:commit:after/]

test('an approval killed at any point is one decision, and the approved transfer is made exactly once', async (t) => {
  const points = await pointsOfOneApproval()
  t.diagnostic(points.join(' '))
  let complete: (next: Gateway) => Promise<void> = async () => {}
  // Each gateway first completes what its predecessor left, and then dies at its own point.
  const dieAt = async (at: string, victim: Gateway): Promise<boolean> => {
    await complete(victim)
    const { taskId, approvalId } = await ask(victim.url, keyAt(at))
    victim.child.kill('SIGUSR2')
    const answer = await approve(victim.url, approvalId).catch(() => undefined)
    // A gateway that dies after its answer is found dead by the next read; its exit may be reported later.
    const ended = answer && (await endedAt(victim.url, taskId).catch(() => undefined))
    await victim.kill()
    complete = async ({ url }) => {
      // The person repeats what got no answer; a decision that was stored is not taken twice.
      assert.equal((await approve(url, approvalId)).body.decision, 'approved', at)
      await assertPaidOnce(url, taskId, at)
    }
    return ended === undefined
  }
  const reached = await killAtEach(points, gatewayWith, dieAt, { startsAhead: false })
  const gateway = await gatewayWith()
  await complete(gateway)
  t.diagnostic(`${reached}, ${made / amount} payments requested and made`)
  const twice = await app.admin.query('select task_id from effect group by task_id having count(*) > 1')
  assert.equal(twice.rowCount, 0)
  assert.equal(await ledgerDrift(app.admin), 0)
  await gateway.stop()
})
