import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RecommendationDeps, refresh } from './recommendations.ts'

const id = '0199c2f0-6a0e-7c1e-9d43-5f0f6c7a2b11'
const caller = { userId: 'user' } as never

test('a refresh that names its schedule in another case joins the one under way', async () => {
  const deps = {
    db: { query: async () => ({ rows: [{ id }] }) },
    tasks: { list: async () => ({ tasks: [{ id: 'running', data: { schedule_id: id } }] }) },
    taskBrief: async (_db: unknown, taskId: string) => ({ task_id: taskId }),
  } as unknown as RecommendationDeps
  const { admit, answer } = refresh(deps)
  const input = { schedule_id: id.toUpperCase() }
  assert.deepEqual(await answer?.(input, caller), { task_id: 'running' })
  assert.deepEqual((await admit(input, caller)).data, { schedule_id: id })
})
