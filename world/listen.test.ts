import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resetRefusedUpgrades } from './conformance/venue/venue.ts'
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

test('a connection that is reset while its upgrade is refused ends alone', async () => {
  const upgrade = () => assert.fail('a foreign page was let in')
  const server = await listen((_request, answer) => answer.end('here'), { preferredPort: 0 }, upgrade)
  try {
    const url = `http://127.0.0.1:${server.port}/`
    await resetRefusedUpgrades(url)
    assert.equal(await (await fetch(url)).text(), 'here')
  } finally {
    await server.close()
  }
})
