/** kill -9 at the boundaries of every statement and every call of a transfer on Solana: it happens exactly once. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { isNightly } from '../proof/support/seed.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'
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

const pointsOfOneSend = (): Promise<string[]> =>
  recordPoints({
    pattern: taskPointPattern,
    passesOf,
    needed,
    shortPoint: 'db:task_step:before',
    launch: app.gateway,
    work: async ({ url }, attempt) => assertExecuted(await sendAll(url, attempt), attempt),
  })

/** One gateway takes the requests and dies at its point; the other one must complete the tasks. */
async function dieAt(point: string, victim: Gateway): Promise<boolean> {
  const key = keyAt(point)
  victim.child.kill('SIGUSR2')
  const first = await sendAll(victim.url, key).catch(() => undefined)
  const died = hasDied(victim, first)
  await victim.kill()
  assertExecuted(await sendAll(survivor.url, key), point)
  assert.equal(await app.receivedUnits(), made, `${point}: received on the chain`)
  return died
}

const needed = [/^db:task_accept:after/, /^db:commit:after/, /^db:task_step:before/, /^net:solana:after@4/]

test('a transfer on Solana that is killed at any point happens exactly once', async (t) => {
  const points = await pointsOfOneSend()
  t.diagnostic(await killAtEach(points, app.gateway, dieAt))
  const { rows } = await app.admin.query<{ landed: string; tasks: string }>(
    `select count(*) filter (where e.status = 'confirmed') as landed, count(distinct e.task_id) as tasks
     from effect e where e.kind = 'svm_transaction'`,
  )
  assert.equal(rows[0]?.landed, rows[0]?.tasks)
  assert.equal(await ledgerDrift(app.admin), 0)
})
