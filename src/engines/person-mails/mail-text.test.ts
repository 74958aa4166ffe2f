import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type MailItem, mailKinds, mailName, mailOf } from './mail-text.ts'

const at = new Date('2026-03-04T05:06:59Z')
const item = (more: Partial<MailItem> = {}): MailItem => ({
  text: 'It was changed.',
  at,
  effectiveAt: null,
  ...more,
})
const places = { gateway: 'https://gw.example', accountPage: 'https://gw.example/oauth/account' }

test('a message says what happened, when it takes effect and where it is undone', () => {
  const effectiveAt = new Date('2026-11-30T23:59:00Z')
  const { subject, text } = mailOf({
    kind: 'limits_raised',
    items: [item({ effectiveAt })],
    more: 0,
    ...places,
  })
  assert.equal(subject, 'Limits of your Portico account were raised')
  assert.equal(
    text,
    [
      '4 Mar 2026, 05:06 UTC\nIt was changed.\nIt takes effect on 30 Nov 2026, 23:59 UTC.',
      'If this was not you: open https://gw.example/oauth/account, sign in and cancel the change before it takes effect.',
      'Sent by the Portico gateway at https://gw.example. It never asks for your password or for a code by email.',
    ].join('\n\n'),
  )
})

test('several changes are one message, and those beyond its limit are counted', () => {
  const { subject, text } = mailOf({ kind: 'passkey_added', items: [item(), item()], more: 3, ...places })
  assert.equal(subject, 'A passkey was added to your Portico account (5 times)')
  assert.equal(text.split('It took effect at once.').length, 3)
  assert.match(text, /And 3 more of this sort\./)
})

test('no message of any kind has another address than those of the gateway', () => {
  for (const kind of mailKinds) {
    const { text } = mailOf({ kind, items: [item()], more: 0, ...places })
    const addresses = text.match(/https?:\/\/[^\s,]+/g) ?? []
    assert.deepEqual(addresses, [places.accountPage, `${places.gateway}.`], kind)
  }
})

test('a name that others have chosen is no link, no mail address and no second line', () => {
  assert.equal(mailName('Claude.ai'), 'Claude ai')
  assert.equal(
    mailName('Pay at https://evil.example/x?y=1 or me@evil.example'),
    'Pay at https evil example x y 1 or me evil example',
  )
  assert.equal(mailName('Zoë’s bot (new) & co_1'), 'Zoë s bot (new) & co_1')
  assert.equal(mailName('a\u202eb\nc\r\nBcc: d\u3002com'), 'a b c Bcc d com')
  assert.equal(mailName('“” ...'), '')
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (name) => {
      const shown = mailName(name)
      assert.ok(shown.length <= 60 && shown.isWellFormed() && shown === shown.trim())
      assert.doesNotMatch(shown, /[.:/@\\\n\r<>“”"\u3002\uff0e\uff61]/)
    }),
  )
})
