/** kill -9 at the boundaries of a purchase whose exits the gateway holds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type TaskCase, venuePoints } from './venue-points.ts'
import { recordOf, total, traded, units } from './venue-record.ts'

const hypeToken = 2
const size = '1'

const buy: TaskCase = {
  kind: 'spot_buy',
  path: 'spot_venue/buy',
  body: () => ({ asset: 'HYPE', size, sl_price: '30' }),
  async verify({ replies, customer, venue, app }, { task_id, result }) {
    const { orders, fills, spot } = await recordOf(venue, customer)
    assert.equal(orders.length, replies.length)
    assert.equal(traded(fills), units(size) * BigInt(replies.length))
    assert.equal(units(spot[hypeToken]!.total), traded(fills) - total(fills.map(({ fee }) => units(fee))))
    const { rows } = await app.admin.query<{ id: string; status: string; source_task_id: string }>(
      `select id, status, source_task_id from trigger_order where user_id = (select user_id from task where id = $1)`,
      [task_id],
    )
    assert.deepEqual(rows.map(({ id }) => id).sort(), replies.flatMap((each) => each.result.sl_oids).sort())
    assert.deepEqual(
      rows.filter(({ source_task_id }) => source_task_id === task_id).map(({ id, status }) => [id, status]),
      [[result.sl_oids[0], 'armed']],
    )
  },
}

test(`killed at any point of ${buy.kind}, it happens exactly once`, async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(buy))
})
