/** kill -9 between a payment and its credits: whatever the point, one payment and one pack. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { bearer, type Gateway, http, NotReady } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { worldOf } from '../journeys/world.ts'
import { isShort } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp, newCustomer, type TaskBody } from './crash-app.ts'

const taskPointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|update nonce_sequence|begin|commit|insert credit_payment|select effect|select tx_attempt)|net:base)/
const passesOf = (name: string) => (/task_step|net:/.test(name) ? 2 : 1)
const base = '8453'
const paidUnits = 1_428_571_428_571_429n

let app: CrashApp
let survivor: Gateway
let customer: Customer
let made = 0

type Reply = TaskBody & { result: { paid: string } | null }
const recharge = (url: string, key: string) =>
  http<Reply>(`${url}/credits/onchain-recharge?wait=true&timeout=20`, {
    method: 'POST',
    headers: { ...bearer(customer), 'idempotency-key': key },
    body: { chain_id: base, pack_id: '5' },
    timeoutMs: 25_000,
  })
const assertExecuted = ({ status, body }: Awaited<ReturnType<typeof recharge>>, at: string) => {
  assert.deepEqual(
    [status, body.status, body.outcome],
    [200, 'completed', 'executed'],
    `${at}: ${JSON.stringify(body)}`,
  )
  made += 1
}

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  customer = await newCustomer(survivor.url)
  await (await worldOf(app.control)).fund(base, customer.address, 'native', '1')
  assertExecuted(await recharge(survivor.url, 'first'), 'first')
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

async function failpointsOfOneRecharge(): Promise<string[]> {
  const file = join(tmpdir(), `portico-recharge-failpoints-${process.pid}`)
  writeFileSync(file, '')
  const recorded = await app.gateway({ FAILPOINT_LOG: file })
  recorded.child.kill('SIGUSR2')
  assertExecuted(await recharge(recorded.url, 'recorded'), 'recorded')
  await recorded.kill()
  const counts = new Map<string, number>()
  for (const name of readFileSync(file, 'utf8').split('\n'))
    if (taskPointPattern.test(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) =>
    Array.from({ length: Math.min(count, passesOf(name)) }, (_, n) => `${name}@${n + 1}`),
  )
}

/** One gateway takes the request and dies at its point; the other one must complete the task. */
async function dieAt(point: string, victim: Gateway): Promise<boolean> {
  const key = `at-${point.replaceAll(' ', '-')}`
  victim.child.kill('SIGUSR2')
  const first = await recharge(victim.url, key).catch(() => undefined)
  const died = victim.child.signalCode === 'SIGKILL' || first === undefined
  await victim.kill()
  assertExecuted(await recharge(survivor.url, key), point)
  return died
}

async function assertPaidOnce(at: string): Promise<void> {
  const { body } = await http<{ buckets: { kind: string; credits: number }[] }>(
    `${survivor.url}/v1/credits`,
    {
      headers: bearer(customer),
    },
  )
  assert.equal(body.buckets.find(({ kind }) => kind === 'purchased')?.credits, 300 * made, at)
  const { rows } = await app.admin.query<{ state: string; paid: string; count: string }>(
    `select state, sum(amount) as paid, count(*) as count from credit_payment group by state`,
  )
  assert.deepEqual(
    rows.map(({ state, paid, count }) => [state, BigInt(paid), Number(count)]),
    [['credited', paidUnits * BigInt(made), made]],
    at,
  )
}

const needed = [/^db:commit:after/, /^db:task_step:before/, /^db:insert credit_payment:/, /^net:/]
/** One of each relevant kind; all of them in `npm run test:crash`. */
const pointsOf = (all: string[]): string[] =>
  isShort ? needed.flatMap((each) => all.filter((point) => each.test(point)).slice(0, 1)) : all

test('a payment killed at any point is made and credited exactly once', async (t) => {
  const all = await failpointsOfOneRecharge()
  for (const each of needed)
    assert.ok(
      all.some((point) => each.test(point)),
      all.join(' '),
    )
  const points = pointsOf(all)
  let deaths = 0
  // The next gateway starts while the other one completes the task.
  let next: Promise<Gateway> | undefined
  for (const [index, point] of points.entries()) {
    const victim = await (next ?? app.gateway({ FAILPOINT: point }))
    const nextPoint = points[index + 1]
    next = nextPoint === undefined ? undefined : app.gateway({ FAILPOINT: nextPoint })
    next?.catch((error: unknown) => assert.ok(error instanceof NotReady))
    if (await dieAt(point, victim)) deaths += 1
    await assertPaidOnce(point)
  }
  t.diagnostic(`${points.length} points, ${deaths} deaths, ${made} payments requested and made`)
  assert.ok(deaths >= points.length / 2, `only ${deaths} of ${points.length} points were reached`)
  assert.equal(await ledgerDrift(app.admin), 0)
})
