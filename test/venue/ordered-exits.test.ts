/** A schedule whose query orders an exit needs the scope of the exit, and its runs are judged by the exit. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { endOfRun } from '../chat/schedule-fixture.ts'
import { eventually } from '../harness/gateway.ts'
import { startReconciler } from './reconcilers.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

type Schedule = { schedule_id: string; status: string; compiled: { operations: string[] } }

describe('a query that orders an exit', () => {
  let app: VenueApp
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp()
    parts.use(startReconciler(app, app.main, { tickMs: 200, tradingMs: 1_000, idleMs: 5_000 }))
    await app.price('BTC', 100_000)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  /** May trade, and lets chats start 5,000 USD a day. */
  async function customer(): Promise<User> {
    const user = await app.trader()
    await query(
      app.main.db,
      `insert into policy (user_id, version, chat_per_day_micros, updated_at) values ($1, 1, $2, now())
       on conflict (user_id) do update set chat_per_day_micros = $2, version = policy.version + 1`,
      [user.id, 5_000_000_000],
    )
    await app.main.taskEngine.transact((tx) => app.main.features.credits.grantSignup(tx, user.id, new Date()))
    return user
  }
  const withoutTrade = (user: User): User => ({
    ...user,
    caller: { ...user.caller, scopes: new Set(['read', 'chat']) },
  })
  const scheduled = async (name: string, input: object, user: User): Promise<Schedule> =>
    (await app.call(`schedules_${name}`, input, user)) as unknown as Schedule
  const assertNeedsTrade = (name: string, input: object, user: User) =>
    assert.rejects(scheduled(name, input, withoutTrade(user)), { code: 'insufficient_scope' }, name)
  const run = async ({ schedule_id }: Schedule, user: User) => {
    const { task_id } = await app.call('schedules_run', { schedule_id }, user)
    return endOfRun(app.main, task_id, 60_000)
  }
  const sizes = async (user: User) =>
    (await app.call('perp_orders', {}, user)).positions.map(({ asset, size }) => [asset, size])
  const daily = 'every day at 09:00 UTC'

  test('is activated and run by nobody who could not call the exit', async () => {
    const user = await app.addUser()
    const words = { query: 'close my btc long', schedule: daily }
    await assertNeedsTrade('create', { ...words, status: 'active' }, user)
    const schedule = await scheduled('create', words, withoutTrade(user))
    assert.deepEqual(schedule.compiled.operations, ['perp_close'])
    for (const name of ['activate', 'run'])
      await assertNeedsTrade(name, { schedule_id: schedule.schedule_id }, user)
    const long = `close my btc long ${'please '.repeat(40)}`
    const { compiled } = await scheduled('create', { query: long, schedule: daily }, user)
    assert.deepEqual(compiled.operations, [])
  })

  test('closes what the runs of the schedule have opened, and a run that may not is skipped', async () => {
    const user = await customer()
    const opened = await app.call(
      'perp_open',
      { asset: 'BTC', side: 'long', size: '0.01', leverage: 5 },
      user,
    )
    assert.equal(opened.outcome, 'executed', JSON.stringify(opened))
    const schedule = await scheduled(
      'create',
      { query: 'close my btc long', schedule: daily, status: 'active' },
      user,
    )
    const refused = await run(schedule, user)
    assert.deepEqual(
      [refused.status, refused.outcome, refused.skip_reason],
      ['cancelled', 'not_executed', 'policy_denied'],
      JSON.stringify(refused),
    )
    assert.deepEqual(await sizes(user), [['BTC', '0.01']])
    const ask = (text: string) =>
      scheduled('update', { schedule_id: schedule.schedule_id, query: text, status: 'active' }, user)
    const entry = await run(await ask('long btc $2000 5x'), user)
    assert.deepEqual([entry.status, entry.outcome], ['completed', 'executed'], JSON.stringify(entry))
    await eventually(
      async () =>
        (
          await query(
            app.main.db,
            `select f.trade_id from venue_order o join venue_fill f on f.cloid = o.cloid
               join task t on t.id = o.task_id
             where t.parent_id = $1`,
            [entry.id],
          )
        )[0],
      'the fill',
      60_000,
    )
    const again = await ask('close my btc long')
    assert.deepEqual(again.compiled.operations, ['perp_close'])
    const exit = await run(again, user)
    assert.deepEqual([exit.status, exit.outcome], ['completed', 'executed'], JSON.stringify(exit))
    assert.deepEqual(await sizes(user), [['BTC', '0.01']])
  })
})
