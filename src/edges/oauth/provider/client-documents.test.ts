import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fetchDocuments } from './client-documents.ts'

const url = 'https://client.example/metadata.json'

function served(answer: () => Response) {
  let [count, nowMs] = [0, 0]
  const fetch = fetchDocuments(
    async () => {
      count++
      return answer()
    },
    () => nowMs,
  )
  return { fetch, count: () => count, pass: (ms: number) => (nowMs += ms) }
}
const json = { headers: { 'content-type': 'application/json' } }

test('an address that gave no document is asked again after five seconds, and others at once', async () => {
  const answers: Readonly<Record<string, () => Response>> = {
    'an error': () => new Response('{}', { ...json, status: 404 }),
    'a page': () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
    'no answer': () => {
      throw new Error('away')
    },
  }
  for (const [what, answer] of Object.entries(answers)) {
    const { fetch, count, pass } = served(answer)
    await fetch(url).catch(() => undefined)
    await assert.rejects(fetch(url), /client\.example gave no document a moment ago/, what)
    assert.equal(count(), 1, what)
    await fetch(`${url}?other`).catch(() => undefined)
    assert.equal(count(), 2, what)
    pass(5_000)
    await fetch(url).catch(() => undefined)
    assert.equal(count(), 3, what)
  }
})

test('an address that gave a document is asked as often as it is wanted', async () => {
  const { fetch, count } = served(() => new Response('{}', json))
  await fetch(url)
  await fetch(url)
  assert.equal(count(), 2)
})
