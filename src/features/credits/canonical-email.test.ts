import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mailboxOf } from './canonical-email.ts'

test('addresses of one mailbox have one name', () => {
  assert.equal(mailboxOf('Ada+1@example.com'), 'ada@example.com')
  assert.equal(mailboxOf('a.d.a+x+y@googlemail.com'), 'ada@gmail.com')
  assert.equal(mailboxOf('+tag@example.com'), '+tag@example.com')
})

test('addresses of different mailboxes have different names', () => {
  assert.notEqual(mailboxOf('a.da@example.com'), mailboxOf('ada@example.com'))
  assert.notEqual(mailboxOf('ada@example.com'), mailboxOf('ada@example.org'))
})
