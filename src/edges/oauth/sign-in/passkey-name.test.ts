import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passkeyName } from './passkey-name.ts'

test('a passkey is named for the browser and the device', () => {
  const names = [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
    'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36 Edg/138.0.0.0',
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
    'something else',
    undefined,
  ].map(passkeyName)
  assert.deepEqual(names, [
    'Safari on iPhone',
    'Chrome on Android',
    'Edge on Windows',
    'Firefox on Linux',
    'Safari on Mac',
    'Passkey',
    'Passkey',
  ])
})
