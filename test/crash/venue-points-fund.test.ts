/** kill -9 at the boundaries of a transfer of funds to the venue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testFunding } from '../harness/conservation.ts'
import { http } from '../harness/gateway.ts'
import { type TaskCase, venuePoints } from './venue-points.ts'
import { recordOf, units } from './venue-record.ts'

const arbitrum = '42161'
const amount = '6'

const fund: TaskCase = {
  kind: 'perp_fund',
  path: 'perp/fund',
  pointsMax: 16,
  body: () => ({ amount_usd: amount }),
  async prepare({ customer, app }) {
    const { status } = await http(`${app.control}/faucet/fund`, {
      method: 'POST',
      body: { chain_id: arbitrum, address: customer.address, token: 'USDC', amount: '1000' },
    })
    assert.equal(status, 200)
    const asset = `usdc:${arbitrum}`
    testFunding.add({ evm: customer.address }, { asset, units: 1_000_000_000n, why: 'the faucet granted it' })
  },
  async verify({ replies, customer, venue }) {
    const { ledger } = await recordOf(venue, customer)
    const isOfATask = ({ delta }: (typeof ledger)[number]) =>
      delta.type === 'deposit' && units(delta.usdc ?? '0') === units(amount)
    assert.equal(ledger.filter(isOfATask).length, replies.length)
    assert.equal(new Set(replies.map(({ result }) => result.tx_hash)).size, replies.length)
  },
}

test(`killed at any point of ${fund.kind}, it happens exactly once`, async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(fund))
})
