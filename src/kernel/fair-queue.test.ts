import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFairQueue } from './fair-queue.ts'

function jobs() {
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const job = (name: string) => () => {
    started.push(name)
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)))
  }
  const end = async (name: string) => {
    ends.get(name)?.()
    await new Promise(setImmediate)
  }
  return { started, job, end }
}

test('a key with many jobs delays the job of another key by one turn only', async () => {
  const { started, job, end } = jobs()
  const queue = createFairQueue({ runsMax: 2, waitingMax: 100, waitingOfKeyMax: 50 })
  const all = Array.from({ length: 6 }, (_, index) => queue.run('many', job(`m${index}`)))
  const single = queue.run('single', job('s'))
  assert.deepEqual(started, ['m0', 'm1'])
  await end('m0')
  await end('m1')
  assert.deepEqual(started, ['m0', 'm1', 'm2', 's'])
  await end('s')
  assert.equal(await single, 's')
  for (const name of ['m2', 'm3', 'm4', 'm5']) await end(name)
  assert.equal((await Promise.all(all)).length, 6)
  assert.deepEqual(started, ['m0', 'm1', 'm2', 's', 'm3', 'm4', 'm5'])
})

test('a failed job frees its place, and a full queue rejects', async () => {
  const { job, end } = jobs()
  const queue = createFairQueue({ runsMax: 1, waitingMax: 1, waitingOfKeyMax: 1 })
  const failing = queue.run('a', () => Promise.reject(new Error('no')))
  const next = queue.run('a', job('next'))
  await assert.rejects(queue.run('b', job('beyond')), { code: 'overloaded' })
  await assert.rejects(failing, /no/)
  await end('next')
  assert.equal(await next, 'next')
  const last = queue.run('b', job('last'))
  await end('last')
  assert.equal(await last, 'last')
})

test('a key that has filled its own places leaves those of the others', async () => {
  const { started, job, end } = jobs()
  const queue = createFairQueue({ runsMax: 1, waitingMax: 100, waitingOfKeyMax: 2 })
  const own = ['m0', 'm1', 'm2'].map((name) => queue.run('many', job(name)))
  await assert.rejects(queue.run('many', job('m3')), { code: 'overloaded' })
  const single = queue.run('single', job('s'))
  for (const name of ['m0', 'm1', 's', 'm2']) await end(name)
  assert.equal(await single, 's')
  assert.equal((await Promise.all(own)).length, 3)
  assert.deepEqual(started, ['m0', 'm1', 's', 'm2'])
})
