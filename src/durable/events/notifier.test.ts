import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { silentLog } from '#kernel/log.ts'
import {
  createNotifier,
  gapTopic,
  type MessageBus,
  type Notifier,
  readyTopic,
  taskTopic,
  userTopic,
} from './notifier.ts'

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

const alice = userTopic('01890000-0000-7000-8000-0000000a11ce')
const bob = userTopic('01890000-0000-7000-8000-00000000b0b0')
/** By now the peers have answered. */
const answeredMs = 5_001

/** Time for timers and for instances on one bus. */
function instancesOn(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const on = inMemoryBus()
  let atMs = 100_000
  return {
    sent: on.sent,
    make: (instanceId: string) => notifierOn(on, instanceId, () => atMs),
    async pass(ms: number) {
      atMs += ms
      t.mock.timers.tick(ms)
      await published()
    },
  }
}
const listen = (notifier: Notifier, topic: string) => {
  const received: string[] = []
  return Object.assign(
    notifier.on(topic, () => received.push(topic)),
    { received },
  )
}

test('a topic is published only where another instance listens', async (t) => {
  const { make, sent, pass } = instancesOn(t)
  await using first = make('a')
  await using second = make('b')
  using here = listen(first, alice)
  await pass(answeredMs)
  sent.length = 0
  first.notify([alice, readyTopic])
  await pass(10)
  assert.equal(here.received.length, 1, 'local listeners are notified')
  assert.deepEqual(sent, [], 'nobody else listens')
  using there = listen(second, alice)
  await pass(10)
  sent.length = 0
  first.notify([alice, bob])
  await pass(10)
  assert.deepEqual(sent, [`a,${alice}`])
  assert.equal(there.received.length, 1)
})

test('a task is published where its user is of interest', async (t) => {
  const { make, pass } = instancesOn(t)
  await using first = make('a')
  await using second = make('b')
  await pass(answeredMs)
  const ended = taskTopic('01890000-0000-7000-8000-000000000001', alice.slice(2))
  using there = listen(second, ended)
  await pass(10)
  first.notify([ended])
  await pass(10)
  assert.equal(there.received.length, 1)
})

test('an instance that has just connected publishes everything until the others have announced their interests', async (t) => {
  const { make, sent, pass } = instancesOn(t)
  await using first = make('a')
  using here = listen(first, alice)
  await pass(answeredMs)
  await using second = make('b')
  second.notify([bob])
  await pass(10)
  assert.ok(
    sent.some((payload) => payload.startsWith('b,') && payload.endsWith(bob)),
    'no other instance is known yet',
  )
  await pass(answeredMs)
  sent.length = 0
  second.notify([alice, bob])
  await pass(10)
  assert.deepEqual(sent, [`b,${alice}`], 'the earlier interests were announced again')
  assert.equal(here.received.length, 1)
})

test('an interest is announced again while there are listeners, and is forgotten afterwards', async (t) => {
  const { make, sent, pass } = instancesOn(t)
  await using first = make('a')
  await using second = make('b')
  const there = listen(second, alice)
  const reaches = async () => {
    const before = sent.length
    first.notify([alice])
    await pass(10)
    return sent.slice(before).includes(`a,${alice}`)
  }
  for (let hour = 0; hour < 2; hour += 0.25) await pass(15 * 60_000)
  assert.ok(await reaches(), 'long after it was announced first')
  there[Symbol.dispose]()
  await pass(60_000)
  for (let minute = 0; minute < 15; minute++) await pass(60_000)
  assert.equal(await reaches(), false)
  using again = listen(second, alice)
  await pass(10)
  assert.ok(await reaches(), 'it is announced at once')
  assert.equal(again.received.length, 1)
})

test('topics that no poll covers are published although nobody listens to them', async (t) => {
  const { make, sent, pass } = instancesOn(t)
  await using alone = make('a')
  await pass(answeredMs)
  sent.length = 0
  alone.broadcast(['r:token'])
  await pass(10)
  assert.deepEqual(sent, ['a,r:token'])
})

test('no payload is longer than the bus takes', async (t) => {
  const { make, sent, pass } = instancesOn(t)
  await using many = make('01890000-0000-7000-8000-00000000000a')
  using listening = new DisposableStack()
  for (let user = 0; user < 5_000; user++)
    listening.use(
      listen(many, userTopic(`01890000-0000-7000-8000-00000000${user.toString(16).padStart(4, '0')}`)),
    )
  await pass(answeredMs)
  assert.ok(sent.length < 8, `${sent.length} payloads`)
  assert.ok(sent.every((payload) => payload.length < 8_000))
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
