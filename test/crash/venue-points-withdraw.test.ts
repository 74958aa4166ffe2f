/** kill -9 at the boundaries of a withdrawal from the venue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { type TaskCase, testInFull, venuePoints } from './venue-points.ts'
import { units, type VenueState } from './venue-record.ts'

const credited = '100000'
const amount = '3'
const paid = '2'

const withdraw: TaskCase = {
  kind: 'perp_withdraw',
  path: 'perp/withdraw',
  body: () => ({ amount_usd: amount }),
  async verify({ replies, customer, venue }) {
    // The transfer is visible on the chain shortly before the venue records its payout.
    const { own, accounts } = await eventually(async () => {
      const truth = await venue<VenueState>('GET', `/effects?user=${customer.address}`)
      const mine = truth.payouts.filter(({ user }) => user === customer.address.toLowerCase())
      return mine.every(({ hash }) => hash) ? { own: mine, accounts: truth.accounts } : undefined
    }, 'the venue has recorded its payouts')
    assert.deepEqual(
      own.map((each) => units(each.amount)),
      replies.map(() => units(paid)),
    )
    assert.deepEqual(own.map(({ hash }) => hash).sort(), replies.map(({ result }) => result.tx_hash).sort())
    const [record] = accounts
    const taken = record!.ledger.filter(({ delta }) => delta.type === 'withdraw')
    assert.equal(new Set(taken.map(({ delta }) => delta.nonce)).size, replies.length)
    assert.equal(units(record!.rawUsd), units(credited) - units(amount) * BigInt(replies.length))
  },
}

/** The payout is swapped to another chain, in the same task. */
const withdrawToPolygon: TaskCase = {
  kind: 'perp_withdraw',
  path: 'perp/withdraw',
  body: () => ({ amount_usd: '11', destination_chain_id: '137' }),
  async verify({ replies, customer, venue }) {
    const payouts = await eventually(async () => {
      const truth = await venue<VenueState>('GET', `/effects?user=${customer.address}`)
      const mine = truth.payouts.filter(({ user }) => user === customer.address.toLowerCase())
      return mine.every(({ hash }) => hash) ? mine : undefined
    }, 'the venue has recorded its payouts')
    const legs = replies.map(({ result }) => result.legs ?? [])
    assert.deepEqual(
      payouts.map(({ hash }) => hash).sort(),
      legs.map(([withdrawal]) => withdrawal!.tx_hash).sort(),
    )
    assert.ok(legs.every(([, swap]) => swap?.role === 'swap' && swap.status === 'completed'))
    assert.equal(new Set(replies.map(({ result }) => result.tx_hash)).size, replies.length)
  },
}

test(`killed at any point of ${withdraw.kind}, it happens exactly once`, async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(withdraw))
})

testInFull('killed at any point of a withdrawal with a swap, each leg happens exactly once', async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(withdrawToPolygon))
})
