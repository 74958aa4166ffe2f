/** A run reduces what the runs of its schedule have opened, whatever the account holds besides, and never more. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { findAccount } from '#engines/venue/records/account-store.ts'
import { expectedAt, replaceBaseline } from '#engines/venue/records/record-store.ts'
import type { ScheduleRun } from '#kernel/contract/caller.ts'
import { query } from '#store/query.ts'
import { authorityFields, insertSchedule, runToEnd } from '../chat/schedule-fixture.ts'
import { eventually } from '../harness/gateway.ts'
import { startReconciler } from './reconcilers.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

describe('a run that reduces', () => {
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

  /** The calls of a run, with its record; the engine of a run is tested elsewhere. */
  async function runOf(user: User, schedule: string): Promise<User & { run: ScheduleRun }> {
    const id = crypto.randomUUID()
    await query(
      app.main.db,
      `with numbered as (update strategy set execution_count = execution_count + 1 where id = $2 returning execution_count)
       insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, slot, status, created_at)
       select $1, $2, $3, 1, execution_count, 'scheduled', 'live', clock_timestamp(), 'running', now() from numbered`,
      [id, schedule, user.id],
    )
    const run: ScheduleRun = { schedule, run: id, approvedMicros: null }
    return { ...user, caller: { ...user.caller, via: run }, run }
  }
  const reducing = ({ run, ...user }: User & { run: ScheduleRun }): User => ({
    ...user,
    caller: { ...user.caller, via: { ...run, reducesOwn: true } },
  })
  /** Sets the price of HYPE, and waits until the gateway knows it. */
  const hypePrice = async (price: number) => {
    await app.price('@1', price)
    await eventually(
      async () => Math.round(Number((await app.main.venue!.client.mids()).get('@1'))) === price,
      'the price',
    )
  }
  const trade = async (name: string, input: object, user: User): Promise<TaskAnswer> => {
    const answer = await app.call(name, input, user)
    assert.equal(answer.outcome, 'executed', JSON.stringify(answer))
    return answer
  }
  const refusal = (name: string, input: object, user: User) =>
    app.call(name, input, user).then(
      () => undefined,
      (error: { code?: string; extras?: { rule?: string } }) => [error.code, error.extras?.rule],
    )
  const imported = (user: User, taskId: string) =>
    eventually(
      async () =>
        (
          await query(
            app.main.db,
            `select f.trade_id from venue_order o join venue_fill f on f.cloid = o.cloid
             where o.user_id = $1 and o.task_id = $2`,
            [user.id, taskId],
          )
        )[0],
      'the fill',
      60_000,
    )
  const grantCredits = ({ id }: User) =>
    app.main.taskEngine.transact((tx) => app.main.features.credits.grantSignup(tx, id, new Date()))
  const holding = async (user: User) => {
    const { balances } = (await app.call('spot_venue_orders', {}, user)) as unknown as {
      balances: { asset: string; total: string }[]
    }
    return balances.find(({ asset }) => asset === 'HYPE') ?? { total: '0' }
  }
  const positionOf = async (user: User) => (await app.call('perp_orders', {}, user)).positions[0]?.size

  test('closes its own part of a position, once, and leaves the rest', async () => {
    const user = await app.trader()
    const schedule = await insertSchedule(app.main.db, user.id, { query: 'trade', authority: {} })
    await trade('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
    assert.deepEqual(await refusal('perp_close', { asset: 'BTC' }, reducing(await runOf(user, schedule))), [
      'policy_denied',
      'own_position',
    ])
    const opened = await trade(
      'perp_open',
      { asset: 'BTC', side: 'long', size: '0.02' },
      await runOf(user, schedule),
    )
    await imported(user, opened.task_id)
    const asked = await trade(
      'perp_close',
      { asset: 'BTC', size: '0.005' },
      reducing(await runOf(user, schedule)),
    )
    assert.equal(asked.result.filled_size, '0.005')
    const rest = await trade('perp_close', { asset: 'BTC' }, reducing(await runOf(user, schedule)))
    assert.equal(rest.result.filled_size, '0.015')
    assert.equal(await positionOf(user), '0.01')
    assert.deepEqual(await refusal('perp_close', { asset: 'BTC' }, reducing(await runOf(user, schedule))), [
      'policy_denied',
      'own_position',
    ])
    assert.equal(await positionOf(user), '0.01')
    await trade('perp_close', { asset: 'BTC' }, user)
  })

  /** Opens a long position of 0.01 by hand and one of 0.02 by a run, whose fill is imported. */
  async function bothHold(input: object = {}) {
    const user = await app.trader()
    const schedule = await insertSchedule(app.main.db, user.id, { query: 'trade', authority: {} })
    await trade('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
    const order = { asset: 'BTC', side: 'long', size: '0.02', ...input }
    const run = await runOf(user, schedule)
    const opened = await trade('perp_open', order, run)
    await imported(user, opened.task_id)
    return { user, schedule, run, opened }
  }
  const ownPosition = ['policy_denied', 'own_position']
  const close = { asset: 'BTC' }
  /** The close of another run, once the schedule holds something that no order of it may close. */
  const closed = (user: User, schedule: string) =>
    eventually(
      async () =>
        app
          .call('perp_close', close, reducing(await runOf(user, schedule)))
          .catch((error: { code?: string }) => {
            if (error.code === 'policy_denied') return undefined
            throw error
          }),
      'a close',
      60_000,
    )

  test('counts a close that rests at the venue until it has ended', async () => {
    const { user, schedule } = await bothHold()
    const limit = { ...close, order_type: 'limit', limit_price: '110000' }
    const rests = await trade('perp_close', limit, reducing(await runOf(user, schedule)))
    assert.equal(rests.result.order_status, 'resting')
    assert.deepEqual(await refusal('perp_close', close, reducing(await runOf(user, schedule))), ownPosition)
    assert.equal(await positionOf(user), '0.03')
    await trade('perp_cancel', { order_id: rests.result.order_id }, user)
    const last = await closed(user, schedule)
    assert.equal(last.result.filled_size, '0.02')
    assert.equal(await positionOf(user), '0.01')
  })

  test('closes it once though two runs ask at the same time', async () => {
    const { user, schedule } = await bothHold()
    const runs = await Promise.all([1, 2, 3].map(() => runOf(user, schedule)))
    const ends = await Promise.allSettled(runs.map((run) => app.call('perp_close', close, reducing(run))))
    const filled = ends.flatMap((end) =>
      end.status === 'fulfilled' && end.value.outcome === 'executed' ? [end.value.result.filled_size] : [],
    )
    assert.deepEqual(filled, ['0.02'], JSON.stringify(ends))
    assert.equal(await positionOf(user), '0.01')
  })

  test('counts an exit that fired at the venue, before and after its fill is imported', async () => {
    const { user, schedule } = await bothHold({ tp_price: '105000' })
    await app.price('BTC', 106_000)
    await eventually(async () => (await positionOf(user)) === '0.01' || undefined, 'the exit', 60_000)
    await app.catchUp()
    assert.deepEqual(await refusal('perp_close', close, reducing(await runOf(user, schedule))), ownPosition)
    await eventually(
      async () =>
        (
          await query(
            app.main.db,
            `select 1 from venue_order o join venue_fill f on f.cloid = o.cloid where o.user_id = $1 and o.leg = 'tp'`,
            [user.id],
          )
        )[0],
      'the fill of the exit',
      60_000,
    )
    assert.deepEqual(await refusal('perp_close', close, reducing(await runOf(user, schedule))), ownPosition)
    await app.price('BTC', 100_000)
  })

  type Exit = { size: string; reduce_only: boolean }
  const exitsOf = async (user: User) => {
    const { orders } = (await app.call('perp_orders', {}, user)) as unknown as { orders: Exit[] }
    return orders.filter(({ reduce_only }) => reduce_only).map(({ size }) => size)
  }

  test('ends its exits with its part, so that they do not close what the user owns', async () => {
    const { user, schedule } = await bothHold({ tp_price: '105000', sl_price: '90000' })
    assert.deepEqual(await exitsOf(user), ['0.02', '0.02'])
    const limit = { ...close, order_type: 'limit', limit_price: '104000' }
    assert.deepEqual(await refusal('perp_close', limit, reducing(await runOf(user, schedule))), ownPosition)
    const closing = await trade('perp_close', close, reducing(await runOf(user, schedule)))
    assert.equal(closing.result.filled_size, '0.02')
    await app.catchUp()
    assert.deepEqual(await exitsOf(user), [])
    await app.price('BTC', 106_000)
    await app.catchUp()
    assert.equal(await positionOf(user), '0.01')
    await app.price('BTC', 100_000)
  })

  test('leaves a stop of the size that is left', async () => {
    const { user, schedule } = await bothHold({ tp_price: '105000', sl_price: '90000' })
    await trade('perp_close', { ...close, size: '0.005' }, reducing(await runOf(user, schedule)))
    await app.catchUp()
    assert.deepEqual(await exitsOf(user), ['0.015'])
    await app.price('BTC', 89_000)
    await eventually(async () => (await positionOf(user)) === '0.01' || undefined, 'the stop', 60_000)
    await app.price('BTC', 100_000)
  })

  test('goes on from what it held when the baseline of the account has moved', async () => {
    const { user, schedule } = await bothHold()
    await trade('perp_close', { ...close, size: '0.005' }, reducing(await runOf(user, schedule)))
    const { user_id, ...account } = await eventually(async () => {
      const found = await findAccount(app.main.db, user.id)
      const [missing] = await query(
        app.main.db,
        `select 1 from venue_order o left join venue_fill f on f.cloid = o.cloid
         where o.user_id = $1 and f.cloid is null`,
        [user.id],
      )
      return missing ? undefined : found
    }, 'all fills')
    const atMs = Date.now() + 3_600_000
    await app.main.taskEngine.transact(async (tx) => {
      const { expected } = await expectedAt(tx, { user_id, ...account }, atMs)
      await replaceBaseline(tx, { user_id, ...account }, expected, atMs)
    })
    await query(app.main.db, 'delete from venue_fill where user_id = $1', [user.id])
    const rest = await trade('perp_close', close, reducing(await runOf(user, schedule)))
    assert.equal(rest.result.filled_size, '0.015')
    assert.equal(await positionOf(user), '0.01')
  })

  test('does not close what the user has opened again after closing everything', async () => {
    const { user, schedule } = await bothHold()
    await trade('perp_close', close, user)
    const again = await trade('perp_open', { ...close, side: 'long', size: '0.03' }, user)
    assert.deepEqual(await refusal('perp_close', close, reducing(await runOf(user, schedule))), ownPosition)
    await imported(user, again.task_id)
    assert.deepEqual(await refusal('perp_close', close, reducing(await runOf(user, schedule))), ownPosition)
  })

  test('closes less where a reduction, and nothing where an opening is no longer known as its own', async () => {
    const { user, schedule, run: opener, opened } = await bothHold()
    const part = await trade('perp_close', { ...close, size: '0.005' }, reducing(await runOf(user, schedule)))
    await imported(user, part.task_id)
    await query(app.main.db, `update task set parent_id = null, kind = 'adopted' where id = $1`, [
      part.task_id,
    ])
    const next = await trade('perp_close', { ...close, size: '0.019' }, reducing(await runOf(user, schedule)))
    assert.equal(next.result.filled_size, '0.015')
    const more = await trade('perp_open', { ...close, side: 'long', size: '0.02' }, opener)
    await imported(user, more.task_id)
    await query(app.main.db, 'delete from strategy_execution where id = $1', [opener.run.run])
    assert.notEqual(opened.task_id, more.task_id)
    assert.deepEqual(await refusal('perp_close', close, reducing(await runOf(user, schedule))), ownPosition)
  })

  test('counts what an exit that the gateway held has sold', async () => {
    const user = await app.trader()
    const schedule = await insertSchedule(app.main.db, user.id, { query: 'trade', authority: {} })
    await hypePrice(40)
    const order = { asset: 'HYPE', size: '2', tp_price: '45' }
    const bought = await trade('spot_venue_buy', order, await runOf(user, schedule))
    await imported(user, bought.task_id)
    await trade('spot_venue_buy', { asset: 'HYPE', size: '3' }, user)
    await hypePrice(46)
    const sale = await eventually(
      async () =>
        (
          await query<{ id: string; outcome: string }>(
            app.main.db,
            `select id, outcome from task where user_id = $1 and kind = 'spot_trigger' and completed_at is not null`,
            [user.id],
          )
        )[0],
      'the sale of the exit',
      60_000,
    )
    assert.equal(sale.outcome, 'executed')
    const sell = { asset: 'HYPE' }
    assert.deepEqual(
      await refusal('spot_venue_sell', sell, reducing(await runOf(user, schedule))),
      ownPosition,
    )
    await imported(user, sale.id)
    assert.deepEqual(
      await refusal('spot_venue_sell', sell, reducing(await runOf(user, schedule))),
      ownPosition,
    )
  })

  test('leaves an exit that the gateway holds no more than it has left', async () => {
    const user = await app.trader()
    const schedule = await insertSchedule(app.main.db, user.id, { query: 'trade', authority: {} })
    await hypePrice(40)
    const order = { asset: 'HYPE', size: '2', tp_price: '45', sl_price: '35' }
    const bought = await trade('spot_venue_buy', order, await runOf(user, schedule))
    await imported(user, bought.task_id)
    await trade('spot_venue_buy', { asset: 'HYPE', size: '3' }, user)
    await app.catchUp()
    const part = { asset: 'HYPE', size: '0.5' }
    await trade('spot_venue_sell', part, reducing(await runOf(user, schedule)))
    const triggers = await query<{ size: string }>(
      app.main.db,
      `select input ->> 'size' as size from trigger_order where user_id = $1 and status = 'armed'`,
      [user.id],
    )
    assert.equal(triggers.length, 2)
    for (const { size } of triggers) assert.ok(Number(size) <= 1.5 && Number(size) > 1.49, size)
    await hypePrice(46)
    const sold = await eventually(
      async () =>
        (
          await query<{ size: string }>(
            app.main.db,
            `select result ->> 'filled_size' as size from task
             where user_id = $1 and kind = 'spot_trigger' and completed_at is not null`,
            [user.id],
          )
        )[0],
      'the sale of the exit',
      60_000,
    )
    assert.equal(sold.size, '1.49')
    await app.catchUp()
    // The schedule has nothing left of a lot, and what the user has bought stays.
    const { total } = await holding(user)
    assert.ok(Number(total) > 2.98 && Number(total) < 3.02, total)
  })

  test('closes under a kill switch and beyond spent limits, and no more than the account still holds', async () => {
    const user = await app.trader()
    const schedule = await insertSchedule(app.main.db, user.id, { query: 'trade', authority: {} })
    const opened = await trade(
      'perp_open',
      { asset: 'BTC', side: 'short', size: '0.02' },
      await runOf(user, schedule),
    )
    await imported(user, opened.task_id)
    await trade('perp_close', { asset: 'BTC', size: '0.012' }, user)
    await app.call('policy_kill', { on: true }, user)
    const closed = await trade('perp_close', { asset: 'BTC' }, reducing(await runOf(user, schedule)))
    assert.equal(closed.result.filled_size, '0.008')
    assert.equal(await positionOf(user), undefined)
  })

  test('closes by the words of its query, though chats may start nothing, and no other position', async () => {
    const user = await app.trader()
    await app.price('ETH', 3_000)
    const words = 'close my btc long'
    const schedule = await insertSchedule(app.main.db, user.id, {
      query: words,
      operations: ['perp_close'],
      authority: authorityFields(user.caller),
    })
    await trade('perp_open', { asset: 'ETH', side: 'long', size: '0.1' }, user)
    const opened = await trade(
      'perp_open',
      { asset: 'BTC', side: 'long', size: '0.02' },
      await runOf(user, schedule),
    )
    await imported(user, opened.task_id)
    await query(
      app.main.db,
      `update strategy_execution set status = 'completed', ended_at = now()
      where strategy_id = $1`,
      [schedule],
    )
    await grantCredits(user)
    // The chat of the run reads the positions once, and a read may be older than the fill.
    await app.catchUp()
    const run = await runToEnd(app.main, { id: schedule, userId: user.id })
    assert.deepEqual([run.status, run.outcome], ['completed', 'executed'], JSON.stringify(run))
    const { positions } = await app.call('perp_orders', {}, user)
    assert.deepEqual(
      positions.map(({ asset, size }) => [asset, size]),
      [['ETH', '0.1']],
    )
  })

  test('sells what it has bought on spot, less the fee, and not what was there before', async () => {
    const user = await app.trader()
    const schedule = await insertSchedule(app.main.db, user.id, { query: 'trade', authority: {} })
    await hypePrice(40)
    await trade('spot_venue_buy', { asset: 'HYPE', size: '3' }, user)
    const bought = await trade('spot_venue_buy', { asset: 'HYPE', size: '2' }, await runOf(user, schedule))
    await imported(user, bought.task_id)
    const sold = await trade('spot_venue_sell', { asset: 'HYPE' }, reducing(await runOf(user, schedule)))
    assert.ok(Number(sold.result.filled_size) <= 2 && Number(sold.result.filled_size) > 1.9)
  })
})
