import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#kernel/log.ts'
import { createNotifier, gapTopic, type MessageBus } from './notifier.ts'

/** A bus that delivers each payload to all subscribers at once. */
function inMemoryBus() {
  const sent: string[] = []
  const subscribers = new Set<(payload: string | undefined) => void>()
  const make = (): MessageBus => ({
    async publish(payload) {
      sent.push(payload)
      for (const onPayload of subscribers) onPayload(payload)
    },
    subscribe(onPayload) {
      subscribers.add(onPayload)
      onPayload(undefined)
      return { [Symbol.asyncDispose]: async () => void subscribers.delete(onPayload) }
    },
  })
  return { sent, make }
}

const notifierOn = (
  on: Pick<ReturnType<typeof inMemoryBus>, 'make'>,
  instanceId: string,
  nowMs = () => 100_000,
) => createNotifier({ bus: on.make(), instanceId, log: silentLog, nowMs })

/** Resolves when the bus has accepted everything. */
const published = () => new Promise((resolve) => setImmediate(resolve))

test('without peers only local listeners are notified', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const on = inMemoryBus()
  await using alone = notifierOn(on, 'a')
  const received: string[] = []
  using _waiting = alone.on('t:1', () => received.push('t:1'))
  alone.setPeerCount(0)
  alone.notify(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(received, ['t:1'])
  assert.deepEqual(on.sent, ['a'], 'only the first message')
  alone.broadcast(['r:token'])
  t.mock.timers.tick(10)
  assert.deepEqual(on.sent, ['a', 'a,r:token'], 'topics that no poll covers are published even without peers')
})

test('a first message reaches a new instance before any peer is counted', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 100_000
  const on = inMemoryBus()
  await using first = notifierOn(on, 'a', () => nowMs)
  first.setPeerCount(0)
  await using second = notifierOn(on, 'b')
  const received: string[] = []
  using _waiting = second.on('t:1', () => received.push('t:1'))
  // Counted before the other instance could be seen.
  first.setPeerCount(0)
  first.notify(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(received, ['t:1'])
  await published()
  nowMs += 30_001
  first.setPeerCount(0)
  first.notify(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(received, ['t:1'], 'the assumption of a peer has ended')
  first.setPeerCount(1)
  first.notify(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(received, ['t:1', 't:1'])
})

test('before the first peer count everything is published', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const on = inMemoryBus()
  await using first = notifierOn(on, 'a')
  first.notify(['t:1'])
  t.mock.timers.tick(10)
  assert.deepEqual(on.sent, ['a', 'a,t:1'])
})

test('while one payload is sent, the topics that follow form the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const payloads: string[] = []
  const replies: (() => void)[] = []
  const slow = {
    make: (): MessageBus => ({
      async publish(payload) {
        payloads.push(payload)
        await new Promise<void>((resolve) => replies.push(resolve))
      },
      subscribe: () => ({ [Symbol.asyncDispose]: async () => {} }),
    }),
  }
  const notifications = notifierOn(slow, 'a', () => performance.now())
  for (let n = 0; n < 40; n++) {
    notifications.notify([`t:${n % 20}`])
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
  notifications.notify(['t:last'])
  t.mock.timers.tick(10)
  assert.equal(payloads[2], 'a,t:last')
  replies.shift()?.()
  await notifications[Symbol.asyncDispose]()
})

test('topics that no poll covers are sent again until the bus accepts them', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const taken: string[] = []
  let isAway = true
  const failing = {
    make: (): MessageBus => ({
      async publish(payload) {
        if (isAway) throw new Error('the database is away')
        taken.push(payload)
      },
      subscribe: () => ({ [Symbol.asyncDispose]: async () => {} }),
    }),
  }
  await using notifier = notifierOn(failing, 'a')
  notifier.broadcast(['r:token'])
  notifier.notify(['t:1'])
  t.mock.timers.tick(10)
  await published()
  t.mock.timers.tick(10_000)
  await published()
  isAway = false
  t.mock.timers.tick(10_000)
  await published()
  assert.deepEqual(taken, ['a,r:token'], 'other topics are not sent again')
  notifier.notify(['t:2'])
  t.mock.timers.tick(10)
  await published()
  assert.deepEqual(taken, ['a,r:token', 'a,t:2'], 'and it is sent once')
})

test('after a gap in which notifications may be lost, listeners of every topic are notified of the gap', async () => {
  let reconnect: (payload: undefined) => void = () => undefined
  const broken = {
    make: (): MessageBus => ({
      publish: async () => {},
      subscribe(listener) {
        reconnect = listener
        return { [Symbol.asyncDispose]: async () => {} }
      },
    }),
  }
  await using notifier = notifierOn(broken, 'a')
  const received: string[] = []
  notifier.onAny((topic) => received.push(topic))
  reconnect(undefined)
  assert.deepEqual(received, [gapTopic])
})
