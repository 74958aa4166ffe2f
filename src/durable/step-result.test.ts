import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StepResult, TaskKind, Tx } from '#kernel/task.ts'
import { failed, withNotExecutedHook } from './step-result.ts'

const tx = {} as Tx

function releasingKind() {
  const calls: string[] = []
  const released = async (_tx: Tx, taskId: string) => void calls.push(`released ${taskId}`)
  const kind: TaskKind = { kind: 'test', version: 1, priority: 1, steps: {}, onNotExecuted: released }
  return { calls, kind }
}

test('a task that ends without execution releases its reservation before the writes of its step', async () => {
  const { calls, kind } = releasingKind()
  const end = { ...failed('rejected', 'no'), writes: async () => void calls.push('step') } as StepResult
  await withNotExecutedHook(end, kind, 'a').writes?.(tx)
  assert.deepEqual(calls, ['released a', 'step'])
})

test('a task that executed, in full or in part, or that continues, keeps its reservation', () => {
  const { kind } = releasingKind()
  const results: StepResult[] = [
    { end: 'completed', outcome: 'executed', result: {} },
    { end: 'completed', outcome: 'partial', result: {} },
    { next: 'later' },
  ]
  for (const result of results) assert.equal(withNotExecutedHook(result, kind, 'a'), result)
})

test('a kind without reservations has no release', () => {
  const end = failed('rejected', 'no')
  assert.equal(withNotExecutedHook(end, { kind: 'test', version: 1, priority: 1, steps: {} }, 'a'), end)
})
