/** A scripted model that repeats every timeout with fresh keys: each operation that moves money moves it once. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { signedInPerson } from '../journeys/signed-in.ts'
import type { Person } from '../journeys/users.ts'
import { base, type World, worldOf } from '../journeys/world.ts'
import { errorOf, type McpClient, modernClient } from './clients.ts'

type Json = Record<string, unknown>

let gateway: Awaited<ReturnType<typeof freshGateway>>
let world: World
let person: Person
let client: McpClient

before(async () => {
  gateway = await freshGateway({ COOLING_SECONDS: '1' })
  world = await worldOf(gateway.world)
  person = await signedInPerson(gateway)
  await eventually(async () => {
    const { items } = (await person.call<{ items: { status: string }[] }>('GET /v1/tasks?kind=faucet_grant'))
      .body
    return items[0]?.status === 'completed' || undefined
  }, 'the faucet grant')
  client = await modernClient(gateway.url, { authorization: `Bearer ${person.token}` })
})
after(async () => {
  await client?.[Symbol.asyncDispose]()
  await gateway?.[Symbol.asyncDispose]()
})

/** Calls, then does what a model does that has lost the answer: the same again, under new keys and none. */
async function callAndRepeat(name: string, input: Json): Promise<Json> {
  const first = await client.call(name, input)
  assert.equal(errorOf(first), undefined, JSON.stringify(first))
  for (const key of [undefined, 'fresh-1', undefined, 'fresh-2']) {
    const again = await client.call(name, { ...input, ...(key && { idempotency_key: `${name}-${key}` }) })
    const error = errorOf(again)
    assert.equal(error?.code, 'possible_duplicate', JSON.stringify(again))
    assert.equal(error.retryable, false, 'the same call is refused again')
    const named = (error?.details ?? {}) as Json
    assert.equal(
      named.task_id ?? named.idempotency_key,
      first.structuredContent?.task_id ?? first._meta?.['portico/idempotency_key'],
    )
  }
  return first.structuredContent ?? {}
}
const ended = async (taskId: unknown): Promise<void> => {
  const { status, outcome } = await person.ended(String(taskId), 60_000)
  assert.deepEqual([status, outcome], ['completed', 'executed'])
}
const balance = () => world.usdcOf(person.evm)

test('a transfer is sent once', async () => {
  const friend = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
  const recipient = { label: 'Friend', chain_id: base, address: friend, agents: 'allowed' }
  await person.call('POST /v1/recipients', { body: recipient })
  await eventually(async () => {
    const { recipients } = (await person.call<{ recipients: { status: string }[] }>('GET /v1/recipients'))
      .body
    return recipients.every(({ status }) => status === 'effective') || undefined
  }, 'the recipient is effective')
  const before = await world.usdcOf(friend)
  const input = { chain_id: base, token: 'USDC', amount: '5000000', recipient: friend }
  await ended((await callAndRepeat('wallets_transfer', input)).task_id)
  assert.equal((await world.usdcOf(friend)) - before, 5_000_000n)
})

test('a swap buys once, and its hooks are left once', async () => {
  const before = await balance()
  const swap = { chain_id_in: base, token_in: 'USDC', token_out: 'AERO', amount: '50000000' }
  await ended((await callAndRepeat('swap_execute', swap)).task_id)
  assert.equal(before - (await balance()), 50_000_000n)

  const stop = { chain_id: base, token_address: 'AERO', stop_losses: [{ price_usd: '0.1' }] }
  const { hooks } = (await callAndRepeat('hooks_register', stop)) as { hooks: { id: string }[] }
  const open = (await person.call<{ outstanding_orders: { id: string }[] }>('GET /wallet/outstanding-orders'))
    .body.outstanding_orders
  assert.deepEqual(
    open.map(({ id }) => id),
    hooks.map(({ id }) => id),
  )
})

test('a limit order is left once', async () => {
  const order = {
    chain_id_in: base,
    token_in: 'USDC',
    token_out: 'AERO',
    amount: '5000000',
    price_usd_trigger: '0.1',
    condition: 'lte',
  }
  await ended((await callAndRepeat('limit_orders_create', order)).task_id)
  assert.equal((await person.call<Json[]>('GET /v1/limit-orders')).body.length, 1)
})

test('an app that was connected a moment ago waits for its person above the limit of approvals', async () => {
  const limited = await client.call('policy_tighten', { approval_above_usd: '5' })
  assert.equal(errorOf(limited), undefined, JSON.stringify(limited))
  const swap = { chain_id_in: base, token_in: 'USDC', token_out: 'ETH', amount_usd: '20' }
  for (const [name, input] of [
    ['swap_execute', swap],
    ['call_operation', { name: 'swap_execute', arguments: { ...swap, amount_usd: '21' } }],
  ] as const) {
    const { structuredContent: task } = await client.call(name, input)
    assert.deepEqual([task?.status, task?.state], ['pending', 'awaiting_approval'], JSON.stringify(task))
  }
})
