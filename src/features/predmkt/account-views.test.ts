import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { OutcomeOrder } from '#kernel/money/prediction-views.ts'
import type { SetupStatusView } from './account-contract.ts'
import { createAccountViews } from './account-views.ts'
import { createReadBudget } from './read-budget.ts'

const credentials = { owner: '0x1', key: 'key', secret: 'secret', passphrase: 'passphrase' }
const isLimited = (error: unknown) =>
  error instanceof Fault && error.code === 'rate_limited' && error.extras.budget === 'predmkt_account'

function viewsFixture(ordersCount = 1) {
  const asked: string[] = []
  const clock = { ms: 1_000_000, seq: 1n }
  const nowMs = () => clock.ms
  const views = createAccountViews({
    userSeq: async () => clock.seq,
    venue: {
      async openOrders() {
        asked.push('orders')
        return Array.from({ length: ordersCount }, () => ({}) as OutcomeOrder)
      },
      async keys() {
        asked.push('keys')
        return ['key']
      },
    },
    budget: createReadBudget(nowMs),
    nowMs,
  })
  const status = (userId: string) =>
    views.status(userId, async () => {
      asked.push('status')
      return {} as SetupStatusView
    })
  return { asked, clock, views, status }
}

test('open orders and the status are kept for two seconds, until an act of the user', async () => {
  const { asked, clock, views, status } = viewsFixture()
  for (let at = 0; at < 30; at += 1) {
    await views.openOrders('ada', credentials)
    await status('ada')
  }
  assert.deepEqual(asked, ['orders', 'status'])
  clock.seq += 1n
  await views.openOrders('ada', credentials)
  await status('ada')
  assert.equal(asked.length, 4)
  clock.ms += 2_000
  await status('ada')
  assert.equal(asked.length, 5)
})

test('a user reads the own account ten times in ten seconds, whatever acts come in between', async () => {
  const { asked, clock, views, status } = viewsFixture()
  for (let at = 0; at < 10; at += 1) {
    clock.seq += 1n
    await (at % 2 === 0 ? status('ada') : views.openOrders('ada', credentials))
  }
  clock.seq += 1n
  await assert.rejects(status('ada'), isLimited)
  await assert.rejects(views.openOrders('ada', credentials), isLimited)
  assert.equal(asked.length, 10)
  await status('bob')
})

test('a list of orders costs as many requests as it has pages', async () => {
  const { clock, views } = viewsFixture(1_000)
  await views.openOrders('ada', credentials)
  clock.seq += 1n
  await assert.rejects(views.openOrders('ada', credentials), isLimited)
})

test('the keys that the venue knows are asked for once in ten seconds', async () => {
  const { asked, clock, views } = viewsFixture()
  for (const ms of [0, 5_000, 4_999]) {
    clock.ms += ms
    await views.keys(credentials)
  }
  assert.deepEqual(asked, ['keys'])
  clock.ms += 1
  await views.keys(credentials)
  assert.equal(asked.length, 2)
})
