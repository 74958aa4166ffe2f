import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effectKind } from '#engines/venue/orders/action-outcome.ts'
import { cloidOf, createSignedActions } from '#engines/venue/orders/signed-action.ts'
import type { Effect } from '#kernel/task.ts'
import { type PerpOrderTask, type PerpOrderTaskData, unwindSteps } from './unwind.ts'

const now = new Date(1_700_000_000_000)
const unused = () => {
  throw new Error('a retry reads and signs nothing')
}

/** The venue rejects every action of the account for its number of requests. */
const signedActions = createSignedActions({
  venue: {
    send: async () => ({ type: 'rejected', message: 'Too many cumulative requests sent (1 > 0)' }),
    timeMs: async () => now.getTime(),
    passedMs: async () => now.getTime(),
  },
  chainId: 'hl',
  policy: { authorize: unused, authorizeOnAccept: unused },
  signer: { venueKeys: unused },
  nonces: { ensure: unused },
})
const { closed } = unwindSteps({
  venue: {
    order: unused,
    openOrders: unused,
    fillsSince: unused,
    recentFills: unused,
    mids: unused,
    account: unused,
  },
  signedActions,
  pricing: { boundPrice: unused },
  finish: unused,
})

const data: PerpOrderTaskData = {
  operation: 'perp_open',
  market: 'perp',
  symbol: 'BTC',
  asset: 0,
  size_decimals: 5,
  price_decimals: 1,
  account: '0xacc',
  agent: '0xa9e',
  ahead_ms: 0,
  since_ms: now.getTime(),
  is_buy: true,
  size: '1',
  price: '100000',
  tif: 'ioc',
  reduce_only: false,
  exit: false,
  usd_micros: '0',
  transfer_usd: null,
  leverage: null,
  tp: null,
  sl: { price: '90000', isMarket: true },
  closings: 2,
  closed_size: '0.4',
}
const nonceSequence = { kind: 'hyperliquid', chain: 'hl', signer: '0xa9e' }
const effect: Effect = {
  id: 'e',
  step: 'unwind',
  kind: effectKind,
  externalId: cloidOf('t', 'close2'),
  intent: { account: '0xacc', exit: true, nonce: '1', expiresAtMs: now.getTime() + 20_000 },
  signed: {},
  status: 'prepared',
  validUntil: null,
  at: now,
  txAttempts: [
    { n: 0, externalId: '0xa9e:1', raw: '{}', nonceSequence, nonce: 1n, status: 'prepared', at: now },
  ],
  neverSent: true,
}
const task: PerpOrderTask = {
  id: 't',
  userId: 'u',
  kind: 'perp_open',
  data,
  input: {},
  attempt: 1,
  effects: [effect],
  createdAt: now,
  deadline: new Date(now.getTime() + 60_000),
}

test('a close that the request limit rejects is signed again, and does not count as an attempt', async () => {
  const result = await closed(task, { now, signal: new AbortController().signal })
  assert.ok('park' in result)
  assert.deepEqual(result.park, { afterMs: 10_000, next: 'unwind' })
  assert.equal(result.data?.closings, 1)
})
