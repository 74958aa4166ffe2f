import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import { silentLog } from '#kernel/log.ts'
import type { Evm } from './evm.ts'
import { createReceiptWatcher } from './receipt-watcher.ts'
import type { Head, Receipt } from './wire.ts'

const timeoutMs = 5_000

/** Long enough for many polls, which come each millisecond. */
async function manyPolls(): Promise<void> {
  const endMs = performance.now() + 10
  while (performance.now() < endMs) await nextTurn()
}

function createNode() {
  let number = 10n
  let isDown = false
  const mined = new Set<string>()
  const requests: string[][] = []
  const head = (): Head => ({ number, hash: `0x${number}`, timestampSeconds: 0, baseFeeWei: 1n })
  const receiptOf = (txHash: string) => ({ txHash, block: number, blockHash: head().hash }) as Receipt
  const answer = async <T>(asked: string[], value: () => T): Promise<T> => {
    requests.push(asked)
    if (isDown) throw new Fault('unavailable', 'down')
    return value()
  }
  const chain = {
    row: { blockPollMs: 1 } as Evm['row'],
    head: () => answer([], head),
    receipts: (hashes: readonly string[]) =>
      answer([...hashes], () => ({
        head: head(),
        receipts: hashes.map((hash) => (mined.has(hash) ? receiptOf(hash) : undefined)),
      })),
  }
  const woken: string[][] = []
  let parked = new Set<string>()
  const wake = async (taskIds: readonly string[]) => {
    woken.push([...taskIds])
    return taskIds.filter((id) => parked.has(id))
  }
  const until = async (isTrue: () => boolean) => {
    const endMs = performance.now() + timeoutMs
    while (!isTrue()) {
      assert.ok(performance.now() < endMs, 'in time')
      await nextTurn()
    }
  }
  return {
    watcher: createReceiptWatcher({ chain, wake, log: silentLog }),
    requests,
    woken,
    until,
    mine(...hashes: string[]) {
      number += 1n
      for (const hash of hashes) mined.add(hash)
    },
    revert(hash: string) {
      number += 1n
      mined.delete(hash)
    },
    goBack(blocks: bigint) {
      number -= blocks
    },
    setDown(state: { isDown: boolean }) {
      isDown = state.isDown
    },
    park(...ids: string[]) {
      parked = new Set(ids)
    },
    receiptRequests: () => requests.filter(({ length }) => length > 0),
  }
}

const task = (taskId: string, hash: string) => {
  let seen: string | undefined
  return {
    taskId,
    subject: [hash],
    afterMs: 60_000,
    isNews: ({ receipts: [receipt] }: { receipts: (Receipt | undefined)[] }) => receipt?.blockHash !== seen,
    see: (blockHash: string) => {
      seen = blockHash
    },
  }
}

test('nothing is sent without a waiter, and nothing after the last one', async () => {
  const { watcher, requests, mine } = createNode()
  await manyPolls()
  assert.equal(requests.length, 0)
  {
    using watch = watcher.watch(['a'])
    mine('a')
    const reading = await watch.next({ timeoutMs })
    assert.equal(reading?.receipts[0]?.txHash, 'a')
  }
  await manyPolls()
  const sent = requests.length
  await manyPolls()
  assert.equal(requests.length, sent)
})

test('the receipts of all waiters are asked for together, and again with each block', async () => {
  const { watcher, mine, receiptRequests, requests, until } = createNode()
  using first = watcher.watch(['a', 'b'])
  using second = watcher.watch(['c'])
  await Promise.all([first.next({ timeoutMs }), second.next({ timeoutMs })])
  await until(() => requests.length > receiptRequests().length + 3)
  const asked = receiptRequests().length
  mine('c')
  const [, reading] = await Promise.all([first.next({ timeoutMs }), second.next({ timeoutMs })])
  assert.equal(reading?.receipts[0]?.txHash, 'c')
  assert.deepEqual(receiptRequests().at(-1), ['a', 'b', 'c'])
  assert.equal(receiptRequests().length, asked + 1)
})

test('a request has a limit of hashes', async () => {
  const { watcher, receiptRequests } = createNode()
  const watches = Array.from({ length: 120 }, (_, n) => watcher.watch([String(n)]))
  await Promise.all(watches.map((watch) => watch.next({ timeoutMs })))
  assert.ok(receiptRequests().every(({ length }) => length <= 48))
  assert.equal(receiptRequests().flat().length, 120)
  for (const watch of watches) watch[Symbol.dispose]()
})

test('a node that does not answer fails the wait at its end, and the next one goes on', async () => {
  const { watcher, setDown, mine } = createNode()
  using watch = watcher.watch(['a'])
  setDown({ isDown: true })
  await assert.rejects(watch.next({ timeoutMs: 20 }), { code: 'unavailable' })
  setDown({ isDown: false })
  mine('a')
  const reading = await watch.next({ timeoutMs })
  assert.equal(reading?.receipts[0]?.txHash, 'a')
})

test('a node that goes back is reported as it is', async () => {
  const { watcher, mine, goBack } = createNode()
  using watch = watcher.watch(['a'])
  mine()
  assert.equal((await watch.next({ timeoutMs }))?.head.number, 11n)
  goBack(3n)
  assert.equal((await watch.next({ timeoutMs }))?.head.number, 8n)
})

test('a parked task is woken at its receipt, and where the receipt vanishes', async () => {
  const { watcher, mine, park, woken, until, revert, requests } = createNode()
  park('t')
  const waiting = task('t', 'a')
  assert.ok(watcher.wakeOnNews(waiting))
  mine('a')
  await until(() => woken.length > 0)
  assert.deepEqual(woken, [['t']])
  waiting.see('0x11')
  assert.ok(watcher.wakeOnNews(waiting))
  const asked = requests.length
  await until(() => requests.length > asked + 3)
  assert.equal(woken.length, 1)
  revert('a')
  await until(() => woken.length > 1)
  watcher.close()
})

test('a task whose commit comes after the receipt is woken later', async () => {
  const { watcher, mine, park, woken, until } = createNode()
  watcher.wakeOnNews(task('t', 'a'))
  mine('a')
  await until(() => woken.length > 2)
  park('t')
  const before = woken.length
  await until(() => woken.length > before)
  await manyPolls()
  const after = woken.length
  await manyPolls()
  assert.equal(woken.length, after)
})

test('a task that runs, or that fell due by itself, is not woken', async () => {
  const { watcher, mine, park, woken, until, requests } = createNode()
  park('runs', 'due')
  watcher.wakeOnNews(task('runs', 'a'))
  watcher.wakeOnNews({ ...task('due', 'a'), afterMs: 0 })
  watcher.forget('runs')
  mine('a')
  await until(() => requests.length > 0)
  await manyPolls()
  assert.deepEqual(woken, [])
  const sent = requests.length
  await manyPolls()
  assert.equal(requests.length, sent)
})
