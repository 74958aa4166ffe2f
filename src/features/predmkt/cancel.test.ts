import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CancelReply } from '#kernel/money/prediction-venue.ts'
import type { StepResult, TaskView } from '#kernel/task/task.ts'
import { createCancel } from './cancel.ts'
import type { PredmktDeps } from './deps.ts'

/** A task in whose claim the orders were listed has version 7; each commit and each claim raises the version by one. */
const listed = 7
const refusal: CancelReply = { type: 'rejected', reason: 'key_invalid', message: 'Unauthorized', limit: null }

/** Sends the cancel of two orders in a task of this version, while the venue shows the orders in these states. */
async function sentAt(version: number, statuses: Record<string, string>): Promise<StepResult> {
  const deps = {
    venue: {
      name: 'polymarket',
      cancelOrders: async () => refusal,
      order: async (id: string) => ({ status: statuses[id] }),
    },
    db: { query: async () => ({ rows: [] }) },
    keys: { of: async () => ({}) },
    log: { warn: assert.fail },
  } as unknown as PredmktDeps
  const { steps } = createCancel(deps)
  const task = { id: 'task', userId: 'ada', version: listed, effects: [] }
  const data = { owner: '0x1', order_ids: ['0xa', '0xb'], exit_ids: [], market_id: null, outcome_id: null }
  const now = new Date()
  const context = { now, signal: new AbortController().signal, stopping: new AbortController().signal }
  const run = (step: string, view: object) => steps[step]!(view as unknown as TaskView, context)
  const { data: more } = await run('list', { ...task, data })
  return run('send', { ...task, version, data: { ...data, ...(more as object) } })
}

test('the refusal of the first request executes nothing', async () => {
  const { end, outcome, result } = (await sentAt(listed + 1, {})) as unknown as Record<string, unknown>
  assert.deepEqual([end, outcome, result], ['failed', 'not_executed', undefined])
})

test('after a request that may have died with the gateway, a refusal says what the orders show', async () => {
  const statuses = { '0xa': 'canceled', '0xb': 'live' }
  const { end, outcome, result } = (await sentAt(listed + 2, statuses)) as unknown as Record<string, unknown>
  assert.deepEqual([end, outcome], ['failed', 'partial'])
  assert.deepEqual(result, {
    canceled: ['0xa'],
    not_canceled: { '0xb': 'It is not known whether the venue has cancelled it' },
  })
  const all = (await sentAt(listed + 2, { '0xa': 'canceled', '0xb': 'canceled' })) as unknown as {
    next: string
    data: { canceled: string[] }
  }
  assert.deepEqual([all.next, all.data.canceled], ['send', ['0xa', '0xb']])
})
