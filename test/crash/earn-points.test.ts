/** kill -9 at the boundaries of every statement and every call of an earn task. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Gateway, NotReady } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { isNightly, isShort } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp, deposit, newCustomer } from './crash-app.ts'

/** Statements and calls that belong to the task; others belong to the running process. */
const taskPointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|user_event_append|policy_lock|update nonce_sequence|select task|begin|commit|insert policy|update policy|select effect|select tx_attempt)|net:base)/
/** The second pass too, where a task passes a point more than once. */
const passesOf = (name: string) => (isNightly ? 50 : /task_step|net:/.test(name) ? 2 : 1)

let app: CrashApp
let survivor: Gateway
let customer: Customer
let made = 0

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  customer = await newCustomer(survivor.url)
  assert.equal((await deposit(survivor.url, customer, 'first', true)).body.status, 'completed')
  made = 1
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

async function failpointsOfOneDeposit(): Promise<string[]> {
  const file = join(tmpdir(), `portico-failpoints-${process.pid}`)
  writeFileSync(file, '')
  const recorded = await app.gateway({ FAILPOINT_LOG: file })
  recorded.child.kill('SIGUSR2')
  const { body } = await deposit(recorded.url, customer, 'recorded', true)
  assert.equal(body.status, 'completed')
  made++
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
  const first = await deposit(victim.url, customer, key, true).catch(() => undefined)
  const died = victim.child.signalCode === 'SIGKILL' || first === undefined
  await victim.kill()
  const { status, body } = await deposit(survivor.url, customer, key, true).catch((cause: unknown) => {
    throw new Error(
      `${point}: the survivor (${survivor.child.exitCode ?? survivor.child.signalCode}) said\n${survivor.lines.slice(-12).join('\n')}`,
      { cause },
    )
  })
  assert.equal(status, 200, `${point}: ${JSON.stringify(body)}`)
  assert.deepEqual(
    [body.status, body.outcome],
    ['completed', 'executed'],
    `${point}: ${JSON.stringify(body)}`,
  )
  made++
  const { deposits } = await app.vaultEffects(customer.address)
  assert.equal(deposits, made, `${point}: deposits on the chain`)
  return died
}

const needed = [/^db:task_accept:after/, /^db:task_step:before/, /^net:/]

/** One of each relevant kind; all of them in `npm run test:crash`. */
const pointsOf = (all: string[]): string[] =>
  isShort ? needed.flatMap((each) => all.filter((point) => each.test(point)).slice(0, 1)) : all

test('an earn task killed at any point happens exactly once', async (t) => {
  const all = await failpointsOfOneDeposit()
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
    if (await dieAt(point, victim)) deaths++
  }
  t.diagnostic(`${points.length} points, ${deaths} deaths, ${made} deposits requested and made`)
  assert.ok(deaths >= points.length / 2, `only ${deaths} of ${points.length} points were reached`)
  assert.equal(await ledgerDrift(app.admin), 0)
})
