import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deriveCloid, effectKind } from '#engines/venue/orders/action-outcome.ts'
import { createSignedActions } from '#engines/venue/orders/signed-action.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Effect } from '#kernel/task/task.ts'
import type { Account, Fill, SendResult, Unread } from '#upstreams/hyperliquid/hyperliquid.ts'
import {
  type Finish,
  type PerpOrderTask,
  type PerpOrderTaskData,
  unwindSteps,
} from './unwind-unprotected-entry.ts'

const { signal } = new AbortController()
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
const rejections = { codeOfRejection: unused, codeOfStatus: unused, isUnknownSigner: unused }
const { closed } = unwindSteps(
  {
    venue: {
      order: unused,
      openOrders: unused,
      fillsSince: unused,
      recentFills: unused,
      mids: unused,
      account: unused,
      timeMs: unused,
      passedMs: unused,
    },
    signedActions,
    pricing: { boundPrice: unused },
    rejections,
    onAgentRevoked: unused,
  },
  unused,
)

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
  externalId: deriveCloid('t', 'close2'),
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
  executionId: 't',
  userId: 'u',
  kind: 'perp_open',
  data,
  input: {},
  attempt: 1,
  version: 1,
  effects: [effect],
  createdAt: now,
  deadline: new Date(now.getTime() + 60_000),
}

test('a close that the request limit rejects is signed again, and does not count as an attempt', async () => {
  const result = await closed(task, { now, signal, stopping: signal })
  assert.ok('park' in result)
  assert.deepEqual(result.park, { afterMs: 10_000, next: 'unwind' })
  assert.equal(result.data?.closings, 1)
})

type Records = { fills: object[]; position: string; nowMs?: number }

/** The unwinding of a resting entry at a venue with these records. */
function stepsAt({ fills, position, nowMs = now.getTime() }: Records, finish: Finish = unused) {
  const clocks = { timeMs: async () => nowMs, passedMs: async () => nowMs }
  return unwindSteps(
    {
      venue: {
        ...clocks,
        order: unused,
        openOrders: unused,
        fillsSince: unused,
        mids: async () => new Map([['BTC', '100000']]),
        recentFills: async () =>
          fills.map(
            (fill) =>
              ({
                symbol: 'BTC',
                price: '100000',
                startSize: '0',
                feeUsd: '0',
                feeToken: 'USDC',
                ...fill,
              }) as Fill,
          ),
        account: async () =>
          ({
            positions: position === '0' ? [] : [{ symbol: 'BTC', signedSize: position }],
            unread: [] as Unread,
          }) as Account,
      },
      signedActions: createSignedActions({
        venue: {
          send: async () => ({ type: 'ok', legs: [{ type: 'accepted', as: 'success' }] }) as SendResult,
          ...clocks,
        },
        chainId: 'hl',
        policy: { authorize: unused, authorizeOnAccept: unused },
        signer: { venueKeys: unused },
        nonces: { ensure: async () => {} },
      }),
      pricing: { boundPrice: (price) => price },
      rejections,
      onAgentRevoked: unused,
    },
    finish,
  )
}
const { closings: _none, closed_size: _size, ...opened } = data
const restingData: PerpOrderTaskData = {
  ...opened,
  order_outcome: {
    entry: { orderId: 7, status: 'resting', filledSize: null, error: null },
    exits: [{ leg: 'sl', orderId: null, state: 'missing', error: 'too far' }],
  },
}
const cancelled = { ...effect, externalId: deriveCloid('t', 'entry_cancelled') }
const resting: PerpOrderTask = { ...task, data: restingData, effects: [cancelled] }
const bought = { orderId: 7, isBuy: true, atMs: now.getTime() + 1 }

test('an entry that was cancelled stays ended where the close is refused first, and the step it parks to closes', async () => {
  const steps = stepsAt({ fills: [{ ...bought, size: '1' }], position: '1' })
  const after = await steps.entry_cancelled(resting, { now, signal, stopping: signal })
  assert.ok('sign' in after)
  const refused = after.sign.onRefused!(new Fault('policy_denied', 'no'))
  assert.ok('park' in refused)
  const { neverSent: _sent, ...sent } = cancelled
  const confirmed: Effect = { ...sent, status: 'confirmed' }
  const stored = { ...restingData, ...refused.data } as PerpOrderTaskData
  const again = await steps[refused.park.next](
    { ...task, data: stored, effects: [confirmed] },
    { now, signal, stopping: signal },
  )
  assert.ok('sign' in again)
  assert.equal(again.next, 'closed')
  assert.equal(again.data && 'closings' in again.data && again.data.closings, 1)
})

test('nothing is left to close only once no read can lack a fill of the cancelled entry', async () => {
  const stale = { fills: [], position: '0' }
  const after = await stepsAt(stale).entry_cancelled(resting, { now, signal, stopping: signal })
  assert.ok('park' in after)
  const stored: PerpOrderTask = { ...resting, data: { ...restingData, ...after.data } as PerpOrderTaskData }
  const lagging = await stepsAt({ ...stale, nowMs: now.getTime() + 4_000 })[after.park.next](stored, {
    now,
    signal,
    stopping: signal,
  })
  assert.ok('park' in lagging)
  const late = { nowMs: now.getTime() + 6_000 }
  const shown = { fills: [{ ...bought, size: '0.3' }], position: '0.3', ...late }
  const closing = await stepsAt(shown).unwind(stored, { now, signal, stopping: signal })
  assert.ok('sign' in closing)
  const finish: Finish = async () => ({
    end: 'failed',
    outcome: 'not_executed',
    error: { code: 'x', message: '' },
  })
  const ended = await stepsAt({ ...stale, ...late }, finish).unwind(stored, { now, signal, stopping: signal })
  assert.ok('end' in ended)
})

test('a close leaves the position that was there before the entry', async () => {
  const fills = [
    { ...bought, size: '0.4', startSize: '1' },
    { orderId: 8, isBuy: false, size: '0.4', startSize: '1.4', atMs: now.getTime() + 2 },
  ]
  let finished: string | null | undefined
  const finish: Finish = async (_task, { closedSize }) => {
    finished = closedSize
    return { end: 'failed', outcome: 'partial', error: { code: 'x', message: '' } }
  }
  const entry = { orderId: 7, status: 'filled', filledSize: '0.4', error: null } as const
  const closedOnce: PerpOrderTaskData = {
    ...restingData,
    order_outcome: { entry, exits: restingData.order_outcome!.exits },
    closings: 1,
    closed_size: '0.4',
  }
  const steps = stepsAt({ fills, position: '1' }, finish)
  const after = await steps.unwind(
    { ...task, data: closedOnce, effects: [] },
    { now, signal, stopping: signal },
  )
  assert.ok('end' in after)
  assert.equal(finished, '0.4')
})
