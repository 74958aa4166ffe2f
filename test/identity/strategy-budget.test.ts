/** What the runs of a strategy spend, counted by the accepting statement. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { PlannedAction } from '#kernel/task/policy-action.ts'
import { query } from '#store/query.ts'
import { acceptTask, endUnexecuted } from '../harness/accept-task.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { createIdentityApp, faultOf, type IdentityApp } from './identity-app.ts'
import { actionOf } from './intents.ts'

let app: IdentityApp
before(async () => {
  app = await createIdentityApp()
})
after(() => app[Symbol.asyncDispose]())

type Strategies = (ReturnType<typeof strategyOfUser> & { budget: number })[]
type Instance = IdentityApp | Awaited<ReturnType<IdentityApp['instance']>>
const dollars = (amount: number) => BigInt(amount) * 1_000_000n
const codeOf = (answer: Promise<unknown>) =>
  answer.then(
    () => 'ok',
    () => faultOf(answer).then(({ code, extras }) => String(extras.rule ?? code)),
  )

/** A user whose cap of the day has been lowered. */
async function userOf(perDay?: number): Promise<string> {
  const { userId } = await app.auth.authenticate(`Bearer ${await app.token(await app.register())}`)
  if (perDay !== undefined)
    await query(
      app.db,
      'insert into policy (user_id, version, per_day_micros, updated_at) values ($1, 1, $2, now())',
      [userId, dollars(perDay)],
    )
  return userId
}

/** A user, and orders of a strategy of the user with a budget. */
const strategyOf = async (budget: number, limits: { perDay?: number } = {}) =>
  strategyOfUser(await userOf(limits.perDay), budget)

function strategyOfUser(userId: string, budget: number) {
  const scheduleId = crypto.randomUUID()
  const start = (usd: number, change: Partial<PlannedAction> = {}, on: Instance = app): Promise<string> => {
    const { taskId: _id, ...planned } = actionOf(app, userId, { usdMicros: dollars(usd) })
    const action: PlannedAction = { ...planned, budget: { scheduleId, micros: dollars(budget) }, ...change }
    const { policy } = on.policy
    return acceptTask(on, userId, { action, check: () => policy.check(action) })
  }
  const spent = async (): Promise<bigint> => {
    const text = 'select strategy_spent($1)::text as micros'
    return BigInt((await query<{ micros: string }>(app.db, text, [scheduleId]))[0]?.micros ?? 0)
  }
  const settle = () => query(app.db, 'select strategy_spend_settle($1, now())', [scheduleId])
  return { userId, scheduleId, start, spent, settle }
}

const countOf = (codes: readonly string[], wanted: string) => codes.filter((code) => code === wanted).length

test('64 orders of a strategy at once, on two instances, never exceed its budget', async () => {
  const other = await app.instance()
  const { start, spent } = await strategyOf(1_000)
  const codes = await Promise.all(
    Array.from({ length: 64 }, (_, at) => codeOf(start(300, {}, at % 2 ? app : other))),
  )
  assert.deepEqual([countOf(codes, 'ok'), countOf(codes, 'budget_usd')], [3, 61])
  assert.equal(await spent(), dollars(900))
})

test('64 orders of strategies of one user at once never exceed the cap of the day', async () => {
  const other = await app.instance()
  const { start, spent } = await strategyOf(100_000, { perDay: 1_000 })
  const codes = await Promise.all(
    Array.from({ length: 64 }, (_, at) => codeOf(start(300, {}, at % 2 ? app : other))),
  )
  assert.deepEqual([countOf(codes, 'ok'), countOf(codes, 'per_day_usd')], [3, 61])
  assert.equal(await spent(), dollars(900))
})

test('64 runs of three strategies of one user at once exceed no budget and no cap, whatever their orders are worth', async () => {
  const other = await app.instance()
  const order = fc.record({ usd: fc.integer({ min: 1, max: 400 }), of: fc.nat(2), ends: fc.boolean() })
  const given = fc.record({
    budgets: fc.tuple(...Array.from({ length: 3 }, () => fc.integer({ min: 100, max: 2_000 }))),
    perDay: fc.integer({ min: 500, max: 4_000 }),
    orders: fc.array(order, { minLength: 64, maxLength: 64 }),
  })
  const worth = async (
    { usd, of, ends }: { usd: number; of: number; ends: boolean },
    on: Instance,
    strategies: Strategies,
  ) => {
    const strategy = strategies[of]!
    const code = await codeOf(
      strategy.start(usd, {}, on).then(async (taskId) => {
        if (ends) await endUnexecuted(app, taskId)
        // What was spent is read and settled beside the orders that are accepted.
        assert.ok((await strategy.spent()) <= dollars(strategy.budget))
        await strategy.settle()
      }),
    )
    assert.ok(['ok', 'budget_usd', 'per_day_usd'].includes(code), code)
    return code === 'ok' && !ends ? usd : 0
  }
  await fc.assert(
    fc.asyncProperty(given, async ({ budgets, perDay, orders }) => {
      const userId = await userOf(perDay)
      const strategies = budgets.map((budget) => ({ budget, ...strategyOfUser(userId, budget) }))
      const spent = await Promise.all(orders.map((each, at) => worth(each, at % 2 ? app : other, strategies)))
      const sumOf = (isWanted: (of: number) => boolean) =>
        spent.reduce((sum, usd, at) => sum + (isWanted(orders[at]!.of) ? usd : 0), 0)
      assert.ok(sumOf(() => true) <= perDay)
      for (const [n, { budget, ...strategy }] of strategies.entries()) {
        assert.ok(sumOf((of) => of === n) <= budget)
        assert.equal(await strategy.spent(), dollars(sumOf((of) => of === n)))
      }
    }),
    { numRuns: bySize({ short: 2, full: 10, nightly: 50 }), seed: proofSeed('strategy budgets') },
  )
})

test('the budget holds for as long as the strategy lives, and not for a day', async () => {
  const { start, spent } = await strategyOf(500)
  assert.equal(await codeOf(start(300)), 'ok')
  app.time.offsetMs += 90_000_000
  assert.equal(await codeOf(start(300)), 'budget_usd')
  assert.equal(await codeOf(start(200)), 'ok')
  app.time.offsetMs = 0
  assert.equal(await spent(), dollars(500))
})

test('what ended without an effect leaves room again, and exits count nothing', async () => {
  const { start, spent, settle } = await strategyOf(300)
  const taskId = await start(300)
  assert.equal(await codeOf(start(1)), 'budget_usd')
  assert.equal(await codeOf(start(100, { exit: true })), 'ok')
  await endUnexecuted(app, taskId)
  assert.equal(await spent(), 0n)
  await settle()
  assert.equal(await spent(), 0n)
  assert.equal(await codeOf(start(300)), 'ok')
})

test('an order counts what was filled once it has ended, and that stays when its task is deleted', async () => {
  const { start, spent, settle } = await strategyOf(300)
  const taskId = await start(300)
  await query(
    app.db,
    `update task set kind = 'perp_open', status = 'completed', outcome = 'executed', completed_at = now(), result = $2
     where id = $1`,
    [taskId, JSON.stringify({ filled_size: '0.002', avg_price: '100000.5', resting: false })],
  )
  await Promise.all([settle(), settle(), settle()])
  assert.equal(await spent(), 200_001_000n)
  await query(app.db, 'delete from task where id = $1', [taskId])
  await query(app.db, 'delete from policy_spend where task_id = $1', [taskId])
  assert.equal(await spent(), 200_001_000n)
  assert.equal(await codeOf(start(100)), 'budget_usd')
  assert.equal(await codeOf(start(99)), 'ok')
})
