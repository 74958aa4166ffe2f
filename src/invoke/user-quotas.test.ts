import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { StreamItem } from '#kernel/contract/operation.ts'
import { defaultQuotas, userQuotas } from './user-quotas.ts'

const caller: Caller = { userId: 'u1', agentId: 'agt', scheme: 'keypair', scopes: new Set() }
const toFault = (error: unknown): Fault =>
  error instanceof Fault ? error : new Fault('internal', 'failed', { cause: error })
const stream = (items: AsyncIterable<StreamItem>) => ({
  userId: 'u1',
  authorization: 'Bearer token',
  items,
  toFault,
})

async function* counting(): AsyncGenerator<StreamItem> {
  for (let data = 1; ; data++) yield { data }
}
async function* failing(): AsyncGenerator<StreamItem> {
  yield { data: 1 }
  throw new Error('no more')
}

test('a stream ends with the refusal of its credential, also where nothing was being read', async () => {
  let judged = 0
  let fault: Fault | undefined
  const authenticate = async () => {
    judged++
    if (fault) throw fault
    return caller
  }
  const quotas = userQuotas(authenticate, { ...defaultQuotas, checkEveryMs: 1 })
  const reader = quotas.stream(stream(counting()))[Symbol.asyncIterator]()
  assert.deepEqual(await reader.next(), { done: false, value: { data: 1 } })
  fault = new Fault('invalid_token', 'The token is revoked')
  for (const before = judged; judged < before + 2; ) await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(reader.next(), { code: 'invalid_token' })
  await quotas.close()
})

test('a stream gives its place back however it ends', async () => {
  const quotas = userQuotas(async () => caller, { ...defaultQuotas, streamsPerUser: 1 })
  const open = (items: AsyncIterable<StreamItem>) => quotas.stream(stream(items))[Symbol.asyncIterator]()
  const left = open(counting())
  await left.next()
  assert.throws(() => open(counting()), {
    code: 'rate_limited',
    extras: { budget: 'open_streams', owner: 'user', retry_after: 1 },
  })
  await left.return?.()
  const failed = open(failing())
  await failed.next()
  await assert.rejects(failed.next(), { code: 'internal' })
  const complete = open((async function* () {})())
  assert.equal((await complete.next()).done, true)
  await open(counting()).return?.()
  await quotas.close()
})

test('waits beyond the share of a user are not granted until one ends', async () => {
  const quotas = userQuotas(async () => caller, { ...defaultQuotas, waitsPerUser: 1 })
  {
    using granted = quotas.wait('u1')
    assert.ok(granted)
    assert.equal(quotas.wait('u1'), undefined)
    assert.ok(quotas.wait('u2'))
  }
  assert.ok(quotas.wait('u1'))
  await quotas.close()
})
