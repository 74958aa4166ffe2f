import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { readCookie } from './cookies.ts'

test('a cookie that comes twice is refused', () => {
  const read = (cookie: string) => readCookie({ headers: { cookie } } as IncomingMessage, 'a.b')
  assert.equal(read('x=1; a.b=one; y=2'), 'one')
  for (const cookie of ['a.b=planted; a.b=one', 'a.b=; a.b=one'])
    assert.throws(() => read(cookie), /came twice/, cookie)
  for (const cookie of ['a-b=one', 'xa.b=one', 'a.b=', 'a.b=<']) assert.equal(read(cookie), undefined, cookie)
})
