import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Effect, TaskView } from '#kernel/task/task.ts'
import type { SignatureStatus, Solana } from '#upstreams/solana/solana.ts'
import { findExpiry } from './expiry.ts'
import type { SvmPort } from './svm-port.ts'
import type { SvmTaskData } from './transaction-plan.ts'

const effect = {
  id: 'e',
  intent: { lastValidBlockHeight: '1000', account: 'w', spends: [{ token: 'mint', amountUnits: '40' }] },
  signed: {
    slot: '2000',
    held: [
      { token: 'coin', units: '7' },
      { token: 'mint', units: '90' },
    ],
  },
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
  held = { coin: 7n, mint: 90n },
  changes = [],
}: {
  height?: bigint
  finalSlot?: bigint
  seenSlot?: bigint
  status?: SignatureStatus
  record?: object
  held?: { coin: bigint; mint: bigint }
  changes?: { signature: string; slot: bigint; units: Map<string, bigint> }[]
}) =>
  ({
    changesSince: async () => changes,
    chain: {
      height: async () => ({ height, slot: finalSlot }),
      statuses: async () => ({ slot: seenSlot, statuses: [status] }),
      transaction: async () => record,
      row: { native: { address: 'coin' } },
      balance: async (...given: Parameters<Solana['balance']>) => {
        const [, token, isNative, at] = given
        assert.deepEqual([isNative, at], [token === 'coin', { commitment: 'finalized', minSlot: finalSlot }])
        return token === 'coin' ? held.coin : held.mint
      },
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

test('nodes that lost the record prove nothing where the wallet holds more or less than at the signature', async () => {
  for (const [coin, mint] of [
    [7n, 50n],
    [6n, 90n],
    [7n, 91n],
  ] as const)
    assert.deepEqual(await find(node({ held: { coin, mint } }), { absence }, at(3)), { unprovable: true })
  assert.deepEqual(await find(node({ held: { coin: 7n, mint: 50n } })), { absence })
})

const changed = (units: Record<string, bigint>, more: { signature?: string; slot?: bigint } = {}) => ({
  signature: 'other',
  slot: 2_100n,
  units: new Map(Object.entries(units)),
  ...more,
})
const dead = async (given: Parameters<typeof node>[0]) => {
  const found = await find(node(given), { absence }, at(3))
  return found !== undefined && 'proof' in found
}

test('a change that other transactions explain keeps no dead signature in doubt', async () => {
  assert.equal(await dead({ held: { coin: 7n, mint: 95n }, changes: [changed({ mint: 5n })] }), true)
  assert.equal(
    await dead({ held: { coin: 3n, mint: 95n }, changes: [changed({ mint: 5n, coin: -4n })] }),
    true,
  )
  assert.equal(await dead({ held: { coin: 3n, mint: 95n }, changes: [changed({ mint: 5n })] }), false)
  assert.equal(await dead({ held: { coin: 7n, mint: 95n } }), false)
})

test('it does where it can have moved the same, or stands in the history itself', async () => {
  // 40 units left the wallet: those of the signed transaction.
  assert.equal(await dead({ held: { coin: 7n, mint: 55n }, changes: [changed({ mint: 5n })] }), false)
  // An earlier transaction about the time of the reading took as much.
  const before = changed({ mint: -40n }, { slot: 2_010n })
  assert.equal(await dead({ held: { coin: 7n, mint: 50n }, changes: [before] }), false)
  // Well after the reading it is another one.
  assert.equal(await dead({ held: { coin: 7n, mint: 50n }, changes: [changed({ mint: -40n })] }), true)
  const own = changed({ mint: -40n }, { signature: 's' })
  assert.equal(await dead({ held: { coin: 7n, mint: 50n }, changes: [own] }), false)
})
