/** The code that docs/webhooks.md gives to receivers accepts our messages, and no others. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { secretText, signatureHeader } from '#features/notifications/webhooks/signature.ts'

type Verify = (secret: string, headers: Record<string, string>, body: string) => unknown

async function documented(): Promise<Verify> {
  const text = readFileSync(`${import.meta.dirname}/../../docs/webhooks.md`, 'utf8')
  const [, code] = /```js\n([\s\S]*?)```/.exec(text) ?? []
  assert.ok(code, 'the page has the code')
  const module = `data:text/javascript,${encodeURIComponent(code)}`
  return ((await import(module)) as { verify: Verify }).verify
}

test('the documented code verifies a message with either secret, and refuses what was changed', async () => {
  const verify = await documented()
  const [current, former, other] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
  const body = '{"id":"7","type":"task.completed"}'
  const timestampSeconds = Math.floor(Date.now() / 1_000)
  const signed = (timestamp: number) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatureHeader([current, former], {
      id: 'msg_1',
      timestampSeconds: timestamp,
      body,
    }),
  })
  const headers = signed(timestampSeconds)
  for (const secret of [current, former])
    assert.deepEqual(verify(secretText(secret), headers, body), JSON.parse(body))
  assert.throws(() => verify(secretText(other), headers, body), /signature/)
  assert.throws(() => verify(secretText(current), headers, body.replace('7', '8')), /signature/)
  assert.throws(() => verify(secretText(current), { ...headers, 'webhook-id': 'msg_2' }, body), /signature/)
  assert.throws(() => verify(secretText(current), signed(timestampSeconds - 301), body), /too old/)
})
