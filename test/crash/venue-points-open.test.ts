/** kill -9 at the boundaries of an order for a position with its exits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type TaskCase, venuePoints } from './venue-points.ts'
import { assertPosition, cloidOf, executionsOf, recordOf, units } from './venue-record.ts'

const size = '0.001'

const open: TaskCase = {
  kind: 'perp_open',
  path: 'perp/open',
  // Another leverage each time, so that each task must set it.
  body: (n) => ({
    asset: 'BTC',
    side: 'long',
    size,
    order_type: 'market',
    leverage: 4 + (n % 2),
    tp_price: '110000',
    sl_price: '95000',
  }),
  async verify(context, { task_id, result }) {
    const { replies, customer, venue } = context
    await assertPosition(context, units(size) * BigInt(replies.length))
    const { orders } = await recordOf(venue, customer)
    const [execution = ''] = await executionsOf(context.app.admin, [task_id])
    for (const leg of ['tp', 'sl'] as const)
      assert.deepEqual(
        orders.filter(({ cloid }) => cloid === cloidOf(execution, leg)).map(({ oid }) => String(oid)),
        result[`${leg}_oids`],
      )
    assert.equal(orders.length, 3 * replies.length)
  },
}

test(`killed at any point of ${open.kind}, it happens exactly once`, async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(open))
})
