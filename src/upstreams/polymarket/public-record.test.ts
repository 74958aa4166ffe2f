import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPublicRecord } from './public-record.ts'
import { createRequests } from './requests.ts'

const url = 'https://venue.test'
const urls = { clob: url, gamma: url, data: url, relayer: url, bridge: url, geoblock: url }

const recordOf = (data: unknown[]) => {
  const skipped: unknown[] = []
  const body = JSON.stringify({ data, pagination: { has_more: false } })
  const requests = createRequests({ urls, net: { fetch: async () => ({ status: 200, body }) } })
  return { skipped, record: createPublicRecord(requests, (_list, row) => skipped.push(row)) }
}

test('a position with a figure that is none hides no other', async () => {
  const row = {
    token_id: '1',
    condition_id: '0x1',
    current_size: '5',
    avg_price: 0.5,
    current_price: 0.5,
    current_value: 2.5,
  }
  const { record, skipped } = recordOf([
    { ...row, current_size: '-5' },
    { ...row, current_size: '1e60' },
    { ...row, avg_price: 'NaN' },
    row,
    { ...row, current_size: '1.2345678901234567e-7' },
  ])
  const { items } = await record.positions('0x2')
  assert.deepEqual([items.map(({ sizeUnits }) => sizeUnits), skipped.length], [[5_000_000n, 0n], 3])
})

test('a transaction of the activity that is no hash is none', async () => {
  const row = { type: 'REDEEM', timestamp: 1_700_000_000, condition_id: '0x1', size: 1, usdc_size: 1 }
  const hash = `0x${'ab'.repeat(32)}`
  const { record } = recordOf([
    { ...row, transaction_hash: hash },
    { ...row, transaction_hash: 'javascript:alert(1)' },
    { ...row, timestamp: 1e300 },
  ])
  const { items } = await record.activity('0x2', 10)
  assert.deepEqual(
    items.map(({ txHash }) => txHash),
    [hash, null],
  )
})
