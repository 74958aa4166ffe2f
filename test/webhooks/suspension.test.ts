/** Webhooks of suspended users get nothing, and go on where they were when the suspension is lifted. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import type { Instance, TestUser } from '../harness/instance.ts'
import { idsOf, openReceiver, type Receiver } from './receiver.ts'
import { createWebhookApp, type WebhookApp } from './webhook-app.ts'

let app: WebhookApp
let other: Instance & AsyncDisposable
let receiver: Receiver
before(async () => {
  app = await createWebhookApp()
  other = await app.open()
})
after(async () => {
  await other?.[Symbol.asyncDispose]()
  await app?.[Symbol.asyncDispose]()
})
beforeEach(async () => {
  receiver = await openReceiver()
})
afterEach(() => receiver[Symbol.asyncDispose]())

const auth = () => app.main.features.auth
/** Whatever was due before this call has been claimed when the message of this user has arrived. */
async function pollsPass(): Promise<void> {
  const { transactions, taskEngine } = app.main
  for (let poll = 0; poll < 2; poll++) {
    const witness = await app.newUser()
    const path = `/witness/${witness.id}`
    await app.create(witness, receiver.url(path))
    // Without a hint, so that a poll finds it.
    await transactions.run((tx) =>
      taskEngine.events.add(tx, witness.id, [{ type: 'security.flagged', data: {} }]),
    )
    await receiver.until(1, path)
  }
}
const attemptsOf = async (user: TestUser, id: string) => (await app.shown(user, id)).failed_attempts

test('nothing is delivered to a suspended user by any instance, and all of it afterwards', async () => {
  const user = await app.newUser()
  await app.create(user, receiver.url('/user'))
  await app.happen(user)
  await receiver.until(1, '/user')
  await auth().suspend(user.id)
  await app.happen(user, 2)
  await app.happen(user, 1, other)
  await pollsPass()
  assert.deepEqual(idsOf(receiver.at('/user')), ['2'])
  // Lifted at the instance that has not suspended.
  await other.features.auth.resume(user.id)
  assert.deepEqual(idsOf(await receiver.until(4, '/user')), ['2', '3', '4', '5'])
  await app.happen(user, 1, other)
  assert.deepEqual(idsOf(await receiver.until(5, '/user')).at(-1), '6')
})

test('a suspension during a delivery ends it after the request under way, which is not repeated', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url('/user'))
  const held: ServerResponse[] = []
  receiver.answer(({ path, event }) =>
    path === '/user' && event.id === '2' ? (response) => void held.push(response) : 200,
  )
  await app.happen(user, 3)
  await receiver.until(1, '/user')
  await auth().suspend(user.id)
  held.shift()?.writeHead(200).end()
  await app.until(
    async () => ((await app.shown(user, id)).delivered_through === '2' ? true : undefined),
    'the answer is stored',
  )
  await pollsPass()
  assert.deepEqual(idsOf(receiver.at('/user')), ['2'])
  await auth().resume(user.id)
  assert.deepEqual(idsOf(await receiver.until(3, '/user')), ['2', '3', '4'])
})

test('a message that is tried again waits for the end of the suspension', async () => {
  const user = await app.newUser()
  const { webhook_id: id } = await app.create(user, receiver.url('/user'))
  receiver.answer(({ path }) => (path === '/user' ? 500 : 200))
  await app.happen(user)
  await app.until(async () => ((await attemptsOf(user, id)) === 1 ? true : undefined), 'it has failed')
  await auth().suspend(user.id)
  app.travel(60_000)
  await pollsPass()
  assert.equal(receiver.at('/user').length, 1)
  receiver.answer(() => 200)
  await auth().resume(user.id)
  assert.deepEqual(idsOf(await receiver.until(2, '/user')), ['2', '2'])
})

test('events that were deleted during a suspension are replaced by one reset', async () => {
  const user = await app.newUser()
  await app.create(user, receiver.url('/user'))
  await auth().suspend(user.id)
  await app.happen(user, 3)
  await app.rows('delete from user_event where user_id = $1 and seq <= 3 returning seq', [user.id])
  await auth().resume(user.id)
  const messages = await receiver.until(2, '/user')
  assert.deepEqual(
    messages.map(({ event }) => [event.id, event.type]),
    [
      ['3', 'reset'],
      ['4', 'security.flagged'],
    ],
  )
})
