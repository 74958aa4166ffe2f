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

test('a key with many jobs delays the job of another key by no turn', async () => {
  const { started, job, end } = jobs()
  const queue = createFairQueue({ runsMax: 2, waitingMax: 100, waitingOfKeyMax: 50 })
  const all = Array.from({ length: 6 }, (_, index) => queue.run('many', job(`m${index}`)))
  const single = queue.run('single', job('s'))
  assert.deepEqual(started, ['m0', 'm1'])
  await end('m0')
  await end('m1')
  assert.deepEqual(started, ['m0', 'm1', 's', 'm2'])
  await end('s')
  assert.equal(await single, 's')
  for (const name of ['m2', 'm3', 'm4', 'm5']) await end(name)
  assert.equal((await Promise.all(all)).length, 6)
  assert.deepEqual(started, ['m0', 'm1', 's', 'm2', 'm3', 'm4', 'm5'])
})

test('a failed job frees its place, and a full queue rejects', async () => {
  const { job, end } = jobs()
  const queue = createFairQueue({ runsMax: 1, waitingMax: 1, waitingOfKeyMax: 2 })
  const failing = queue.run('a', () => Promise.reject(new Error('no')))
  const next = queue.run('a', job('next'))
  await assert.rejects(queue.run('a', job('beyond')), { code: 'overloaded' })
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
  for (const name of ['m0', 's', 'm1', 'm2']) await end(name)
  assert.equal(await single, 's')
  assert.equal((await Promise.all(own)).length, 3)
  assert.deepEqual(started, ['m0', 's', 'm1', 'm2'])
})

test('a job that nobody waits for any more frees its place, and never runs', async () => {
  const { started, job, end } = jobs()
  const queue = createFairQueue({ runsMax: 1, waitingMax: 2, waitingOfKeyMax: 2 })
  const first = queue.run('a', job('a0'))
  const gone = new AbortController()
  const abandoned = ['a1', 'a2'].map((name) => queue.run('a', job(name), gone.signal))
  gone.abort()
  for (const each of abandoned) await assert.rejects(each, { name: 'AbortError' })
  const next = ['a3', 'a4'].map((name) => queue.run('a', job(name)))
  for (const name of ['a0', 'a3', 'a4']) await end(name)
  await Promise.all([first, ...next])
  assert.deepEqual(started, ['a0', 'a3', 'a4'])
  await assert.rejects(queue.run('a', job('a5'), gone.signal), { name: 'AbortError' })
})

test('where all places are taken the key with the longest line gives its last one to a shorter line', async () => {
  const { started, job, end } = jobs()
  const queue = createFairQueue({ runsMax: 1, waitingMax: 5, waitingOfKeyMax: 3 })
  const run = (name: string) => queue.run(name.slice(0, 1), job(name))
  const held = ['m0', 'm1', 'm2', 'n0', 'n1'].map(run)
  const last = run('m3')
  const single = run('s0')
  await assert.rejects(last, { code: 'overloaded' })
  // Lines of two, two and one: none is longer by more than one.
  await assert.rejects(run('m4'), { code: 'overloaded' })
  await assert.rejects(run('s1'), { code: 'overloaded' })
  for (const name of ['m0', 'n0', 's0', 'm1', 'n1', 'm2']) await end(name)
  await Promise.all([...held, single])
  assert.deepEqual(started, ['m0', 'n0', 's0', 'm1', 'n1', 'm2'])
})

test('keys that come again and again let one pass that comes rarely, also where they fill all places', async () => {
  const { started, job, end } = jobs()
  const queue = createFairQueue({ runsMax: 1, waitingMax: 3, waitingOfKeyMax: 1 })
  const run = (name: string) => queue.run(name.slice(0, 1), job(name))
  for (const name of ['a0', 'b0', 'c0', 'd0']) {
    const done = run(name)
    await end(name)
    await done
  }
  const held = ['a1', 'b1', 'c1'].map(run)
  const latest = run('d1')
  const rare = run('r0')
  await assert.rejects(latest, { code: 'overloaded' })
  await assert.rejects(run('d2'), { code: 'overloaded' })
  for (const name of ['a1', 'r0', 'b1', 'c1']) await end(name)
  await Promise.all([...held, rare])
  assert.deepEqual(started.slice(4), ['a1', 'r0', 'b1', 'c1'])
})

test('keys that are new each time do not hold up one that was served before', async () => {
  const { started, job, end } = jobs()
  const queue = createFairQueue({ runsMax: 1, waitingMax: 10, waitingOfKeyMax: 1 })
  const first = queue.run('known', job('known 0'))
  await end('known 0')
  await first
  let previous = 'new 0'
  void queue.run(previous, job(previous))
  const again = queue.run('known', job('known 1'))
  for (let n = 1; !started.includes('known 1'); n++) {
    assert.ok(n < 1_100, 'it waits for ever')
    void queue.run(`new ${n}`, job(`new ${n}`))
    await end(previous)
    previous = started.at(-1)!
  }
  await end('known 1')
  await again
})
