import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultLimits } from '#invoke/rate-limits.ts'
import { group, implement, read, sharedRead } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { createHttpApp, noLimits, sendRequest } from './http-app.ts'

const contract = group('probe', 'Operations of a test.', {
  news: read('GET /v1/news', {
    summary: 'News',
    access: 'public',
    output: T.Object({ text: T.String() }, { $id: 'News' }),
  }),
})

test('a shared read is computed once per version, and each request still counts and is validated', async (t) => {
  let text = 'one'
  let computed = 0
  const news = sharedRead(
    () => text,
    async () => {
      computed += 1
      return { text, hidden: 'never shown' }
    },
  )
  const app = await createHttpApp({
    operations: implement(contract, { news }),
    limits: { ...noLimits, read: { ...defaultLimits.read, points: 6 } },
  })
  t.after(() => app.close())
  const left = (headers: Headers) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
  for (const expected of ['5', '4']) {
    const { status, body, headers } = await sendRequest(app.url, 'GET /v1/news')
    assert.deepEqual([status, body, left(headers)], [200, { text: 'one' }, expected])
  }
  const head = await sendRequest(app.url, 'HEAD /v1/news')
  assert.deepEqual([head.text, head.headers.get('content-length')], ['', '14'])
  assert.equal(computed, 1)
  text = 'two'
  assert.deepEqual((await sendRequest(app.url, 'GET /v1/news')).body, { text: 'two' })
  assert.equal(computed, 2)
  assert.equal((await sendRequest(app.url, 'GET /v1/news?since=1')).status, 422)
  assert.deepEqual((await sendRequest(app.url, 'GET /v1/news')).body, { text: 'two' })
  assert.equal((await sendRequest(app.url, 'GET /v1/news')).status, 429)
})
