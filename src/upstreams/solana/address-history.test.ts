import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonRpc, RpcAnswer } from '#kernel/wire/json-rpc.ts'
import { createAddressHistory } from './address-history.ts'

const since = new Date('2030-01-02T00:00:00Z')
const secondsAt = (afterMs: number) => (since.getTime() + afterMs) / 1_000

/** A node that lists so many transactions, and has these first blocks with their times. */
function nodeOf(listed: number, first: { slot: number; seconds: number | null }[]) {
  const asked: string[][] = []
  const answers: Record<string, (params: unknown[]) => RpcAnswer> = {
    getSignaturesForAddress: () => ({
      result: Array.from({ length: listed }, (_, slot) => ({ signature: `${slot}`, slot, err: null })),
    }),
    getBlocksWithLimit: () => ({ result: first.map(({ slot }) => slot) }),
    getBlockTime: ([slot]) => {
      const seconds = first.find((each) => each.slot === slot)?.seconds
      return seconds === undefined
        ? { error: { code: -32009, message: 'Slot was skipped' } }
        : { result: seconds }
    },
  }
  const rpc: JsonRpc = async (calls) => {
    asked.push(calls.map(({ method }) => method))
    return calls.map(({ method, params }) => answers[method]!(params))
  }
  return { asked, read: createAddressHistory(rpc), first }
}
const newest = { commitment: 'confirmed', limit: 2, since } as const
const tooLittle = /keeps no history from before 2030-01-01T23:59:01/

test('a list that ends proves nothing where the node keeps too little, to a minute', async () => {
  for (const listed of [0, 1]) {
    await assert.rejects(
      nodeOf(listed, [{ slot: 7, seconds: secondsAt(-59_000) }]).read('a', newest),
      tooLittle,
    )
    const node = nodeOf(listed, [{ slot: 7, seconds: secondsAt(-60_000) }])
    assert.equal((await node.read('a', newest)).length, listed)
    assert.deepEqual(node.asked, [['getSignaturesForAddress', 'getBlocksWithLimit'], ['getBlockTime']])
  }
})

test('a list that goes on, or one of no moment, needs no first block', async () => {
  const node = nodeOf(2, [])
  assert.equal((await node.read('a', newest)).length, 2)
  await nodeOf(0, []).read('a', { commitment: 'confirmed', limit: 2 })
  assert.equal(node.asked.length, 1)
})

test('a list since a slot ends where the node keeps that slot, whatever the time of its blocks', async () => {
  const sinceSlot = { ...newest, since: 8n }
  const node = nodeOf(1, [{ slot: 8, seconds: null }])
  assert.equal((await node.read('a', sinceSlot)).length, 1)
  assert.equal(node.asked.length, 1)
  await assert.rejects(
    nodeOf(0, [{ slot: 9, seconds: null }]).read('a', sinceSlot),
    /keeps no history from before slot 9; slot 8 is needed/,
  )
  await assert.rejects(nodeOf(0, []).read('a', sinceSlot), /no blocks/)
})

test('the time of a first block is read once, and that of another one anew', async () => {
  const node = nodeOf(0, [{ slot: 7, seconds: secondsAt(-90_000) }])
  await node.read('a', newest)
  await node.read('b', newest)
  assert.equal(node.asked.length, 3)
  node.first[0] = { slot: 9, seconds: secondsAt(-59_000) }
  await assert.rejects(node.read('a', newest), tooLittle)
})

test('a first block without a time is as old as the next one that has one, and none is known without any', async () => {
  const untimed = { slot: 7, seconds: null }
  await nodeOf(0, [untimed, { slot: 8, seconds: secondsAt(-60_000) }]).read('a', newest)
  const late = nodeOf(0, [untimed, { slot: 8, seconds: secondsAt(-59_000) }])
  await assert.rejects(late.read('a', newest), tooLittle)
  await assert.rejects(nodeOf(0, [untimed]).read('a', newest), /no time/)
  await assert.rejects(nodeOf(0, []).read('a', newest), /no blocks/)
})
