import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyedMutex } from './keyed-mutex.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

function mutexFixture() {
  const mutex = createKeyedMutex()
  const started: string[] = []
  const gates = new Map<string, PromiseWithResolvers<string>>()
  const run = (key: string, name: string) =>
    mutex.run(key, () => {
      started.push(name)
      const gate = Promise.withResolvers<string>()
      gates.set(name, gate)
      return gate.promise
    })
  return { mutex, started, run, end: (name: string) => gates.get(name)!.resolve(name), gates }
}

test('runs of one key follow each other in order, and another key waits for none of them', async () => {
  const { mutex, started, run, end } = mutexFixture()
  const runs = [run('a', 'a1'), run('a', 'a2'), run('a', 'a3'), run('b', 'b1')]
  assert.deepEqual(started, ['a1', 'b1'])
  assert.deepEqual([mutex.pending('a'), mutex.pending('b')], [3, 1])
  end('a1')
  assert.equal(await runs[0], 'a1')
  await settled()
  assert.deepEqual(started, ['a1', 'b1', 'a2'])
  end('a2')
  await settled()
  end('a3')
  end('b1')
  assert.deepEqual(await Promise.all(runs), ['a1', 'a2', 'a3', 'b1'])
  await settled()
  assert.deepEqual([mutex.pending('a'), mutex.pending('b')], [0, 0])
})

test('a run that fails fails for its caller alone, and the next one goes on', async () => {
  const { mutex, run, end, gates } = mutexFixture()
  const failed = run('a', 'a1')
  const next = run('a', 'a2')
  gates.get('a1')!.reject(new Error('away'))
  await assert.rejects(failed, /away/)
  await settled()
  end('a2')
  assert.equal(await next, 'a2')
  const thrown = mutex.run('a', () => {
    throw new Error('at once')
  })
  await assert.rejects(thrown, /at once/)
  await settled()
  assert.equal(mutex.pending('a'), 0)
})

test('a mutex is drained once the runs so far have ended, also where one failed', async () => {
  const { mutex, run, end, gates } = mutexFixture()
  const failed = assert.rejects(run('a', 'a1'), /away/)
  void run('a', 'a2')
  void run('b', 'b1')
  let isDrained = false
  const drained = mutex.drained().then(() => {
    isDrained = true
  })
  gates.get('a1')!.reject(new Error('away'))
  end('b1')
  await settled()
  assert.equal(isDrained, false)
  end('a2')
  await drained
  await failed
  await createKeyedMutex().drained()
})
