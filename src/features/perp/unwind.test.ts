import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effectKind } from '#engines/venue/orders/action-outcome.ts'
import { cloidOf, createSignedActions } from '#engines/venue/orders/signed-action.ts'
import { Fault } from '#kernel/fault.ts'
import type { Effect } from '#kernel/task.ts'
import type { Account, Fill, SendResult, Unread } from '#upstreams/hyperliquid/hyperliquid.ts'
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

test('an entry that was cancelled stays ended where the close is refused first, and the step it parks to closes', async () => {
  const signal = new AbortController().signal
  const entry = { orderId: 7, status: 'resting', filledSize: null, error: null } as const
  const exits = [{ leg: 'sl', orderId: null, state: 'missing', error: 'too far' }] as const
  const fill = { symbol: 'BTC', orderId: 7, isBuy: true, size: '1', price: '100000', atMs: now.getTime() + 1 }
  const position = { symbol: 'BTC', signedSize: '1' }
  const steps = unwindSteps({
    venue: {
      order: unused,
      openOrders: unused,
      fillsSince: unused,
      mids: async () => new Map([['BTC', '100000']]),
      recentFills: async () => [{ ...fill, startSize: '0', feeUsd: '0', feeToken: 'USDC' } as Fill],
      account: async () => ({ positions: [position], unread: [] as Unread }) as Account,
    },
    signedActions: createSignedActions({
      venue: {
        send: async () => ({ type: 'ok', legs: [{ type: 'accepted', as: 'success' }] }) as SendResult,
        timeMs: async () => now.getTime(),
        passedMs: async () => now.getTime(),
      },
      chainId: 'hl',
      policy: { authorize: unused, authorizeOnAccept: unused },
      signer: { venueKeys: unused },
      nonces: { ensure: async () => {} },
    }),
    pricing: { boundPrice: (price) => price },
    finish: unused,
  })
  const { closings: _none, closed_size: _size, ...opened } = data
  const resting = { ...opened, order_outcome: { entry, exits: [...exits] } }
  const cancelled = { ...effect, externalId: cloidOf('t', 'entry_cancelled') }
  const after = await steps.entry_cancelled({ ...task, data: resting, effects: [cancelled] }, { now, signal })
  assert.ok('sign' in after)
  const refused = after.sign.onRefused!(new Fault('policy_denied', 'no'))
  assert.ok('park' in refused)
  const { neverSent: _sent, ...sent } = cancelled
  const confirmed: Effect = { ...sent, status: 'confirmed' }
  const stored = { ...resting, ...refused.data } as PerpOrderTaskData
  const again = await steps[refused.park.next](
    { ...task, data: stored, effects: [confirmed] },
    { now, signal },
  )
  assert.ok('sign' in again)
  assert.equal(again.next, 'closed')
  assert.equal(again.data && 'closings' in again.data && again.data.closings, 1)
})
