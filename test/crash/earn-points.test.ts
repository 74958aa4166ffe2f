/** kill -9 at the boundaries of every statement and every call of earn tasks, which three sponsor keys pay for. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { worldSponsors } from '#config-safety.ts'
import type { Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { isNightly } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp, deposit, newCustomer } from './crash-app.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'

/** Statements and calls that belong to the task; others belong to the running process. */
const taskPointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|user_event_append|policy_lock|update nonce_sequence|select task|begin|commit|insert policy|update policy|select effect|select tx_attempt)|net:base)/
/** The second pass too, where a task passes a point more than once. */
const passesOf = (name: string) => (isNightly ? 50 : /task_step|net:/.test(name) ? 2 : 1)

/** Their deposits arrive together, so that one commit accepts and signs several of them. */
const customersMax = 3
const keys = { SPONSOR_KEYS: worldSponsors.slice(0, 3).join(',') }

let app: CrashApp
let survivor: Gateway
let customers: Customer[]
let made = 0

const gatewayWith = (env: Record<string, string> = {}) => app.gateway({ ...keys, ...env })

/** One deposit of each customer under the key; repeated elsewhere, it is the same deposit. */
const depositAll = (url: string, key: string) =>
  Promise.all(customers.map((customer) => deposit(url, customer, key, true)))

const assertExecuted = (replies: Awaited<ReturnType<typeof depositAll>>, at: string) => {
  for (const { status, body } of replies)
    assert.deepEqual(
      [status, body.status, body.outcome],
      [200, 'completed', 'executed'],
      `${at}: ${JSON.stringify(body)}`,
    )
  made++
}

before(async () => {
  app = await createCrashApp()
  survivor = await gatewayWith()
  customers = []
  for (let n = 0; n < customersMax; n++) customers.push(await newCustomer(survivor.url))
  assertExecuted(await depositAll(survivor.url, 'first'), 'first')
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

const pointsOfOneDeposit = (): Promise<string[]> =>
  recordPoints({
    pattern: taskPointPattern,
    passesOf,
    needed,
    shortPoint: 'db:task_step:before',
    launch: gatewayWith,
    work: async ({ url }, attempt) => assertExecuted(await depositAll(url, attempt), attempt),
  })

/** One gateway takes the requests and dies at its point; the other one must complete the tasks. */
async function dieAt(point: string, victim: Gateway): Promise<boolean> {
  const key = keyAt(point)
  victim.child.kill('SIGUSR2')
  const first = await depositAll(victim.url, key).catch(() => undefined)
  const died = hasDied(victim, first)
  await victim.kill()
  const replies = await depositAll(survivor.url, key).catch((cause: unknown) => {
    throw new Error(
      `${point}: the survivor (${survivor.child.exitCode ?? survivor.child.signalCode}) said\n${survivor.lines.slice(-12).join('\n')}`,
      { cause },
    )
  })
  assertExecuted(replies, point)
  for (const { address } of customers)
    assert.equal((await app.vaultEffects(address)).deposits, made, `${point}: deposits on the chain`)
  return died
}

/** Every nonce that a sponsor has used belongs to a stored transaction, and none was filled or skipped. */
async function assertNoGaps(): Promise<void> {
  const { rows } = await app.admin.query<{ signer: string; used: string; first: string; next: string }>(
    `select s.signer, count(distinct c.nonce) as used, min(c.nonce) as first, s.next
     from nonce_sequence s join tx_attempt c on c.signer = s.signer and c.chain = s.chain and c.nonce_kind = s.kind
     where s.kind = 'evm' and s.chain = '8453' group by s.signer, s.next`,
  )
  assert.equal(rows.length, 3, 'every sponsor key has signed')
  for (const { signer, used, first, next } of rows) {
    assert.equal(Number(used), Number(next) - Number(first), `${signer}: nonces without a transaction`)
    assert.equal(await app.sponsorNonce(signer), Number(next), `${signer}: nonces on the chain`)
  }
}

const needed = [
  /^db:update nonce_sequence:after/,
  /^db:task_accept_complete:after/,
  /^db:commit:after/,
  /^db:task_step:before/,
  /^net:/,
]

test('an earn task killed at any point happens exactly once', async (t) => {
  const points = await pointsOfOneDeposit()
  const reached = await killAtEach(points, gatewayWith, dieAt)
  t.diagnostic(`${reached}, ${made} deposits of each of ${customersMax} users requested and made`)
  await assertNoGaps()
  assert.equal(await ledgerDrift(app.admin), 0)
})
