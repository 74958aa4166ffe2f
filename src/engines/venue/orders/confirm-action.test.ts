import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Effect, TaskView } from '#kernel/task/task.ts'
import type { SendResult } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type ActionTaskData, deriveCloid, effectKind } from './action-outcome.ts'
import { confirmAction } from './confirm-action.ts'
import { readLagMs } from './order-lookup.ts'

const sentMs = 1_700_000_000_000
const endsMs = sentMs + 20_000
const effect: Effect = {
  id: 'e',
  step: 'order',
  kind: effectKind,
  externalId: deriveCloid('t', 'entry'),
  intent: { account: '0xacc', nonce: String(sentMs), expiresAtMs: endsMs },
  signed: {},
  status: 'unknown',
  validUntil: null,
  at: new Date(sentMs),
  txAttempts: [
    {
      n: 0,
      externalId: '0xa9e:1',
      raw: '{}',
      nonceSequence: { kind: 'hyperliquid', chain: 'hl', signer: '0xa9e' },
      nonce: 1n,
      status: 'unknown',
      at: new Date(sentMs),
    },
  ],
}
const taskWith = (data: ActionTaskData): TaskView<ActionTaskData> => ({
  id: 't',
  executionId: 't',
  userId: 'u',
  kind: 'perp_open',
  data,
  input: {},
  attempt: 1,
  version: 1,
  effects: [effect],
  createdAt: new Date(sentMs),
  deadline: new Date(sentMs + 60_000),
})

/** A look-up of an order that was sent once, when the venue's clock is at `nowMs`. */
const lookUpAt = (nowMs: number, data: ActionTaskData, found?: string) =>
  confirmAction(
    {
      task: taskWith(data),
      actionKey: 'entry',
      signal: new AbortController().signal,
      parseReply: () => undefined,
      lookUp: async () => found,
    },
    {
      venue: {
        send: async (): Promise<SendResult> => ({ type: 'unknown' }),
        timeMs: async () => nowMs,
        passedMs: async () => nowMs,
      },
      graceMs: 0,
    },
  )

test('an order counts as expired only after a second look-up some seconds after the first', async () => {
  const firstMs = endsMs + readLagMs + 1
  const first = await lookUpAt(firstMs, { polls: 5 })
  assert.ok(first.type === 'unknown')
  assert.deepEqual(first.absence, { effect_id: 'e', at_ms: firstMs })
  const data: ActionTaskData = { polls: 6, absence: first.absence! }
  assert.ok((first.nextMs?.(30_000) ?? 0) < 5_000)
  assert.equal((await lookUpAt(firstMs + 1_000, data)).type, 'unknown')
  assert.equal((await lookUpAt(firstMs + 3_000, data)).type, 'expired')
})

test('an order that only the second look-up finds was executed', async () => {
  const atMs = endsMs + readLagMs + 5_000
  const data: ActionTaskData = { polls: 6, absence: { effect_id: 'e', at_ms: atMs - 4_000 } }
  assert.equal((await lookUpAt(atMs, data, 'filled')).type, 'executed')
})

test('the absence of an earlier action of the task proves nothing about the present one', async () => {
  const atMs = endsMs + readLagMs + 5_000
  const data: ActionTaskData = { polls: 6, absence: { effect_id: 'other', at_ms: atMs - 60_000 } }
  assert.equal((await lookUpAt(atMs, data)).type, 'unknown')
})

test('an order that was found before is neither sent again nor absent where later reads miss it', async () => {
  const asked: boolean[] = []
  const missed = (nowMs: number, polls: number) =>
    confirmAction(
      {
        task: taskWith({ polls, looked_before: 'entry' }),
        actionKey: 'entry',
        signal: new AbortController().signal,
        parseReply: () => undefined,
        lookUp: async ({ allRecords }) => void asked.push(allRecords),
      },
      {
        venue: {
          send: () => Promise.reject(new Error('it is sent again')),
          timeMs: async () => nowMs,
          passedMs: async () => nowMs,
        },
        graceMs: 0,
      },
    )
  for (const [nowMs, polls] of [
    [sentMs, 0],
    [sentMs, 1],
    [endsMs + readLagMs + 1, 7],
    [endsMs + readLagMs + 60_000, 8],
  ] as const) {
    const outcome = await missed(nowMs, polls)
    assert.ok(outcome.type === 'unknown' && outcome.absence === undefined, JSON.stringify(outcome))
    assert.equal(asked.at(-1), true)
  }
})
