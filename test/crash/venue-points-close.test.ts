/** kill -9 at the boundaries of an order that closes a part of a position. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type TaskCase, venuePoints } from './venue-points.ts'
import { assertPosition, recordOf, units } from './venue-record.ts'

const size = '0.001'
const heldSize = '0.2'

const close: TaskCase = {
  kind: 'perp_close',
  path: 'perp/close',
  body: () => ({ asset: 'BTC', size }),
  async prepare(_context, send) {
    const opened = await send('perp/open', 'held', {
      asset: 'BTC',
      side: 'long',
      size: heldSize,
      leverage: 10,
    })
    assert.equal(opened.outcome, 'executed')
    assert.equal(opened.result.filled_size, heldSize)
  },
  async verify(context) {
    const { replies, customer, venue } = context
    await assertPosition(context, units(heldSize) - units(size) * BigInt(replies.length))
    assert.equal((await recordOf(venue, customer)).orders.length, 1 + replies.length)
  },
}

test(`killed at any point of ${close.kind}, it happens exactly once`, async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(close))
})
