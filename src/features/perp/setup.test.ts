import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '#kernel/money/venue-actions.ts'
import type { StepContext, TaskView } from '#kernel/task/task.ts'
import { type SetupDeps, type SetupTaskData, setupSteps } from './setup.ts'

const now = new Date(1_700_000_000_000)
const { signal } = new AbortController()
const context: StepContext = { now, signal, stopping: signal }
const agentAt = (address: string): Agent => ({
  id: address,
  address,
  createdAt: now,
  approvedAt: now,
  expiresAt: new Date(now.getTime() + 86_400_000),
})
const unused = () => {
  throw new Error('a task that finds its key replaced does nothing else')
}

/** The first step of a set-up that rotates; `current` is the key that it finds. */
async function begin(current: Agent | undefined, data: Partial<SetupTaskData>) {
  let prepared = 0
  const { sign } = setupSteps({
    tradingKeys: {
      of: async () => ({ current, waiting: undefined }),
      async prepare() {
        prepared += 1
        return {}
      },
    },
    status: async () => ({ setup_complete: true }),
    signedActions: { sign: unused, confirm: unused },
  } as unknown as SetupDeps)
  const task: TaskView<SetupTaskData> = {
    id: 't',
    executionId: 't',
    userId: 'u',
    kind: 'venue_key_renewal',
    data: { account: '0xacc', ahead_ms: 0, exit: true, rotate: true, ...data },
    input: {},
    attempt: 1,
    version: 1,
    effects: [],
    createdAt: now,
    deadline: new Date(now.getTime() + 60_000),
  }
  return { result: await sign(task, context), prepared }
}

test('a rotation makes a new key where the current one is the one that it replaces', async () => {
  const { result, prepared } = await begin(agentAt('0xold'), { replaces: '0xold' })
  assert.deepEqual(['next' in result && result.next, prepared], ['sign', 1])
})

test('a rotation makes no second key where another task has replaced the key meanwhile', async () => {
  for (const replaces of ['0xold', null]) {
    const { result, prepared } = await begin(agentAt('0xnew'), { replaces })
    assert.deepEqual(['end' in result && result.end, prepared], ['completed', 0])
  }
})

test('a rotation that an earlier release accepted makes a new key', async () => {
  assert.equal((await begin(agentAt('0xold'), {})).prepared, 1)
})
