import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Effect, TaskView } from '#kernel/task.ts'
import type { SignatureStatus } from '#upstreams/solana/solana.ts'
import { findExpiry } from './expiry.ts'
import type { SvmPort } from './svm-port.ts'
import type { SvmTaskData } from './transaction-rules.ts'

const effect = {
  id: 'e',
  intent: { lastValidBlockHeight: '1000' },
  signed: { slot: '2000' },
  txAttempts: [{ externalId: 's' }],
} as unknown as Effect
const task = (data: SvmTaskData = {}) => ({ id: 't', data }) as TaskView<SvmTaskData>
const at = (seconds: number) => new Date(1_000_000 + seconds * 1_000)
const landed: SignatureStatus = { slot: 2_100n, commitment: 'finalized', failed: false }

/** A node that has finalised this block, and answers from this slot. */
const node = ({
  height = 1_100n,
  finalSlot = 2_200n,
  seenSlot = 2_240n,
  status,
  record,
}: {
  height?: bigint
  finalSlot?: bigint
  seenSlot?: bigint
  status?: SignatureStatus
  record?: object
}) =>
  ({
    chain: {
      height: async () => ({ height, slot: finalSlot }),
      statuses: async () => ({ slot: seenSlot, statuses: [status] }),
      transaction: async () => record,
    },
  }) as unknown as SvmPort
const find = (port: SvmPort, data?: SvmTaskData, now = at(0), slot = 2_240n) =>
  findExpiry({ task: task(data), effect, port, now }, { slot, status: undefined })
const absence = { signature: 's', slot: '2240', at_ms: at(0).getTime() }

test('a signature is dead after two looks apart, both beyond the finalised last valid block', async () => {
  assert.deepEqual(await find(node({})), { absence })
  assert.deepEqual(await find(node({}), { absence }, at(1)), { absence })
  const dead = await find(node({ seenSlot: 2_250n }), { absence }, at(3))
  assert.deepEqual(dead, {
    proof: {
      last_valid_block_height: '1000',
      finalized_block_height: '1100',
      absent_at_slots: ['2240', '2250'],
    },
  })
  const other = await find(node({}), { absence: { ...absence, signature: 'earlier' } }, at(3))
  assert.ok(other && 'absence' in other)
})

test('it may land while the window is open, the block is not final with its margin, or the node is behind', async () => {
  assert.equal(await find(node({}), { absence }, at(3), 2_150n), undefined)
  assert.equal(await find(node({ height: 1_032n }), { absence }, at(3)), undefined)
  assert.ok(await find(node({ height: 1_033n }), { absence }, at(3)))
  assert.equal(await find(node({ seenSlot: 2_199n }), { absence }, at(3)), undefined)
})

test('a record or a status in the history is no absence', async () => {
  assert.deepEqual(await find(node({ status: landed }), { absence }, at(3)), {
    reading: { slot: 2_240n, status: landed },
  })
  assert.equal(await find(node({ record: {} }), { absence }, at(3)), undefined)
})
