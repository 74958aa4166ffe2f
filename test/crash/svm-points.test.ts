/** kill -9 at the boundaries of every statement and every call of a transfer on Solana: it happens exactly once. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Gateway, NotReady } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { isNightly, isShort } from '../proof/support/seed.ts'
import { createSvmCrashApp, type Sender, type SvmCrashApp, send, sendUnits } from './svm-app.ts'

/** Statements and calls that belong to the task; others belong to the running process. */
const taskPointPattern =
  /^(db:(task_accept|task_step|policy_lock|update nonce_sequence|insert nonce|select task|begin|commit|update policy|select policy|select effect|select wallet)|net:solana)/
const passesOf = (name: string) => (isNightly ? 50 : /task_step|net:/.test(name) ? 4 : 1)

let app: SvmCrashApp
let survivor: Gateway
let senders: Sender[]
let made = 0n

const sendAll = (url: string, key: string) => Promise.all(senders.map((sender) => send(url, sender, key)))

const assertExecuted = (replies: Awaited<ReturnType<typeof sendAll>>, at: string) => {
  for (const { status, body } of replies)
    assert.deepEqual(
      [status, body.status, body.outcome],
      [200, 'completed', 'executed'],
      `${at}: ${JSON.stringify(body)}`,
    )
  made += BigInt(senders.length) * sendUnits
}

before(async () => {
  app = await createSvmCrashApp()
  survivor = await app.gateway()
  senders = [await app.newSender(survivor.url), await app.newSender(survivor.url)]
  assertExecuted(await sendAll(survivor.url, 'first'), 'first')
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

async function failpointsOfOneSend(): Promise<string[]> {
  const file = join(tmpdir(), `portico-svm-failpoints-${process.pid}`)
  writeFileSync(file, '')
  const recorded = await app.gateway({ FAILPOINT_LOG: file })
  recorded.child.kill('SIGUSR2')
  assertExecuted(await sendAll(recorded.url, 'recorded'), 'recorded')
  await recorded.kill()
  const counts = new Map<string, number>()
  for (const name of readFileSync(file, 'utf8').split('\n'))
    if (taskPointPattern.test(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) =>
    Array.from({ length: Math.min(count, passesOf(name)) }, (_, n) => `${name}@${n + 1}`),
  )
}

/** One gateway takes the requests and dies at its point; the other one must complete the tasks. */
async function dieAt(point: string, victim: Gateway): Promise<boolean> {
  const key = `at-${point.replaceAll(' ', '-')}`
  victim.child.kill('SIGUSR2')
  const first = await sendAll(victim.url, key).catch(() => undefined)
  const died = victim.child.signalCode === 'SIGKILL' || first === undefined
  await victim.kill()
  assertExecuted(await sendAll(survivor.url, key), point)
  assert.equal(await app.receivedUnits(), made, `${point}: received on the chain`)
  return died
}

const needed = [/^db:task_accept:after/, /^db:commit:after/, /^db:task_step:before/, /^net:solana:after@4/]
const pointsOf = (all: string[]): string[] =>
  isShort ? needed.flatMap((each) => all.filter((point) => each.test(point)).slice(0, 1)) : all

test('a transfer on Solana that is killed at any point happens exactly once', async (t) => {
  const all = await failpointsOfOneSend()
  for (const each of needed)
    assert.ok(
      all.some((point) => each.test(point)),
      `${each} in ${all.join(' ')}`,
    )
  const points = pointsOf(all)
  let deaths = 0
  // The next gateway starts while the other one completes the tasks.
  let next: Promise<Gateway> | undefined
  for (const [index, point] of points.entries()) {
    const victim = await (next ?? app.gateway({ FAILPOINT: point }))
    const nextPoint = points[index + 1]
    next = nextPoint === undefined ? undefined : app.gateway({ FAILPOINT: nextPoint })
    next?.catch((error: unknown) => assert.ok(error instanceof NotReady))
    if (await dieAt(point, victim)) deaths++
  }
  t.diagnostic(`${points.length} points, ${deaths} deaths`)
  assert.ok(deaths >= points.length / 2, `only ${deaths} of ${points.length} points were reached`)
  const { rows } = await app.admin.query<{ landed: string; tasks: string }>(
    `select count(*) filter (where e.status = 'confirmed') as landed, count(distinct e.task_id) as tasks
     from effect e where e.kind = 'svm_transaction'`,
  )
  assert.equal(rows[0]?.landed, rows[0]?.tasks)
  assert.equal(await ledgerDrift(app.admin), 0)
})
