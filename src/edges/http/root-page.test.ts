import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prefersHtml } from './root-page.ts'

test('browsers prefer HTML, programs do not', () => {
  for (const accept of [
    'text/html',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'TEXT/HTML ; level=1, application/json;q=0.5',
    'text/*',
  ])
    assert.equal(prefersHtml(accept), true, accept)
  for (const accept of [
    undefined,
    '',
    '*/*',
    'application/json',
    'application/json, text/plain, */*',
    'application/json, text/html;q=0.9',
    'text/html;q=0',
    'text/html;q=x, */*',
    ','.repeat(10_000),
  ])
    assert.equal(prefersHtml(accept), false, accept)
})
