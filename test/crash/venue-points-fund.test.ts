/** kill -9 at the boundaries of a transfer of funds to the venue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testFunding } from '../harness/conservation.ts'
import { http } from '../harness/gateway.ts'
import { type TaskCase, testInFull, venuePoints } from './venue-points.ts'
import { recordOf, units } from './venue-record.ts'

const arbitrum = '42161'
const base = '8453'
const amount = '6'
/** What every trader has from the beginning. */
const credited = '100000'

type Context = Parameters<NonNullable<TaskCase['prepare']>>[0]

async function fundWallet({ customer, app }: Context, chainId: string): Promise<void> {
  const { status } = await http(`${app.control}/faucet/fund`, {
    method: 'POST',
    body: { chain_id: chainId, address: customer.address, token: 'USDC', amount: '1000' },
  })
  assert.equal(status, 200)
  const asset = `usdc:${chainId}`
  testFunding.add({ evm: customer.address }, { asset, units: 1_000_000_000n, why: 'the faucet granted it' })
}

const fund: TaskCase = {
  kind: 'perp_fund',
  path: 'perp/fund',
  pointsMax: 16,
  body: () => ({ amount_usd: amount }),
  prepare: (context) => fundWallet(context, arbitrum),
  async verify({ replies, customer, venue }) {
    const { ledger } = await recordOf(venue, customer)
    const isOfATask = ({ delta }: (typeof ledger)[number]) =>
      delta.type === 'deposit' && units(delta.usdc ?? '0') === units(amount)
    assert.equal(ledger.filter(isOfATask).length, replies.length)
    assert.equal(new Set(replies.map(({ result }) => result.tx_hash)).size, replies.length)
  },
}

/** A swap on another chain comes first, in the same task. */
const fundFromBase: TaskCase = {
  kind: 'perp_fund',
  path: 'perp/fund',
  pointsMax: 16,
  body: () => ({ amount: '20000000', source_chain_id: base }),
  prepare: (context) => fundWallet(context, base),
  async verify({ replies, customer, venue }) {
    const { ledger } = await recordOf(venue, customer)
    const deposits = ledger.flatMap(({ delta }) =>
      delta.type === 'deposit' && units(delta.usdc ?? '0') !== units(credited)
        ? [units(delta.usdc ?? '0')]
        : [],
    )
    const sorted = (all: bigint[]) => all.map(String).sort()
    assert.deepEqual(sorted(deposits), sorted(replies.map(({ result }) => units(result.amount_usd ?? '0'))))
    for (const { result } of replies)
      assert.deepEqual(
        result.legs?.map(({ role, status }) => [role, status]),
        [
          ['swap', 'completed'],
          ['deposit', 'completed'],
        ],
      )
  },
}

test(`killed at any point of ${fund.kind}, it happens exactly once`, async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(fund))
})

testInFull('killed at any point of a funding with a swap, each leg happens exactly once', async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(fundFromBase))
})
