/**
 * Tasks whose outcome no look-up can determine: what an operator sees of them, and how they are ended with evidence.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { testDatabase } from '../harness/cluster.ts'
import { testFunding } from '../harness/conservation.ts'
import { bearer, dataFolder, eventually, freshGateway, launch } from '../harness/gateway.ts'
import { eventsUntil } from '../harness/stream.ts'
import { createFundedPerson, type Person } from './users.ts'
import { base, worldOf } from './world.ts'

type Rpc = { id: number; method: string }

/** A proxy before a real node: with `hidesReceipts` it answers like a node that has lost its receipts. */
async function forgetfulNode(url: string) {
  const state = { hidesReceipts: false }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const reply = await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    const asked = JSON.parse(body) as Rpc | Rpc[]
    const answered = (await reply.json()) as object | object[]
    const withoutReceipt = (call: Rpc, answer: object) =>
      state.hidesReceipts && call.method === 'eth_getTransactionReceipt'
        ? { ...answer, result: null }
        : answer
    const forwarded =
      Array.isArray(asked) && Array.isArray(answered)
        ? answered.map((each, at) =>
            withoutReceipt(asked.find(({ id }) => id === (each as Rpc).id) ?? asked[at]!, each),
          )
        : withoutReceipt(asked as Rpc, answered as object)
    response.setHeader('content-type', 'application/json').end(JSON.stringify(forwarded))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

const folder = dataFolder()
const parts = new AsyncDisposableStack()
let gateway: Awaited<ReturnType<typeof launch>>
let world: Awaited<ReturnType<typeof worldOf>>
let node: Awaited<ReturnType<typeof forgetfulNode>>
let operator: Operator

before(async () => {
  const origin = parts.use(await freshGateway({}, { ownWorld: 'minutes pass' }))
  world = await worldOf(origin.world)
  node = await forgetfulNode(world.manifest.urls.evm[base])
  parts.defer(() => node.close())
  const database = parts.use(await testDatabase())
  const env = { DATABASE_URL: database.url, DATA_DIR: folder.path }
  gateway = parts.use(
    await launch({ env: { ...world.env, ...env, BASE_RPC_URL: node.url }, control: origin.world }),
  )
  operator = operatorOf(env)
})
after(async () => {
  await parts.disposeAsync()
  folder[Symbol.dispose]()
})

/** The batch ran, its receipt is missing, and its deadline is over: nothing more can be looked up. */
async function depositInReview(person: Person, amount: string) {
  node.state.hidesReceipts = true
  const { body } = await person.deposit(amount, { query: '' })
  const landed = await eventually(
    async () => (await world.effects(person.evm))[0],
    'the vault has the deposit',
    30_000,
  )
  await world.advance(700)
  await eventually(
    async () => {
      await world.rpc('evm_mine')
      return (await person.task(body.task_id)).state === 'review' ? true : undefined
    },
    'the task is in review',
    60_000,
  )
  return { id: body.task_id, landed }
}

type Shown = {
  task: { state: string; cancel_requested: boolean; data: { operator: Record<string, string> } }
  effects: { status: string; proof?: object; transactions: { externalId: string; status: string }[] }[]
  transfers: { key: string; state: string; amount: string; asset: string }[]
}
const show = async (id: string) => JSON.parse((await operator.run('tasks', 'show', id)).out) as Shown

test('a task in review is listed with its signed transactions, and ended as executed with evidence', async () => {
  const person = await createFundedPerson(gateway.url)
  const { id, landed } = await depositInReview(person, '3')
  assert.match(
    await operator.refusal('tasks', 'list', '--state', 'foo'),
    /--state must be one of open, all, .*review/,
  )
  const [listed] = (await operator.rows('tasks', 'list')).filter((row) => row.id === id)
  assert.equal(listed?.agent_id, person.agentId)
  const before = await show(id)
  const hash = before.effects[0]!.transactions[0]!.externalId
  assert.equal(listed?.sent, hash)
  assert.deepEqual(
    before.transfers.map(({ state, amount }) => [state, amount]),
    [['pending', '3000000']],
  )

  const requestCancel = `update task set cancel_requested = true where id = '${id}'`
  await operator.act('as if it had been requested before the signature', 'psql', requestCancel, '--write')
  const lacking = await operator.refusal('tasks', 'end', id, '--outcome', 'executed', '--why', 'x')
  assert.match(lacking, /--evidence/)
  const early = ['--outcome', 'not_executed', '--evidence', 'none', '--why', 'x']
  assert.match(await operator.refusal('tasks', 'end', id, ...early), /can be executed until/)
  const { task: refused } = await show(id)
  assert.deepEqual([refused.state, refused.cancel_requested], ['review', true])

  const events = eventsUntil(
    `${gateway.url}/v1/notifications/stream`,
    { ...bearer(person), 'last-event-id': '0' },
    ({ event, data }) => event === 'task.completed' && JSON.stringify(data).includes(id),
    60_000,
  )
  const seen = ['--outcome', 'executed', '--tx-hash', hash, '--evidence', 'mined, by two other nodes']
  assert.match(await operator.refusal('tasks', 'end', id, ...seen, '--why', 'x'), /--amount-out is required/)
  const words = [...seen, '--amount-out', landed.shares_units]
  await operator.act('the node has lost the receipt', 'tasks', 'end', id, ...words)
  const ended = await person.ended(id, 5_000)
  assert.deepEqual(
    [ended.status, ended.outcome, ended.result?.shares_delta, ended.result?.tx_hash],
    ['completed', 'executed', landed.shares_units, hash],
  )
  assert.equal(
    ended.message,
    `Completed: an operator determined that it was executed, in transaction ${hash}`,
  )
  await events

  const after = await show(id)
  assert.deepEqual(
    after.transfers.map(({ state }) => state),
    ['posted', 'posted'],
  )
  assert.deepEqual(
    [after.effects[0]!.status, after.effects[0]!.transactions[0]!.status],
    ['confirmed', 'confirmed'],
  )
  assert.equal(after.task.data.operator.evidence, 'mined, by two other nodes')
  const recorded = (await operator.log('--subject', id)).find(({ command }) => command === 'tasks end')
  const { actor, reason, details } = recorded!
  assert.deepEqual(
    [actor, reason, details.outcome, details.txHash],
    ['ann', 'the node has lost the receipt', 'executed', hash],
  )
  const again = await operator.refusal('tasks', 'end', id, ...words, '--why', 'twice')
  assert.match(again, /not in review/)
})

test('a task ended as not executed releases its hold and its share of the limits', async () => {
  const person = await createFundedPerson(gateway.url)
  const { id, landed } = await depositInReview(person, '4')
  const why = 'the operator is wrong: the deposit was executed'
  testFunding.add(person, { asset: 'usdc:8453', units: -BigInt(landed.assets_units), why })
  testFunding.add(person, { asset: 'shares', units: BigInt(landed.shares_units), why })
  // The signed transaction counts as expired: the wall clock of the gateway has not moved with that of the chain.
  await operator.act(
    'time travel',
    'psql',
    `update effect set valid_until = now() - interval '1 second' where task_id = '${id}'`,
    '--write',
  )
  const policy = async () =>
    (await person.call<{ spent_24h_usd: string }>('GET /v1/policy')).body.spent_24h_usd
  assert.equal(await policy(), '4')
  await operator.act(
    'as if it had never run',
    'tasks',
    'end',
    id,
    '--outcome',
    'not_executed',
    '--evidence',
    'absent from two explorers',
  )
  const ended = await person.ended(id, 5_000)
  assert.deepEqual(
    [ended.status, ended.outcome, ended.error?.code],
    ['failed', 'not_executed', 'ended_by_operator'],
  )
  assert.equal(await policy(), '0')
  const { transfers, effects } = await show(id)
  assert.deepEqual(
    transfers.map(({ state }) => state),
    ['voided'],
  )
  assert.equal(effects[0]!.status, 'dropped')
  node.state.hidesReceipts = false
  assert.equal((await person.deposit('1')).body.status, 'completed')
})

test('a task outside of review is not ended by hand', async () => {
  const person = await createFundedPerson(gateway.url)
  node.state.hidesReceipts = false
  const { body } = await person.deposit('1')
  const words = ['--outcome', 'not_executed', '--evidence', 'none', '--why', 'x']
  assert.match(await operator.refusal('tasks', 'end', body.task_id, ...words), /not in review/)
  assert.match(await operator.refusal('tasks', 'end', 'nonsense', ...words), /There is no task/)
  assert.equal((await person.task(body.task_id)).status, 'completed')
})
