import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type FaultCode, faults } from '#kernel/contract/fault.ts'
import { createHttpApp, type HttpApp, rawExchange, sendRequest, tokens } from './http-app.ts'

let app: HttpApp
before(async () => {
  app = await createHttpApp()
})
after(() => app.close())

const challenge = () => `Bearer resource_metadata="${app.url}/.well-known/oauth-protected-resource"`

test('a missing and a wrong credential are 401 with the exact header, before any other check', async () => {
  const sendings: [string, object][] = [
    ['GET /v1/probe', {}],
    ['GET /v1/probe?limit=999', {}],
    ['POST /v1/pay', { raw: '{"broken', headers: { 'content-type': 'application/json' } }],
    ['POST /v1/pay', { raw: 'x', headers: { 'content-type': 'text/plain' } }],
    ['GET /v1/watch', {}],
  ]
  for (const [route, sent] of sendings) {
    for (const authorization of [undefined, 'Bearer agt_wrong', 'Basic eDp5']) {
      const headers = { ...(sent as { headers?: object }).headers, authorization }
      const answer = await sendRequest(app.url, route, { ...sent, headers })
      assert.equal(answer.status, 401, route)
      assert.equal(answer.headers.get('www-authenticate'), challenge())
      assert.equal(answer.body.code, authorization === undefined ? 'unauthorized' : 'invalid_token')
      assert.deepEqual(Object.keys(answer.body), ['detail', 'code', 'retryable', 'request_id'])
    }
  }
})

test('a missing scope is 403 before the body is validated', async () => {
  const answer = await sendRequest(app.url, 'POST /v1/pay', {
    body: {},
    headers: { authorization: tokens.reader },
  })
  assert.equal(answer.status, 403)
  assert.equal(answer.body.code, 'insufficient_scope')
  assert.equal(answer.body.scope, 'trade')
})

test('a public path accepts any credential and checks none', async () => {
  for (const authorization of [undefined, 'Bearer agt_wrong', 'Bearer agt_down', tokens.all]) {
    assert.equal(
      (await sendRequest(app.url, 'GET /v1/probe/open', { headers: { authorization } })).status,
      200,
    )
  }
  assert.equal(app.seen.at(-1)?.caller?.userId, 'u1')
  assert.equal(app.seen.at(-2)?.caller, null)
})

test('an unknown path is 404, a known path under another method 405 with Allow', async () => {
  const absent = await sendRequest(app.url, 'GET /v1/nothing', { headers: { authorization: undefined } })
  assert.equal(absent.status, 404)
  assert.equal(absent.body.code, 'not_found')
  for (const [route, allow] of [
    ['DELETE /v1/probe', 'GET, HEAD, OPTIONS, PUT'],
    ['GET /v1/pay', 'OPTIONS, POST'],
    ['GET /v1/pay/x%2Fy/cancel?a=/', 'OPTIONS, POST'],
    ['PATCH /v1/probe/some/', 'GET, HEAD, OPTIONS'],
    ['POST /health', 'GET, HEAD, OPTIONS'],
  ] as const) {
    const answer = await sendRequest(app.url, route, { headers: { authorization: undefined } })
    assert.equal(answer.status, 405, route)
    assert.equal(answer.body.code, 'method_not_allowed')
    assert.equal(answer.headers.get('allow'), allow, route)
  }
})

test('an unknown path and a wrong method are answered without reading the body', async () => {
  for (const [type, raw] of [
    ['application/json', '{'],
    ['text/plain', 'amount_usdc=5'],
    ['application/json', `"${'y'.repeat(300 * 1024)}"`],
  ] as const) {
    const sent = { raw, headers: { 'content-type': type, authorization: undefined } }
    assert.equal((await sendRequest(app.url, 'POST /v1/nothing', sent)).status, 404)
    assert.equal((await sendRequest(app.url, 'DELETE /v1/probe', sent)).status, 405)
  }
})

test('an unknown path is answered with the nearest one, and a wrong method with those of the path', async () => {
  for (const [route, sentence] of [
    ['GET /v1/prob', 'There is no such path; did you mean GET /v1/probe?'],
    ['PUT /v1/prob', 'There is no such path; did you mean PUT /v1/probe?'],
    ['POST /pay', 'There is no such path; did you mean POST /v1/pay?'],
    ['GET /v1/uuids/7', 'There is no such path; did you mean GET /v1/uuid/{id}?'],
    ['GET /.env', 'There is no such path; /openapi.json lists every path'],
    [`GET /${'a/'.repeat(4_000)}`, 'There is no such path; /openapi.json lists every path'],
    ['DELETE /v1/probe', 'This path does not take DELETE: send GET, PUT or POST /v1/probe/check'],
    ['GET /v1/pay', 'This path does not take GET: send POST'],
  ] as const)
    assert.equal((await sendRequest(app.url, route)).body.detail, sentence, route.slice(0, 60))
})

