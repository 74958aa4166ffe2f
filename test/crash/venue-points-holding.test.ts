/** kill -9 at the boundaries of a sale of a holding, and of exits on it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { casesOfRun, type TaskCase, venuePoints } from './venue-points.ts'
import { recordOf, total, traded, units } from './venue-record.ts'

const hypeToken = 2
const size = '1'
const heldSize = '60'
const buyHolding: NonNullable<TaskCase['prepare']> = async (_context, send) => {
  const bought = await send('spot_venue/buy', 'held', { asset: 'HYPE', size: heldSize })
  assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
}

const sell: TaskCase = {
  kind: 'spot_sell',
  path: 'spot_venue/sell',
  body: () => ({ asset: 'HYPE', size }),
  prepare: buyHolding,
  async verify({ replies, customer, venue }) {
    const { orders, fills, spot } = await recordOf(venue, customer)
    assert.equal(orders.length, 1 + replies.length)
    assert.equal(traded(fills), units(heldSize) - units(size) * BigInt(replies.length))
    const fees = fills.filter(({ side }) => side === 'B').map(({ fee }) => units(fee))
    assert.equal(units(spot[hypeToken]!.total), traded(fills) - total(fees))
  },
}

const tpSl: TaskCase = {
  kind: 'spot_tp_sl',
  path: 'spot_venue/tp-sl',
  body: () => ({ asset: 'HYPE', size, tp_price: '60', sl_price: '30' }),
  prepare: buyHolding,
  async verify({ replies, app }) {
    const { rows } = await app.admin.query<{ id: string; source_task_id: string; status: string }>(
      `select id, source_task_id, status from trigger_order where user_id = (select user_id from task where id = $1)`,
      [replies[0]!.task_id],
    )
    const rowsOf = ({ result }: (typeof replies)[number]) => [...result.tp_oids, ...result.sl_oids]
    assert.deepEqual(rows.map(({ id }) => id).sort(), replies.flatMap(rowsOf).sort())
    assert.deepEqual([...new Set(rows.map(({ status }) => status))], ['armed'])
    for (const each of replies)
      assert.equal(
        rows.filter(({ source_task_id }) => source_task_id === each.task_id).length,
        2,
        'one pair for each task',
      )
  },
}

test('a sale, or exits on a holding, killed at any point happens exactly once', async (t) => {
  const points = await venuePoints()
  const cases = [sell, tpSl]
  for (const taskCase of casesOfRun('holdings', cases)) t.diagnostic(await points.killAll(taskCase))
})
