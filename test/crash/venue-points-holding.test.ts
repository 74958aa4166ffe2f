/** kill -9 at the boundaries of a sale of a holding, and of exits on it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Deed, openVenuePoints } from './venue-points.ts'
import { recordOf, total, traded, units } from './venue-record.ts'

const hypeToken = 2
const size = '1'
const held = '60'
const hold: NonNullable<Deed['prepare']> = async (_stand, ask) => {
  const bought = await ask('spot_venue/buy', 'held', { asset: 'HYPE', size: held })
  assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
}

const sell: Deed = {
  kind: 'spot_sell',
  path: 'spot_venue/sell',
  body: () => ({ asset: 'HYPE', size }),
  prepare: hold,
  async judge({ told, customer, venue }) {
    const { orders, fills, spot } = await recordOf(venue, customer)
    assert.equal(orders.length, 1 + told.length)
    assert.equal(traded(fills), units(held) - units(size) * BigInt(told.length))
    const fees = fills.filter(({ side }) => side === 'B').map(({ fee }) => units(fee))
    assert.equal(units(spot[hypeToken]!.total), traded(fills) - total(fees))
  },
}

const tpSl: Deed = {
  kind: 'spot_tp_sl',
  path: 'spot_venue/tp-sl',
  body: () => ({ asset: 'HYPE', size, tp_price: '60', sl_price: '30' }),
  prepare: hold,
  async judge({ told, scene }) {
    const { rows } = await scene.admin.query<{ id: string; origin: string; status: string }>(
      `select id, origin, status from trigger_order where user_id = (select user_id from task where id = $1)`,
      [told[0]!.task_id],
    )
    const of = ({ result }: (typeof told)[number]) => [...result.tp_oids, ...result.sl_oids]
    assert.deepEqual(rows.map(({ id }) => id).sort(), told.flatMap(of).sort())
    assert.deepEqual([...new Set(rows.map(({ status }) => status))], ['armed'])
    for (const each of told)
      assert.equal(rows.filter(({ origin }) => origin === each.task_id).length, 2, 'one pair for each task')
  },
}

test('killed at any point of a sale, or of exits on a holding, it happens exactly once', async (t) => {
  await using ground = await openVenuePoints()
  for (const deed of [sell, tpSl]) t.diagnostic(await ground.killAll(deed))
})