test('the root path has a page for a browser and answers a program with links', async () => {
  const headers = { authorization: undefined }
  const browser = { ...headers, accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  const page = await fetch(app.url, { headers: { accept: browser.accept } })
  const html = await page.text()
  assert.deepEqual(
    [page.status, page.headers.get('content-type'), page.headers.get('vary')?.includes('Accept')],
    [200, 'text/html; charset=utf-8', true],
  )
  for (const words of ['Release ', 'This is a local world', `${app.url}/mcp`, 'href="/docs"'])
    assert.ok(html.includes(words), `${words}: ${html.slice(-1_500)}`)
  assert.doesNotMatch(html, /oauth\/account/, 'nobody signs in here')
  const { status, body, headers: sent } = await sendRequest(app.url, 'GET /', { headers })
  assert.equal(status, 200)
  assert.equal(sent.get('content-type'), 'application/json; charset=utf-8')
  const first = body.first_call as { method: string; path: string }
  assert.deepEqual([first.method, first.path], ['POST', '/v1/auth/register'])
  for (const name of ['docs', 'openapi', 'error_catalog', 'api_catalog', 'health']) {
    const link = String(body[name])
    assert.ok(link.startsWith(app.url), link)
    assert.equal((await fetch(link)).status, 200, link)
  }
  for (const answer of [page, { headers: sent }]) {
    assert.match(answer.headers.get('vary') ?? '', /\bAccept\b/)
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  }
  const again = { ...headers, 'if-none-match': sent.get('etag') ?? '' }
  assert.equal((await sendRequest(app.url, 'GET /', { headers: again })).status, 304)
  const head = await sendRequest(app.url, 'HEAD /', { headers })
  assert.deepEqual([head.status, head.text], [200, ''])
  assert.equal((await sendRequest(app.url, 'HEAD /', { headers: browser })).status, 200)
  const options = await sendRequest(app.url, 'OPTIONS /', { headers })
  assert.deepEqual([options.status, options.headers.get('allow')], [204, 'GET, HEAD, OPTIONS'])
  assert.equal((await sendRequest(app.url, 'POST /', { headers })).status, 405)
})

test('HEAD answers where GET does, and opens no stream', async () => {
  const head = await sendRequest(app.url, 'HEAD /v1/probe/open')
  assert.equal(head.status, 200)
  assert.equal(head.text, '')
  const streamed = await sendRequest(app.url, 'HEAD /v1/watch')
  assert.equal(streamed.status, 405)
  assert.equal(streamed.headers.get('allow'), 'GET, OPTIONS')
})

test('OPTIONS answers the methods of a known path and 404 for an unknown one', async () => {
  const known = await sendRequest(app.url, 'OPTIONS /v1/probe', { headers: { authorization: undefined } })
  assert.equal(known.status, 204)
  assert.equal(known.headers.get('allow'), 'GET, HEAD, OPTIONS, PUT')
  assert.equal((await sendRequest(app.url, 'OPTIONS /v1/nothing')).status, 404)
})

test('a path is found with and without its last slash', async () => {
  assert.equal((await sendRequest(app.url, 'POST /chat/image/')).status, 200)
  assert.equal((await sendRequest(app.url, 'POST /chat/image')).status, 200)
  assert.equal((await sendRequest(app.url, 'GET /v1/probe/open/')).status, 200)
})

test('only JSON is accepted: other types are 415, and none of them reaches a function', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'a/b; c']) {
    const answer = await sendRequest(app.url, 'POST /v1/pay', {
      raw: 'amount_usdc=5',
      headers: { 'content-type': type },
    })
    assert.equal(answer.status, 415, type)
    assert.equal(answer.body.code, 'unsupported_media_type')
  }
  const charset = { 'content-type': 'Application/JSON; charset=utf-8' }
  assert.equal(
    (await sendRequest(app.url, 'POST /v1/pay', { raw: '{"amount_usdc":5}', headers: charset })).status,
    200,
  )
})

test('a body over 256 KiB is 413, one just below is read', async () => {
  const headers = { 'content-type': 'application/json' }
  const sized = (bytes: number) => `{"name":"ab","free":{"x":"${'y'.repeat(bytes - 30)}"}}`
  const large = await sendRequest(app.url, 'POST /v1/probe/check', { raw: sized(256 * 1024 + 100), headers })
  assert.equal(large.status, 413)
  assert.equal(large.body.code, 'body_too_large')
  assert.equal(
    (await sendRequest(app.url, 'POST /v1/probe/check', { raw: sized(256 * 1024 - 100), headers })).status,
    200,
  )
})

test('a body with a false length is rejected in the form of the gateway', async () => {
  const chunked =
    `POST /v1/pay HTTP/1.1\r\nhost: x\r\nauthorization: ${tokens.all}\r\nconnection: close\r\n` +
    'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n'
  const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
  assert.match(
    await rawExchange(app.url, chunked + chunk.repeat(5)),
    /^HTTP\/1\.1 413[\s\S]*"body_too_large"/,
  )
})

