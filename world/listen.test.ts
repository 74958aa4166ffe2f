import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listen } from './listen.ts'

test('a required port that is in use is reported with the variable to change', async () => {
  const answer = () => undefined
  const first = await listen(answer, { requiredPort: 0 })
  try {
    await assert.rejects(listen(answer, { requiredPort: first.port }), {
      message: `Port ${first.port} is in use. Set WORLD_PORT to another one; 0 picks a free one.`,
    })
    const other = await listen(answer, { preferredPort: first.port })
    assert.notEqual(other.port, first.port)
    await other.close()
  } finally {
    await first.close()
  }
})
