/** Text of a foreign system is stored, with any characters in it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { StepResult, TaskView } from '#kernel/task/task.ts'
import { type EngineFixture, newUser, openFixture, signingStep } from './engine-fixture.ts'

const unstorable = 'reverted: \0 \ud800 é'
const stored = 'reverted: \ufffd \ufffd é'

describe('text that no column can hold', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  test('a task whose batch failed for a reason with a zero byte ends, and reports the rest of the reason', async () => {
    const dropped = ({ effects }: TaskView): StepResult => ({
      end: 'failed',
      outcome: 'not_executed',
      error: { code: 'tx_failed', message: unstorable },
      data: { unstorable },
      events: [{ type: 'test.said', data: { unstorable } }],
      effects: effects.map(({ id }) => ({ effectId: id, status: 'dropped', proof: { unstorable } })),
    })
    await using a = await fixture.instance({
      steps: { sign: signingStep('look'), look: async (task) => dropped(task) },
    })
    const answer = await a.run(newUser(), { timeoutMs: 5_000 })
    assert.equal(answer.status, 'failed')
    const [row] = await fixture.rows<{ message: string; said: string }>(
      `select error ->> 'message' as message, data ->> 'unstorable' as said from task where id = $1`,
      answer.task_id,
    )
    assert.deepEqual(row, { message: stored, said: stored })
  })

  test('it is accepted in the data of an admission', async () => {
    await using a = await fixture.instance(
      { steps: { only: async () => ({ end: 'completed', outcome: 'executed', result: { unstorable } }) } },
      { admit: async () => ({ data: { unstorable }, first: 'only' }) },
    )
    assert.equal((await a.run(newUser())).status, 'completed')
  })
})
