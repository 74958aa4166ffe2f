import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createVenueApp, type TaskAnswer, type VenueApp } from './venue-app.ts'

/** An action of a task has executed, and the signature of the next one is refused. */

describe('a kill switch between two actions of a task', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ quiet: 'the test decides what happens between two actions', lagging: true })
    await app.price('BTC', 100_000)
  })
  after(() => app?.[Symbol.asyncDispose]())

  test('leaves the transfer claimed and noted by the task that made it', async () => {
    const user = await app.trader('1')
    await app.credit(user, '500', 'USDC')
    app.lag.set({
      async intercept({ type }) {
        if (type === 'usdClassTransfer') await app.call('policy_kill', { on: true }, user)
        return undefined
      },
    })
    const begun = await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.001' }, user)
    const done = begun.completed_at
      ? begun
      : ((await app.waitForEnd(user, begun.task_id)) as unknown as TaskAnswer)
    assert.deepEqual([done.status, done.error?.code], ['failed', 'trading_paused'], JSON.stringify(done))
    const { rows } = await app.database.pool.query(
      `select jsonb_array_length(data -> 'spendings') as noted,
         (select count(*)::int from claimed_transfer c where c.task_id = t.id) as claimed
       from task t where id = $1`,
      [begun.task_id],
    )
    assert.deepEqual(rows, [{ noted: 1, claimed: 1 }])
  })
})
