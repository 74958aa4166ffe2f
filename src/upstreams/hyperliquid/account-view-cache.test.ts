import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccountViews } from './account-view-cache.ts'
import type { Account, Hyperliquid } from './hyperliquid.ts'

const state = { accountValueUsd: '1' } as Account

type Brief = NonNullable<Parameters<typeof createAccountViews>[0]['brief']>

/** A clock that a test advances, and answers that count their requests. */
function createTestViews({
  perMinute = 1_200,
  subscribedSinceMs,
  brief,
}: {
  perMinute?: number
  subscribedSinceMs?: number
  brief?: Brief
} = {}) {
  const now = { ms: 1_000_000 }
  const asked = { account: 0, openOrders: 0 }
  const during = { openOrders: () => {} }
  const answers: Pick<Hyperliquid, 'account' | 'openOrders'> = {
    async account() {
      asked.account += 1
      return state
    },
    async openOrders() {
      asked.openOrders += 1
      during.openOrders()
      return []
    },
  }
  const venue = { ...answers, withUrgency: () => venue } as unknown as Hyperliquid
  const views = createAccountViews({
    venue,
    perMinute,
    clock: { now: () => new Date(now.ms) },
    subscribedSinceMs: () => subscribedSinceMs,
    ...(brief && { brief }),
  })
  return { now, asked, during, views, spent: () => asked.account * 2 + asked.openOrders * 20 }
}

test('an account that is viewed ten times a second costs two requests a second at most, and is always answered', async () => {
  const { now, views, spent } = createTestViews()
  for (let read = 0; read < 600; read += 1) {
    await Promise.all([views.openOrders('0xA'), views.account('0xA')])
    now.ms += 100
  }
  assert.ok(spent() <= 120, `${spent()} in a minute`)
  const { atMs } = await views.account('0xa')
  assert.ok(now.ms - atMs <= 30_000, `${now.ms - atMs} ms old`)
})

test('many accounts share the request budget of views', async () => {
  const { now, views, spent } = createTestViews()
  const accounts = Array.from({ length: 40 }, (_, at) => `0x${at}`)
  const look = () => Promise.all(accounts.flatMap((each) => [views.openOrders(each), views.account(each)]))
  await look()
  const first = spent()
  for (let second = 0; second < 60; second += 1) {
    now.ms += 1_000
    await look()
  }
  assert.ok(spent() - first <= 400, `${spent() - first} in a minute`)
})

test('an action of the gateway is shown by a new answer, also where the budget is used up', async () => {
  const { now, asked, views } = createTestViews()
  for (let look = 0; look < 50; look += 1) {
    await views.openOrders('0xA')
    now.ms += 100
  }
  const before = asked.openOrders
  views.invalidate('0xA')
  now.ms += 1
  await views.openOrders('0xA')
  assert.equal(asked.openOrders, before + 1)
})

test('a request from before an action does not answer a view after it, also within one millisecond', async () => {
  const { asked, views, during } = createTestViews()
  during.openOrders = () => views.invalidate('0xA')
  await views.openOrders('0xA')
  during.openOrders = () => {}
  await views.openOrders('0xA')
  assert.equal(asked.openOrders, 2)
  await views.openOrders('0xA')
  assert.equal(asked.openOrders, 2)
})

test('a subscribed account is shown from its stream, without a request', async () => {
  const { now, asked, views } = createTestViews({ subscribedSinceMs: 900_000 })
  views.applyPush('0xA', 'account', state)
  now.ms += 4_000
  assert.equal((await views.account('0xa')).atMs, 1_000_000)
  assert.equal(asked.account, 0)
  now.ms += 2_000
  await views.account('0xA')
  assert.equal(asked.account, 1)
})

test('without a request limit every view sends a request', async () => {
  const { asked, views } = createTestViews({ perMinute: 0 })
  for (let look = 0; look < 5; look += 1) await views.account('0xA')
  assert.equal(asked.account, 5)
})

/** Open orders of an account without orders, while a subscription is free. */
function briefly() {
  const subscriptions = { count: 0, hasPlace: true }
  const brief = (async (_user: string, _channel: string, accept: (message: unknown) => unknown) => {
    if (!subscriptions.hasPlace) return undefined
    subscriptions.count += 1
    return accept({ user: '0xa', orders: [] })
  }) as Brief
  return { subscriptions, brief }
}

test('an account without a subscription is read by brief subscriptions, without a request', async () => {
  const { subscriptions, brief } = briefly()
  const { now, asked, views } = createTestViews({ brief })
  for (let look = 0; look < 600; look += 1) {
    const { atMs } = await views.openOrders('0xA')
    assert.ok(now.ms - atMs <= 5_000)
    now.ms += 100
  }
  assert.ok(subscriptions.count <= 13, `${subscriptions.count} subscriptions in a minute`)
  views.invalidate('0xA')
  now.ms += 1
  assert.equal((await views.openOrders('0xA')).atMs, now.ms)
  assert.equal(asked.openOrders, 0)
})

test('a view sends a request where no brief subscription answers', async () => {
  const { subscriptions, brief } = briefly()
  const { asked, views } = createTestViews({ brief })
  subscriptions.hasPlace = false
  const seen = await Promise.all([views.openOrders('0xA'), views.openOrders('0xA')])
  assert.deepEqual(
    seen.map(({ value }) => value),
    [[], []],
  )
  assert.equal(asked.openOrders, 1)
})
