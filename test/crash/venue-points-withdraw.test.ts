/** kill -9 at the boundaries of the way home of money from the venue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { type Deed, openVenuePoints } from './venue-points.ts'
import { type Truth, units } from './venue-record.ts'

const credited = '100000'
const amount = '3'
const paid = '2'

const withdraw: Deed = {
  kind: 'perp_withdraw',
  path: 'perp/withdraw',
  body: () => ({ amount_usd: amount }),
  async judge({ told, customer, venue }) {
    // The transfer can be seen on the chain a moment before the venue notes what it sent.
    const { own, accounts } = await eventually(async () => {
      const truth = await venue<Truth>('GET', `/effects?user=${customer.address}`)
      const mine = truth.payouts.filter(({ user }) => user === customer.address.toLowerCase())
      return mine.every(({ hash }) => hash) ? { own: mine, accounts: truth.accounts } : undefined
    }, 'the venue has noted its payouts')
    assert.deepEqual(
      own.map((each) => units(each.amount)),
      told.map(() => units(paid)),
    )
    assert.deepEqual(own.map(({ hash }) => hash).sort(), told.map(({ result }) => result.tx_hash).sort())
    const [record] = accounts
    const taken = record!.ledger.filter(({ delta }) => delta.type === 'withdraw')
    assert.equal(new Set(taken.map(({ delta }) => delta.nonce)).size, told.length)
    assert.equal(units(record!.rawUsd), units(credited) - units(amount) * BigInt(told.length))
  },
}

test(`killed at any point of ${withdraw.kind}, it happens exactly once`, async (t) => {
  await using ground = await openVenuePoints()
  t.diagnostic(await ground.killAll(withdraw))
})
