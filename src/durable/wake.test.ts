import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#kernel/log.ts'
import { gapTopic, type WakeBus, wake } from './wake.ts'

/** A bus on which everybody hears everything, at once. */
function bus() {
  const said: string[] = []
  const subscribers = new Set<(payload: string | undefined) => void>()
  const make = (): WakeBus => ({
    async publish(payload) {
      said.push(payload)
      for (const hear of subscribers) hear(payload)
    },
    subscribe(hear) {
      subscribers.add(hear)
      hear(undefined)
      return { [Symbol.asyncDispose]: async () => void subscribers.delete(hear) }
    },
  })
  return { said, make }
}

const join = (on: Pick<ReturnType<typeof bus>, 'make'>, instanceId: string, nowMs = () => 100_000) =>
  wake({ bus: on.make(), instanceId, log: silentLog, nowMs })

/** What was handed to the bus has been answered. */
const published = () => new Promise((resolve) => setImmediate(resolve))

test('an instance that is alone tells its own waiters and nobody else', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const on = bus()
  await using alone = join(on, 'a')
  const heard: string[] = []
  using _waiting = alone.on('t:1', () => heard.push('t:1'))
  alone.company(0)
  alone.hint(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(heard, ['t:1'])
  assert.deepEqual(on.said, ['a'], 'only the greeting')
  alone.proclaim(['r:token'])
  t.mock.timers.tick(10)
  assert.deepEqual(on.said, ['a', 'a,r:token'], 'what nobody would find out is told all the same')
})

test('a new instance is greeted at once, whatever was counted before', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 100_000
  const on = bus()
  await using first = join(on, 'a', () => nowMs)
  first.company(0)
  await using second = join(on, 'b')
  const heard: string[] = []
  using _waiting = second.on('t:1', () => heard.push('t:1'))
  // Counted before the other one could be seen.
  first.company(0)
  first.hint(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(heard, ['t:1'])
  await published()
  nowMs += 30_001
  first.company(0)
  first.hint(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(heard, ['t:1'], 'it was not counted for long, so it is gone')
  first.company(1)
  first.hint(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(heard, ['t:1', 't:1'])
})

test('before anything is counted, everybody is told', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const on = bus()
  await using first = join(on, 'a')
  first.hint(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(on.said, ['a', 'a,t:1'])
})

test('while one payload is on its way, the topics that follow form the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const payloads: string[] = []
  const replies: (() => void)[] = []
  const slow = {
    make: (): WakeBus => ({
      async publish(payload) {
        payloads.push(payload)
        await new Promise<void>((resolve) => replies.push(resolve))
      },
      subscribe: () => ({ [Symbol.asyncDispose]: async () => {} }),
    }),
  }
  const wakes = join(slow, 'a', () => performance.now())
  for (let n = 0; n < 40; n++) {
    wakes.hint([`t:${n % 20}`])
    t.mock.timers.tick(10)
  }
  assert.deepEqual(payloads, ['a,t:0'], 'one at a time')
  replies.shift()?.()
  await published()
  assert.equal(payloads.length, 2)
  assert.deepEqual(
    payloads[1]?.split(',').toSorted(),
    ['a', ...Array.from({ length: 20 }, (_, n) => `t:${n}`)].toSorted(),
    'each topic once',
  )
  replies.shift()?.()
  await published()
  wakes.hint(['t:last'])
  t.mock.timers.tick(10)
  assert.equal(payloads[2], 'a,t:last')
  replies.shift()?.()
  await wakes[Symbol.asyncDispose]()
})

test('what nobody finds out by looking is handed to the bus until the bus takes it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const taken: string[] = []
  let isAway = true
  const failing = {
    make: (): WakeBus => ({
      async publish(payload) {
        if (isAway) throw new Error('the database is away')
        taken.push(payload)
      },
      subscribe: () => ({ [Symbol.asyncDispose]: async () => {} }),
    }),
  }
  await using wakes = join(failing, 'a')
  wakes.proclaim(['r:token'])
  wakes.hint(['t:1'])
  t.mock.timers.tick(10)
  await published()
  t.mock.timers.tick(10_000)
  await published()
  isAway = false
  t.mock.timers.tick(10_000)
  await published()
  assert.deepEqual(taken, ['a,r:token'], 'a hint is left to the polls')
  wakes.hint(['t:2'])
  t.mock.timers.tick(10)
  await published()
  assert.deepEqual(taken, ['a,r:token', 'a,t:2'], 'and it is told once')
})

test('after a gap in which hints may have been lost, those who hear every topic are told of it', async () => {
  let reconnect: (payload: undefined) => void = () => undefined
  const broken = {
    make: (): WakeBus => ({
      publish: async () => {},
      subscribe(hear) {
        reconnect = hear
        return { [Symbol.asyncDispose]: async () => {} }
      },
    }),
  }
  await using wakes = join(broken, 'a')
  const heard: string[] = []
  wakes.each((topic) => heard.push(topic))
  reconnect(undefined)
  assert.deepEqual(heard, [gapTopic])
})
