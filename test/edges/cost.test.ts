import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { redactUrl } from '#edges/http/request-log.ts'
import { createHttpApp, type HttpApp, tokens } from './http-app.ts'

let app: HttpApp
before(async () => {
  app = await createHttpApp()
})
after(() => app.close())

const cpuMsMax = 50
const answerBytesMax = 16 * 1024

type Sent = { route: string; body?: string; headers?: Record<string, string> }

/** Processor time of this process, so that the load of the machine does not matter; it includes the client's part. */
async function cost<T>(run: () => Promise<T> | T): Promise<{ ms: number; result: T }> {
  const before = process.cpuUsage()
  const result = await run()
  const { user, system } = process.cpuUsage(before)
  return { ms: (user + system) / 1_000, result }
}

async function ask({ route, body, headers }: Sent) {
  const [method = 'GET', url = '/'] = route.split(' ')
  const answer = await app.edge.fastify.inject({
    method: method as 'GET',
    url,
    headers: {
      authorization: tokens.all,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { payload: body }),
  })
  return { status: answer.statusCode, text: answer.payload }
}

/** The smallest of several measurements: garbage collection and a cold start belong to no input. */
async function assertCheap(name: string, sent: Sent): Promise<{ status: number; text: string }> {
  let minMs = Number.POSITIVE_INFINITY
  for (let attempt = 0; ; attempt++) {
    const { ms, result } = await cost(() => ask(sent))
    assert.ok(result.text.length < answerBytesMax, `${name}: an answer of ${result.text.length} characters`)
    minMs = Math.min(minMs, ms)
    if (minMs < cpuMsMax) return result
    assert.ok(attempt < 4, `${name}: ${minMs} ms of processor time`)
  }
}

const list = (item: string, count: number) => `[${Array.from({ length: count }, () => item).join(',')}]`

test('a small body of long keys and numbers beyond a double is rejected at once', async () => {
  for (const key of ['k'.repeat(16_384), 'k'.repeat(200)]) {
    for (const route of ['POST /v1/sign', 'POST /v1/pay', 'POST /v1/probe/check']) {
      const body = `{"${key}":${list('1e999', 1_700)}}`
      const { status } = await assertCheap(`${route} with a key of ${key.length}`, { route, body })
      assert.ok(status === 422 || status === 413, `${route}: ${status}`)
    }
  }
})

test('a body within the limit of bytes is bounded in keys, their length and values', async () => {
  const route = 'POST /v1/probe/check'
  const refusals: [string, RegExp][] = [
    [list('0', 120_000), /More than 5000 values/],
    [`{"name":"ab","free":${list('[]', 5_001)}}`, /More than 5000 values/],
    [`{"name":"ab","free":{"${'k'.repeat(257)}":1}}`, /key .*longer than 256 characters/i],
    [`{${Array.from({ length: 1_001 }, (_, at) => `"k${at}":1`).join(',')}}`, /More than 1000 keys/],
  ]
  for (const [body, why] of refusals) {
    const { status, text } = await assertCheap(String(why), { route, body })
    assert.equal(status, 422)
    assert.match(text, why)
  }
  const { status } = await ask({
    route,
    body: `{"name":"ab","free":{"${'k'.repeat(256)}":${list('1', 4_000)}}}`,
  })
  assert.equal(status, 200)
})

test('at most 20 errors of a request are listed, and their locations are truncated', async () => {
  const route = 'POST /v1/probe/check'
  const deep = `${'{"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk":'.repeat(28)}${list('1e999', 500)}${'}'.repeat(28)}`
  const bodies = [
    `{"name":"ab","free":${list('1e999', 4_000)}}`,
    `{"name":"ab","free":{${Array.from({ length: 900 }, (_, at) => `"${'k'.repeat(200)}${at}":1e999`).join(',')}}}`,
    `{"name":"ab","rows":${list('{"a/b":"x"}', 900)}}`,
    `{"name":"ab","rows":${list('0', 4_000)}}`,
    `{"name":"ab","free":${deep}}`,
  ]
  for (const body of bodies) {
    const { status, text } = await assertCheap(body.slice(0, 60), { route, body })
    assert.equal(status, 422, text)
    const { detail } = JSON.parse(text) as { detail: { loc: (string | number)[] }[] }
    assert.ok(detail.length >= 1 && detail.length <= 20, `${detail.length} items`)
    for (const { loc } of detail)
      for (const part of loc)
        assert.ok(String(part).length <= 65, `a part of ${String(part).length} characters`)
  }
  const unknown = Array.from({ length: 900 }, (_, at) => `"${'x'.repeat(250)}${at}":1`).join(',')
  const { status, text } = await assertCheap('unknown fields', {
    route: 'POST /v1/pay',
    body: `{${unknown}}`,
  })
  assert.equal(status, 422)
  assert.ok((JSON.parse(text) as { detail: unknown[] }).detail.length <= 20)
})

test('a value that no schema declares is not validated', async () => {
  const body = `{"name":"ab","other":${list('1e999', 100)},"more":{"a":"\\u0000"}}`
  assert.equal((await assertCheap('undeclared', { route: 'POST /v1/probe/check', body })).status, 200)
})

test('a public operation accepts a small body only', async () => {
  const small = { route: 'POST /v1/sign', body: JSON.stringify({ agent_id: 'a'.repeat(4_000) }) }
  assert.equal((await ask(small)).status, 200)
  const large = { route: 'POST /v1/sign', body: JSON.stringify({ agent_id: 'a'.repeat(9_000) }) }
  assert.equal((await ask(large)).status, 413)
})

test('a log line costs little, whatever the URL contains', async () => {
  for (const piece of [
    'a',
    'sig',
    'to',
    'eyJ',
    '%2b',
    'agt_',
    'eyJa.',
    '&a',
    '&%',
    '-eyJa',
    'code=&',
    'apikey',
  ]) {
    const url = `/nothing?${piece.repeat(Math.floor(15_000 / piece.length))}`
    let minMs = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < 5 && minMs >= 5; attempt++)
      minMs = Math.min(minMs, (await cost(() => redactUrl(url))).ms)
    assert.ok(minMs < 5, `${piece}: ${minMs} ms`)
    await assertCheap(`404 of ${piece}`, { route: `GET ${url}` })
  }
})
