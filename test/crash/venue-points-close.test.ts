/** kill -9 at the boundaries of an order that ends a part of a position. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Deed, openVenuePoints } from './venue-points.ts'
import { positionIs, recordOf, units } from './venue-record.ts'

const size = '0.001'
const held = '0.2'

const close: Deed = {
  kind: 'perp_close',
  path: 'perp/close',
  body: () => ({ asset: 'BTC', size }),
  async prepare(_stand, ask) {
    const opened = await ask('perp/open', 'held', { asset: 'BTC', side: 'long', size: held, leverage: 10 })
    assert.equal(opened.outcome, 'executed')
    assert.equal(opened.result.filled_size, held)
  },
  async judge(stand) {
    const { told, customer, venue } = stand
    await positionIs(stand, units(held) - units(size) * BigInt(told.length))
    assert.equal((await recordOf(venue, customer)).orders.length, 1 + told.length)
  },
}

test(`killed at any point of ${close.kind}, it happens exactly once`, async (t) => {
  await using ground = await openVenuePoints()
  t.diagnostic(await ground.killAll(close))
})
