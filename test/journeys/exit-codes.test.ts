/** The exit codes by which a script learns what became of its call. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { runCli } from '#edges/cli/cli.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { signedInPerson } from './signed-in.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, type World, worldOf } from './world.ts'

const chain = `evm:${base}`

let gateway: Awaited<ReturnType<typeof freshGateway>>
let world: World
let person: Person
before(async () => {
  gateway = await freshGateway()
  world = await worldOf(gateway.world)
  person = await createFundedPerson(gateway.url)
})
afterEach(() => world.heal())
after(() => gateway?.[Symbol.asyncDispose]())

async function porticoAs({ token }: Pick<Person, 'token'>, ...words: string[]) {
  let [out, err] = ['', '']
  const code = await runCli([...words, '--json'], {
    env: { PORTICO_URL: gateway.url, PORTICO_TOKEN: token },
    home: '/nowhere',
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    isInteractive: false,
    openBrowser: () => {},
    signal: AbortSignal.timeout(60_000),
  })
  return { code, out, err }
}
const portico = (...words: string[]) => porticoAs(person, ...words)
const deposit = (...words: string[]) => portico('earn', 'deposit', '--retries', '0', ...words)

test('7: the gateway limits the caller', async () => {
  const wrong = ['--agent-id', `agt_${'0'.repeat(26)}`, '--signature', Buffer.alloc(64).toString('base64')]
  const sign = () =>
    portico(
      'auth',
      'token',
      '--retries',
      '0',
      ...wrong,
      '--timestamp',
      String(Math.floor(Date.now() / 1_000)),
    )
  const last = await eventually(async () => {
    const refused = await sign()
    return refused.code === 3 ? undefined : refused
  }, 'the limit of wrong signatures')
  assert.equal(last.code, 7, last.err)
  assert.equal(JSON.parse(last.err).status, 429)
})

test('8: the gateway cannot reach what it needs', async () => {
  await world.fault(chain, { status: 503 })
  const { code, out, err } = await deposit('--amount-usdc', '5')
  assert.deepEqual([code, out], [8, ''], err)
  assert.equal(JSON.parse(err).retryable, true)
})

test('11: the task has not ended when the wait is over', async () => {
  await world.fault(chain, { status: 503, methods: ['eth_sendRawTransaction', 'eth_getTransactionReceipt'] })
  const { code, out } = await deposit('--amount-usdc', '5', '--wait', '--timeout', '5')
  const task = JSON.parse(out) as TaskBody
  assert.deepEqual([code, task.status], [11, 'running'])
  await world.heal()
  assert.equal((await person.ended(task.task_id, 20_000)).outcome, 'executed')
})

test('10: the task that was waited for was cancelled', async () => {
  const owner = await signedInPerson(gateway)
  await world.fund(base, owner.evm, 'USDC', '200')
  await owner.call('PUT /v1/policy', { body: { approval_above_usd: '50' } })
  const waiting = porticoAs(owner, 'earn', 'deposit', '--amount-usdc', '100', '--wait')
  const accepted = await eventually(async () => {
    const { items } = (await owner.call<{ items: TaskBody[] }>('GET /v1/tasks?kind=earn_deposit')).body
    return items[0]
  }, 'the task waits for its person')
  assert.equal((await porticoAs(owner, 'tasks', 'cancel', accepted.task_id)).code, 0)
  const { code, out } = await waiting
  const task = JSON.parse(out) as TaskBody
  assert.deepEqual([code, task.status, task.outcome], [10, 'cancelled', 'not_executed'])
})

test('4: the policy refuses', async () => {
  assert.equal((await portico('policy', 'tighten', '--per-transaction-usd', '1')).code, 0)
  const { code, out, err } = await deposit('--amount-usdc', '5')
  assert.deepEqual([code, out], [4, ''], err)
  assert.equal(JSON.parse(err).status, 403)
})
