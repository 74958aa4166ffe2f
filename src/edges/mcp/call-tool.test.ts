import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipPart } from '#invoke/gzip.ts'
import { createKeyCounts } from '#kernel/async/key-counts.ts'
import { callTool } from './call-tool.ts'
import { mainSelection } from './tool-selection.ts'
import type { OperationTool } from './tool-view.ts'
import type { Toolbox } from './tools.ts'

test('a user waits for ten tasks at once; further waits return the task as it stands', async () => {
  let reads = 0
  const invocable = {
    operation: { entry: { kind: 'read' } },
    admit: async () => ({ principal: 'user:1' }),
    readFlatInput: (input: object) => ({ input }),
    async call() {
      reads++
      return { kind: 'answer', body: { status: 'running' } }
    },
  }
  const tool = { view: { name: 'tasks_get' }, invocable } as unknown as OperationTool
  const toolbox: Toolbox = {
    find: () => tool,
    findOperation: () => ({ content: [] }),
    waits: createKeyCounts(),
    listFor: () => ({ views: [], part: gzipPart('') }),
    taskTtlMs: null,
  }
  const leaving = new AbortController()
  const facts = {
    authorization: undefined,
    address: '::1',
    id: 'r',
    viewer: async () => ({ caller: { scopes: new Set<never>() }, isLinked: false }),
    selection: mainSelection,
    signal: leaving.signal,
  }
  const wait = () => callTool(toolbox, 'tasks_wait', { task_id: 't' }, facts)
  let ended = 0
  const waits = Array.from({ length: 10 }, async () => {
    await wait()
    ended++
  })
  await wait()
  assert.deepEqual([reads, ended], [11, 0])
  leaving.abort()
  await Promise.all(waits)
  assert.equal(toolbox.waits.size(), 0)
})