test('headers over 16 KiB are 431 and a broken request line is 400, both as JSON', async () => {
  const large = await rawExchange(
    app.url,
    `GET /health HTTP/1.1\r\nhost: x\r\nx-a: ${'y'.repeat(17_000)}\r\n\r\n`,
  )
  assert.match(large, /^HTTP\/1\.1 431 [\s\S]*x-request-id: [\w-]{36}\r\n[\s\S]*"code":"headers_too_large"/)
  for (const bytes of [
    'NONSENSE\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET /health HTTP/1.1\r\nbad header\r\n\r\n',
  ]) {
    assert.match(await rawExchange(app.url, bytes), /^HTTP\/1\.1 400 [\s\S]*"code":"bad_request"/)
  }
})

test('an undecodable URL is 400 in the form of the gateway, with id and security headers', async () => {
  for (const path of ['/%', '/v1/probe/%ff', '/v1/probe/%E0%A4%A']) {
    const answer = await rawExchange(app.url, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    assert.match(answer, /^HTTP\/1\.1 400 /, path)
    assert.match(answer, /"code":"bad_request"/)
    assert.match(answer, /x-request-id: [\w-]{36}/)
    assert.match(answer, /x-content-type-options: nosniff/)
  }
})

test('a path parameter that matches no id is 404', async () => {
  assert.equal((await sendRequest(app.url, `GET /v1/probe/${'x'.repeat(2_000)}`)).status, 404)
})

test('a bug is 500 without its message, and is logged with its stack under the same id', async () => {
  const answer = await sendRequest(app.url, 'POST /v1/break', { body: { how: 'bug' } })
  assert.equal(answer.status, 500)
  assert.deepEqual(answer.body, {
    detail: 'Something went wrong on our side',
    code: 'internal',
    retryable: true,
    outcome: 'unknown',
    request_id: answer.headers.get('x-request-id'),
  })
  const logged = app.lines.find(({ facts }) => facts.request_id === answer.body.request_id && facts.error)
  assert.match(
    String((logged?.facts.error as Error | undefined)?.stack),
    /an internal detail[\s\S]*http-app\.ts/,
  )
})

test('every code of the catalogue has its status, its extras and its headers', async () => {
  const codes = Object.keys(faults).filter((code) => code !== 'validation') as FaultCode[]
  for (const code of codes) {
    const extras = { reason: 'test', code: 'forged', request_id: 'forged' }
    const answer = await sendRequest(app.url, 'POST /v1/break', { body: { how: code, extras } })
    const { status, retryable } = faults[code]
    assert.equal(answer.status, status)
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    const { detail, request_id, outcome, ...rest } = answer.body
    assert.deepEqual(rest, { code, retryable, reason: 'test' })
    assert.equal(detail, `Failed as requested: ${code}`)
    assert.equal(request_id, answer.headers.get('x-request-id'))
    assert.equal(outcome, status === 503 ? 'not_executed' : undefined)
    assert.equal(answer.headers.get('www-authenticate'), status === 401 ? challenge() : null)
    const retryAfter = Number(answer.headers.get('retry-after') ?? 0)
    assert.equal(retryAfter >= 1, status === 429 || status === 503, code)
  }
})

test('Retry-After repeats the duration of the fault, in whole seconds', async () => {
  const body = { how: 'unavailable', extras: { retry_after: 6.2 } }
  assert.equal((await sendRequest(app.url, 'POST /v1/break', { body })).headers.get('retry-after'), '7')
})

test('the same faults become RFC 9457 for clients that accept it', async () => {
  const headers = { accept: 'application/problem+json' }
  const { status, body, ...answer } = await sendRequest(app.url, 'POST /v1/break', {
    body: { how: 'conflict' },
    headers,
  })
  assert.equal(status, 409)
  assert.equal(answer.headers.get('content-type'), 'application/problem+json; charset=utf-8')
  assert.equal(body.type, `${app.url}/error-catalog.json#conflict`)
  assert.deepEqual([body.status, body.detail, body.code], [409, 'Failed as requested: conflict', 'conflict'])
  const invalid = await sendRequest(app.url, 'POST /v1/pay', { body: {}, headers })
  assert.equal(invalid.status, 422)
  assert.equal(typeof invalid.body.detail, 'string')
  assert.equal((invalid.body.errors as { type: string }[])[0]?.type, 'missing')
})

test('an unreachable store during authentication is 503, not 401', async () => {
  const answer = await sendRequest(app.url, 'GET /v1/probe', {
    headers: { authorization: 'Bearer agt_down' },
  })
  assert.equal(answer.status, 503)
  assert.equal(answer.body.outcome, 'not_executed')
  assert.ok(Number(answer.headers.get('retry-after')) >= 1)
})
