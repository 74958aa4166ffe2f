/** Which requests count as those of a window and of a press, by what each browser says of them. */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { isNavigation, isPressed } from './browser-request-checks.ts'

const requestWith = (headers: Record<string, string>) => ({ headers }) as unknown as IncomingMessage
const form = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin' }
const safari = {
  ...form,
  'user-agent':
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
}
const chrome = { ...form, 'sec-ch-ua': '"Chromium";v="140", "Google Chrome";v="140"' }
const firefox = {
  ...form,
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0',
}

test('a person presses with every browser, and a script in none that would say so', () => {
  for (const headers of [chrome, firefox]) {
    assert.equal(isPressed(requestWith(headers)), false)
    assert.equal(isPressed(requestWith({ ...headers, 'sec-fetch-user': '?1' })), true)
  }
  for (const headers of [safari, {}]) {
    assert.equal(isPressed(requestWith(headers)), true)
    assert.equal(isNavigation(requestWith(headers)), true)
  }
  assert.equal(isNavigation(requestWith({ ...safari, 'sec-fetch-dest': 'empty' })), false)
})
