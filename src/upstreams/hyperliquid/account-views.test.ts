import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accountViews } from './account-views.ts'
import type { Account, Hyperliquid } from './hyperliquid.ts'

const state = { accountValueUsd: '1' } as Account

/** A clock that a test moves, and answers that count their questions. */
function scene({
  perMinute = 1_200,
  followedSinceMs,
}: {
  perMinute?: number
  followedSinceMs?: number
} = {}) {
  const now = { ms: 1_000_000 }
  const asked = { account: 0, openOrders: 0 }
  const answers: Pick<Hyperliquid, 'account' | 'openOrders'> = {
    async account() {
      asked.account += 1
      return state
    },
    async openOrders() {
      asked.openOrders += 1
      return []
    },
  }
  const venue = { ...answers, at: () => venue } as unknown as Hyperliquid
  const views = accountViews({
    venue,
    perMinute,
    clock: { now: () => new Date(now.ms) },
    followedSinceMs: () => followedSinceMs,
  })
  return { now, asked, views, spent: () => asked.account * 2 + asked.openOrders * 20 }
}

test('an account that is looked at ten times a second costs two a second at most, and is always answered', async () => {
  const { now, views, spent } = scene()
  for (let look = 0; look < 600; look += 1) {
    await Promise.all([views.openOrders('0xA'), views.account('0xA')])
    now.ms += 100
  }
  assert.ok(spent() <= 120, `${spent()} in a minute`)
  const { atMs } = await views.account('0xa')
  assert.ok(now.ms - atMs <= 30_000, `${now.ms - atMs} ms old`)
})

test('many accounts share what views may spend together', async () => {
  const { now, views, spent } = scene()
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

test('what the gateway did is shown by a new answer, also where the share is used up', async () => {
  const { now, asked, views } = scene()
  for (let look = 0; look < 50; look += 1) {
    await views.openOrders('0xA')
    now.ms += 100
  }
  const before = asked.openOrders
  views.touched('0xA')
  now.ms += 1
  await views.openOrders('0xA')
  assert.equal(asked.openOrders, before + 1)
})

test('an account that is followed is shown as the stream tells it, without a question', async () => {
  const { now, asked, views } = scene({ followedSinceMs: 900_000 })
  views.pushed('0xA', 'account', state)
  now.ms += 4_000
  assert.equal((await views.account('0xa')).atMs, 1_000_000)
  assert.equal(asked.account, 0)
  now.ms += 2_000
  await views.account('0xA')
  assert.equal(asked.account, 1)
})

test('where nobody counts every view asks', async () => {
  const { asked, views } = scene({ perMinute: 0 })
  for (let look = 0; look < 5; look += 1) await views.account('0xA')
  assert.equal(asked.account, 5)
})
