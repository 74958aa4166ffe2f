import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import { silentLog } from '#kernel/log.ts'
import { createSignatureWatcher } from './signature-watcher.ts'
import type { SignatureStatus, Solana } from './solana.ts'

const timeoutMs = 5_000
const confirmed: SignatureStatus = { slot: 1n, commitment: 'confirmed', failed: false }

function createNode() {
  const known = new Map<string, SignatureStatus>()
  const requests: string[][] = []
  let isDown = false
  const chain = {
    row: { statusPollMs: 1 } as Solana['row'],
    statuses: async (signatures: readonly string[]) => {
      requests.push([...signatures])
      if (isDown) throw new Fault('unavailable', 'down')
      return { slot: 5n, statuses: signatures.map((signature) => known.get(signature)) }
    },
  }
  const woken: string[] = []
  const parked = new Set<string>()
  const wake = async (taskIds: readonly string[]) => {
    woken.push(...taskIds)
    return taskIds.filter((id) => parked.has(id))
  }
  const until = async (isTrue: () => boolean) => {
    const endMs = performance.now() + timeoutMs
    while (!isTrue()) {
      assert.ok(performance.now() < endMs, 'in time')
      await nextTurn()
    }
  }
  const watcher = createSignatureWatcher({ chain, wake, log: silentLog })
  const setState = (state: 'up' | 'down') => {
    isDown = state === 'down'
  }
  return { watcher, known, requests, woken, parked, until, setState }
}

test('all signatures that are waited for share the requests, of at most 256 each', async () => {
  const { watcher, requests, until } = createNode()
  const watches = Array.from({ length: 300 }, (_, n) => watcher.watch(`s${n}`))
  const readings = await Promise.all(watches.map((watch) => watch.next({ timeoutMs })))
  assert.ok(readings.every((reading) => reading?.slot === 5n && reading.status === undefined))
  assert.ok(requests.every((request) => request.length <= 256))
  assert.ok(requests.length < 20, `${requests.length} requests`)
  for (const watch of watches) watch[Symbol.dispose]()
  const asked = requests.length
  const endMs = performance.now() + 10
  await until(() => performance.now() > endMs)
  assert.ok(requests.length <= asked + 1, 'nothing is asked for without a waiter')
})

test('a parked task is woken at its news, again where it was not parked yet, and then forgotten', async () => {
  const { watcher, known, woken, parked, requests, until } = createNode()
  const isNews = ({ status }: { status: SignatureStatus | undefined }) => status !== undefined
  assert.ok(watcher.wakeOnNews({ taskId: 't', subject: 's', afterMs: timeoutMs, isNews }))
  using watch = watcher.watch('other')
  await watch.next({ timeoutMs })
  await until(() => requests.some((request) => request.includes('s')))
  assert.deepEqual(woken, [])
  known.set('s', confirmed)
  await until(() => woken.length > 1)
  parked.add('t')
  await until(() => requests.at(-1)?.includes('s') === false)
  assert.ok(woken.every((id) => id === 't'))
})

test('a failure of the node is thrown where no reading comes in time, and the next one is read', async () => {
  const { watcher, known, setState } = createNode()
  using watch = watcher.watch('s')
  setState('down')
  await assert.rejects(watch.next({ timeoutMs: 30 }), { code: 'unavailable' })
  setState('up')
  known.set('s', confirmed)
  assert.deepEqual((await watch.next({ timeoutMs, isFresh: true }))?.status, confirmed)
})
