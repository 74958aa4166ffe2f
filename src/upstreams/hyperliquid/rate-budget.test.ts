import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import {
  actionUrgency,
  actionWeight,
  type Budget,
  createRateBudget,
  infoWeight,
  itemsWeight,
} from './rate-budget.ts'
import type { Urgency } from './urgency.ts'
import { createWeightWindow } from './weight-window.ts'

/** A clock that a test advances, with its timers. */
function manualClock() {
  let now = 1_000_000
  const later = new Set<{ at: number; run: () => void }>()
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    nowMs: () => now,
    after(ms: number, run: () => void) {
      const item = { at: now + ms, run }
      later.add(item)
      return () => later.delete(item)
    },
    async forward(ms: number) {
      const end = now + ms
      for (;;) {
        const [next] = [...later].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
        if (!next) break
        later.delete(next)
        now = Math.max(now, next.at)
        next.run()
        await settled()
      }
      now = end
      await settled()
    },
  }
}

const ask = (budget: Budget, weight: number, urgency: Urgency, account?: string) => {
  const said: { state: 'waiting' | 'sent' | number } = { state: 'waiting' }
  budget.admit(weight, urgency, account).then(
    () => {
      said.state = 'sent'
    },
    (fault: Fault) => {
      said.state = Number(fault.extras.retry_after)
    },
  )
  return said
}

test('a call costs the documented weight', () => {
  const types = ['allMids', 'orderStatus', 'clearinghouseState', 'userRole', 'frontendOpenOrders']
  assert.deepEqual(types.map(infoWeight), [2, 2, 2, 60, 20])
  assert.deepEqual(
    [0, 19, 20, 2_000].map((n) => itemsWeight('userFillsByTime', n)),
    [0, 0, 1, 100],
  )
  assert.equal(itemsWeight('frontendOpenOrders', 200), 0)
  const orders = (n: number) => ({ type: 'order', orders: Array(n).fill({ r: false }) })
  assert.deepEqual(
    [1, 39, 40, 80].map((n) => actionWeight(orders(n))),
    [1, 1, 2, 3],
  )
  assert.equal(actionWeight({ type: 'withdraw3' }), 1)
})

test('cancels and reduce-only orders are exits', () => {
  assert.equal(actionUrgency({ type: 'cancel', cancels: [{}] }), 'exit')
  assert.equal(actionUrgency({ type: 'order', orders: [{ r: true }, { r: true }] }), 'exit')
  assert.equal(actionUrgency({ type: 'order', orders: [{ r: false }, { r: true }] }), 'work')
  assert.equal(actionUrgency({ type: 'order', orders: [{ a: 10_001, b: false, r: false }] }), 'exit')
  assert.equal(actionUrgency({ type: 'order', orders: [{ a: 10_001, b: true, r: true }] }), 'work')
  assert.equal(actionUrgency({ type: 'order', orders: [{ a: 1, b: false, r: false }] }), 'work')
  assert.equal(actionUrgency({ type: 'updateLeverage' }), 'work')
})

test('no more than the budget is spent within any minute', () => {
  const window = createWeightWindow(100)
  const spent: { at: number; weight: number }[] = []
  for (let now = 0; now < 400_000; now += 777) {
    const weight = [2, 20, 1, 60][(now / 777) % 4]!
    if (window.waitMs(weight, 'exit', now) > 0) continue
    window.add(weight, now)
    spent.push({ at: now, weight })
  }
  const most = Math.max(
    ...spent.map(({ at }) =>
      spent
        .filter((each) => each.at >= at && each.at < at + 60_000)
        .reduce((sum, each) => sum + each.weight, 0),
    ),
  )
  assert.ok(most <= 100 && most >= 60, String(most))
})

test('a waiting call knows exactly when its weight is free', () => {
  const window = createWeightWindow(100)
  window.add(40, 0)
  window.add(40, 10_000)
  assert.equal(window.waitMs(20, 'exit', 20_000), 0)
  assert.equal(window.waitMs(21, 'exit', 20_000), 41_000)
  assert.equal(window.waitMs(61, 'exit', 20_000), 51_000)
  assert.equal(window.waitMs(60, 'exit', 61_000), 0)
})

test('the last parts of the budget are reserved for more urgent classes', () => {
  const window = createWeightWindow(100)
  window.add(30, 0)
  const free = (urgency: Urgency) => window.waitMs(10, urgency, 1_000) === 0
  assert.deepEqual((['background', 'admission', 'work', 'exit'] as const).map(free), [
    false,
    true,
    true,
    true,
  ])
  window.add(50, 0)
  assert.deepEqual((['background', 'admission', 'work', 'exit'] as const).map(free), [
    false,
    false,
    true,
    true,
  ])
  window.add(5, 0)
  assert.deepEqual((['background', 'admission', 'work', 'exit'] as const).map(free), [
    false,
    false,
    false,
    true,
  ])
})

