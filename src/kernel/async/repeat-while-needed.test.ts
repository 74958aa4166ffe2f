import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repeatWhileNeeded } from './repeat-while-needed.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a job runs while anybody needs it, and starts again when somebody does', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let runs = 0
  const runsAfterTick = async () => {
    t.mock.timers.tick(100)
    await settled()
    return runs
  }
  const need = repeatWhileNeeded(async () => void runs++, { everyMs: 100 })
  assert.equal(await runsAfterTick(), 0)
  const first = need()
  const second = need()
  assert.equal(await runsAfterTick(), 1)
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  assert.equal(await runsAfterTick(), 2)
  second[Symbol.dispose]()
  assert.equal(await runsAfterTick(), 2)
  using _third = need()
  assert.equal(await runsAfterTick(), 3)
})