test('waiting exits precede calls that waited longer, and a call with too long a wait is rejected with the duration', async () => {
  const time = manualClock()
  const budget = createRateBudget({ perMinute: 100, ...time })
  await budget.admit(100, 'exit')
  const early = ask(budget, 1, 'exit')
  await time.forward(58_500)
  assert.equal(early.state, 61)
  const work = ask(budget, 50, 'work')
  const exit = ask(budget, 60, 'exit')
  await time.forward(2_499)
  assert.deepEqual([work.state, exit.state], ['waiting', 'waiting'])
  await time.forward(1)
  assert.deepEqual([work.state, exit.state], ['waiting', 'sent'])
  await time.forward(1_000)
  assert.equal(work.state, 61)
  assert.equal(budget.used(), 60)
})

test('after a 429 nothing is sent for a while, longer each time, or as long as the venue says', async () => {
  const time = manualClock()
  const budget = createRateBudget({ perMinute: 100, ...time })
  const waits = async (retryAfterMs?: number) => {
    budget.refused(retryAfterMs)
    const said = ask(budget, 1, 'background')
    await time.forward(0)
    return said.state
  }
  assert.deepEqual([await waits(), await waits(), await waits(), await waits(30_000)], [1, 2, 4, 30])
  await time.forward(30_000)
  await budget.admit(1, 'background')
  budget.answered()
  assert.equal(await waits(), 1)
})

test('a rejection is a fault that says that nothing was sent', async () => {
  const budget = createRateBudget({ perMinute: 10, ...manualClock() })
  await budget.admit(10, 'exit')
  await assert.rejects(
    budget.admit(1, 'background'),
    (fault) => fault instanceof Fault && fault.code === 'unavailable' && fault.retryable,
  )
})

test('one account spends at most its share of a class, and the rejection names the owner of the budget', async () => {
  const time = manualClock()
  const budget = createRateBudget({ perMinute: 1_200, ...time })
  let spent = 0
  for (let question = 0; question < 100; question += 1)
    await budget.admit(20, 'view', 'one').then(
      () => {
        spent += 20
      },
      () => undefined,
    )
  assert.equal(spent, 300)
  await assert.rejects(
    budget.admit(20, 'view', 'one'),
    (fault) =>
      fault instanceof Fault &&
      fault.extras.budget_of === 'account' &&
      fault.extras.budget_class === 'view' &&
      fault.extras.retry_after === 61 &&
      /share of this account for views\. .* try again in 61 s/.test(fault.message),
  )
  await budget.admit(20, 'view', 'another')
  await budget.admit(20, 'exit', 'one')
})

test('an account that closes without pause leaves a share to the closes of others', async () => {
  const time = manualClock()
  const budget = createRateBudget({ perMinute: 1_200, ...time })
  const own = Array.from({ length: 400 }, () => ask(budget, 2, 'exit', 'one'))
  await time.forward(0)
  assert.equal(own.filter(({ state }) => state === 'sent').length, 240)
  const other = ask(budget, 2, 'exit', 'another')
  await time.forward(0)
  assert.equal(other.state, 'sent')
})

test('one account that spends in every class leaves room for the closes of others', async () => {
  const time = manualClock()
  const budget = createRateBudget({ perMinute: 1_200, ...time })
  for (const urgency of ['view', 'admission', 'work', 'exit'] as const)
    for (let turn = 0; turn < 600; turn += 1) ask(budget, 1, urgency, 'one')
  await time.forward(0)
  assert.ok(budget.used() <= 720, `${budget.used()} of 1200 are spent by one account`)
  const others = Array.from({ length: 100 }, () => ask(budget, 2, 'exit', 'others'))
  await time.forward(0)
  assert.deepEqual(new Set(others.map(({ state }) => state)), new Set(['sent']))
})

test('an account with few closes can always close, however many others spend without pause', async () => {
  const time = manualClock()
  const budget = createRateBudget({ perMinute: 1_200, ...time })
  for (let turn = 0; turn < 300; turn += 1)
    for (const account of ['one', 'two', 'three', 'four']) ask(budget, 2, 'exit', account)
  await time.forward(0)
  assert.equal(budget.used(), 1_080)
  const close = ask(budget, 2, 'exit', 'quiet')
  await time.forward(0)
  assert.equal(close.state, 'sent')
})

test('three accounts that call without pause leave a share to another one', async () => {
  const time = manualClock()
  const budget = createRateBudget({ perMinute: 1_200, ...time })
  for (let turn = 0; turn < 600; turn += 1)
    for (const account of ['one', 'two', 'three'])
      for (const spending of ['view', 'admission'] as const) ask(budget, 1, spending, account)
  await time.forward(0)
  const other = Array.from({ length: 20 }, () => ask(budget, 3, 'admission', 'quiet'))
  await time.forward(0)
  assert.deepEqual(new Set(other.map(({ state }) => state)), new Set(['sent']))
})

test('calls without pause expire after a minute like others', () => {
  const window = createWeightWindow(1_200)
  let refused = 0
  for (let now = 0; now < 300_000; now += 200)
    if (window.waitMs(2, 'exit', now) > 0) refused += 1
    else window.add(2, now)
  assert.equal(refused, 0)
  assert.ok(window.used(300_000) <= 620, String(window.used(300_000)))
})

test('a withdrawal from the venue is an exit', () => {
  assert.equal(actionUrgency({ type: 'withdraw3' }), 'exit')
})
