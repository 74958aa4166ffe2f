import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createHttpApp, type HttpApp, sendRequest } from './http-app.ts'

let app: HttpApp
before(async () => {
  app = await createHttpApp()
})
after(() => app.close())

type Item = { loc: (string | number)[]; msg: string; type: string; ctx?: object }

const json = { 'content-type': 'application/json' }

/** The items of a 422, with its code, `retryable: false` and the request id. */
async function issues(route: string, sent: object): Promise<Item[]> {
  const { status, body, headers } = await sendRequest(app.url, route, sent)
  assert.equal(status, 422, JSON.stringify(body))
  const { detail, ...rest } = body
  assert.deepEqual(rest, {
    code: 'validation',
    retryable: false,
    request_id: headers.get('x-request-id'),
  })
  return detail as Item[]
}
const wrong = (body: unknown) => issues('POST /v1/probe/check', { body })
const seen = () => app.seen.at(-1)!
const uuidText = 'Input should be a valid UUID, such as 0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11'

test('each keyword has the error text of FastAPI', async () => {
  const cases: [object, Item][] = [
    [{}, { loc: ['body', 'name'], type: 'missing', msg: 'Field required: add `name`' }],
    [
      { name: 5 },
      {
        loc: ['body', 'name'],
        type: 'string_type',
        msg: 'Input should be a valid string: text in double quotes',
      },
    ],
    [
      { name: 'a' },
      { loc: ['body', 'name'], type: 'string_too_short', msg: 'String should have at least 2 characters' },
    ],
    [
      { name: 'abcde' },
      { loc: ['body', 'name'], type: 'string_too_long', msg: 'String should have at most 4 characters' },
    ],
    [
      { name: 'AB' },
      {
        loc: ['body', 'name'],
        type: 'string_pattern_mismatch',
        msg: "String has the wrong form: Lower-case letters, such as 'abc'",
      },
    ],
    [
      { name: 'ab', count: 0 },
      {
        loc: ['body', 'count'],
        type: 'greater_than_equal',
        msg: 'Input should be greater than or equal to 1',
      },
    ],
    [
      { name: 'ab', count: 51 },
      { loc: ['body', 'count'], type: 'less_than_equal', msg: 'Input should be less than or equal to 50' },
    ],
    [
      { name: 'ab', count: 1.5 },
      {
        loc: ['body', 'count'],
        type: 'int_parsing',
        msg: 'Input should be a valid integer: a whole number without quotes',
      },
    ],
    [
      { name: 'ab', count: '5' },
      {
        loc: ['body', 'count'],
        type: 'int_parsing',
        msg: 'Input should be a valid integer: a whole number without quotes',
      },
    ],
    [
      { name: 'ab', ratio: 0 },
      { loc: ['body', 'ratio'], type: 'greater_than', msg: 'Input should be greater than 0' },
    ],
    [
      { name: 'ab', ratio: 1 },
      { loc: ['body', 'ratio'], type: 'less_than', msg: 'Input should be less than 1' },
    ],
    [
      { name: 'ab', ratio: 'x' },
      {
        loc: ['body', 'ratio'],
        type: 'float_type',
        msg: 'Input should be a valid number, such as 12.5 or "12.5"',
      },
    ],
    [
      { name: 'ab', kind: 'z' },
      { loc: ['body', 'kind'], type: 'literal_error', msg: "Input should be 'a', 'b' or 'c'" },
    ],
    [
      { name: 'ab', side: 'z' },
      { loc: ['body', 'side'], type: 'literal_error', msg: "Input should be 'buy' or 'sell'" },
    ],
    [
      { name: 'ab', note: 5 },
      {
        loc: ['body', 'note'],
        type: 'string_type',
        msg: 'Input should be a valid string: text in double quotes',
      },
    ],
    [
      { name: 'ab', note: 'toolong' },
      { loc: ['body', 'note'], type: 'string_too_long', msg: 'String should have at most 5 characters' },
    ],
    [
      { name: 'ab', user: 'x' },
      { loc: ['body', 'user'], type: 'uuid_parsing', msg: uuidText },
    ],
    [
      { name: 'ab', flag: 'yes' },
      {
        loc: ['body', 'flag'],
        type: 'bool_parsing',
        msg: 'Input should be a valid boolean: true or false without quotes',
      },
    ],
    [
      { name: 'ab', rows: {} },
      {
        loc: ['body', 'rows'],
        type: 'list_type',
        msg: 'Input should be a valid list: a JSON array in square brackets',
      },
    ],
    [
      { name: 'ab', rows: [] },
      { loc: ['body', 'rows'], type: 'too_short', msg: 'List should have at least 1 item' },
    ],
    [
      { name: 'ab', rows: [{ 'a/b': 1 }, { 'a/b': 'x' }] },
      {
        loc: ['body', 'rows', 1, 'a/b'],
        type: 'int_parsing',
        msg: 'Input should be a valid integer: a whole number without quotes',
      },
    ],
    [
      { name: 'ab', rows: [5] },
      {
        loc: ['body', 'rows', 0],
        type: 'model_attributes_type',
        msg: 'Input should be a valid dictionary: a JSON object with `a/b`',
      },
    ],
  ]
  for (const [body, item] of cases) assert.deepEqual(await wrong(body), [item], JSON.stringify(body))
})

test('all parts are validated together, with one item for each path', async () => {
  const items = await wrong({ name: '', count: 'x', side: 1 })
  assert.deepEqual(
    items.map(({ loc }) => loc.join('.')),
    ['body.name', 'body.count', 'body.side'],
  )
  const uuid = await issues('GET /v1/uuid/none', {})
  assert.deepEqual(uuid, [{ loc: ['path', 'id'], msg: uuidText, type: 'uuid_parsing' }])
})

test('a missing body and broken JSON are reported as such', async () => {
  const missing = { loc: ['body'], msg: 'Field required: send a JSON body', type: 'missing' }
  assert.deepEqual(await issues('POST /v1/probe/check', {}), [missing])
  assert.deepEqual(await issues('POST /v1/probe/check', { raw: '', headers: json }), [missing])
  assert.deepEqual(await issues('POST /v1/probe/check', { raw: 'null', headers: json }), [missing])
  for (const raw of ['{"a":1,}', '{"name":"ab","name":"cd"}', '{"__proto__":{}}', '   ', '{"a":NaN}']) {
    const [item] = await issues('POST /v1/probe/check', { raw, headers: json })
    assert.deepEqual([item?.loc, item?.type], [['body'], 'json_invalid'], raw)
    assert.match(item?.msg ?? '', /^JSON decode error: ./, raw)
  }
  const list = await issues('POST /v1/probe/check', { raw: '[1]', headers: json })
  assert.equal(list[0]?.type, 'model_attributes_type')
})

test('an optional body may be absent, empty, null or present, and gets its defaults', async () => {
  for (const sent of [{}, { raw: '', headers: json }, { raw: 'null', headers: json }]) {
    assert.equal((await sendRequest(app.url, 'PUT /v1/probe', sent)).status, 200)
    assert.deepEqual(seen().input, { title: 'none' })
  }
  await sendRequest(app.url, 'PUT /v1/probe', { body: { title: 'x' } })
  assert.deepEqual(seen().input, { title: 'x' })
})

test('an operation without a body works with and without a content type', async () => {
  for (const headers of [{}, json, { 'content-type': 'text/plain' }]) {
    assert.equal((await sendRequest(app.url, 'POST /v1/pay/t1/cancel', { headers })).status, 200)
    assert.deepEqual(seen().input, { task_id: 't1' })
  }
})

test('a query is parsed by its schema and by nothing else', async () => {
  const input = async (query: string) => {
    assert.equal((await sendRequest(app.url, `GET /v1/probe?${query}`)).status, 200, query)
    return seen().input
  }
  const defaults = { skip: 0, limit: 10, flag: false }
  assert.deepEqual(await input(''), defaults)
  assert.deepEqual(await input('skip=7&limit=100&status=open'), {
    ...defaults,
    skip: 7,
    limit: 100,
    status: 'open',
  })
  for (const word of ['1', 'yes', 'on', 'true', 'True', 'YES'])
    assert.equal((await input(`flag=${word}`)).flag, true)
  for (const word of ['0', 'no', 'off', 'false', 'OFF'])
    assert.equal((await input(`flag=${word}`)).flag, false)
  assert.deepEqual((await input('least=1.50000')).least, '1.5')
  assert.deepEqual((await input('names=a')).names, ['a'])
  assert.deepEqual((await input('names=a&names=7')).names, ['a', '7'])
  for (const [query, type] of [
    ['skip=-1', 'greater_than_equal'],
    ['skip=0x10', 'int_parsing'],
    ['skip=', 'int_parsing'],
    ['skip=1.0', 'int_parsing'],
    ['skip=1e3', 'int_parsing'],
    ['skip=9007199254740993', 'less_than_equal'],
    ['skip=1&skip=2', 'int_parsing'],
    ['limit=101', 'less_than_equal'],
    ['flag=maybe', 'bool_parsing'],
    ['status=done', 'literal_error'],
    ['least=0.99', 'greater_than_equal'],
    ['least=1e3', 'string_pattern_mismatch'],
    ['least=1,5', 'string_pattern_mismatch'],
    ['names=a&names=b&names=c&names=d', 'too_long'],
  ] as const) {
    const [item] = await issues(`GET /v1/probe?${query}`, {})
    assert.deepEqual([item?.loc[0], item?.type], ['query', type], query)
  }
})

test('text that the database cannot hold is rejected in every part of a request', async () => {
  const type = 'string_unicode'
  assert.equal((await issues('GET /v1/probe/a%00b', {}))[0]?.type, type)
  assert.equal((await issues('GET /v1/probe?status=%00', {}))[0]?.type, type)
  assert.deepEqual((await wrong({ name: 'ab', free: { deep: ['\u0000'] } }))[0], {
    loc: ['body', 'free', 'deep', 0],
    msg: 'Input should be a valid string without the character U+0000',
    type,
  })
  assert.equal((await wrong({ name: 'ab', free: { 'k\u0000': 1 } }))[0]?.type, type)
  const half = await issues('POST /v1/probe/check', {
    raw: '{"name":"ab","free":{"x":"\\ud800"}}',
    headers: json,
  })
  assert.equal(half[0]?.type, type)
})

test('numbers beyond a double or beyond exact integers are rejected, not rounded', async () => {
  const type = async (raw: string) => (await issues('POST /v1/probe/check', { raw, headers: json }))[0]?.type
  assert.equal(await type('{"name":"ab","free":{"x":1e400}}'), 'finite_number')
  assert.equal(await type('{"name":"ab","ratio":1e400}'), 'finite_number')
  assert.equal(await type('{"name":"ab","rows":[{"a/b":9007199254740993}]}'), 'less_than_equal')
})

test('decimals reach the function as exact text, from number and from text', async () => {
  const paid = async (raw: string) => {
    const { status, body } = await sendRequest(app.url, 'POST /v1/pay', { raw, headers: json })
    assert.equal(status, 200, JSON.stringify(body))
    return seen().input
  }
  assert.deepEqual(await paid('{"amount_usdc":0.100000}'), { amount_usdc: '0.1' })
  assert.deepEqual(await paid('{"amount_usdc":123456789012345678901234.000001,"memo":null}'), {
    amount_usdc: '123456789012345678901234.000001',
    memo: null,
  })
  assert.deepEqual(await paid('{"amount_usdc":"5","memo":1e2,"legs":{"price":1.50}}'), {
    amount_usdc: '5',
    memo: '100',
    legs: { price: '1.5' },
  })
  assert.deepEqual((await paid('{"amount_usdc":5,"legs":[{"price":"2.0","part":0.250}]}')).legs, [
    { price: '2', part: '0.25' },
  ])
  const refused = async (raw: string) => (await issues('POST /v1/pay', { raw, headers: json }))[0]
  assert.deepEqual(await refused('{"amount_usdc":0.1234567}'), {
    loc: ['body', 'amount_usdc'],
    msg: 'Decimal input should have no more than 6 decimal places; round it first',
    type: 'decimal_max_places',
    ctx: { max: 6 },
  })
  for (const [raw, type] of [
    ['{"amount_usdc":0}', 'greater_than'],
    ['{"amount_usdc":"0.0"}', 'greater_than'],
    ['{"amount_usdc":-1}', 'greater_than'],
    ['{"amount_usdc":1e400}', 'finite_number'],
    ['{"amount_usdc":"1e3"}', 'string_pattern_mismatch'],
    ['{"amount_usdc":"1,5"}', 'string_pattern_mismatch'],
    ['{"amount_usdc":null}', 'float_type'],
    ['{"amount_usdc":true}', 'float_type'],
    ['{"amount_usdc":5,"legs":[{"price":0}]}', 'greater_than'],
  ] as const) {
    assert.equal((await refused(raw))?.type, type, raw)
  }
})

test('a body that moves money rejects unknown fields at any depth and drops identity fields', async () => {
  const [item] = await issues('POST /v1/pay', { body: { amount_usdc: 5, sl_pice: 1 } })
  assert.deepEqual(item, {
    loc: ['body', 'sl_pice'],
    msg: 'Extra inputs are not permitted; the fields are `amount_usdc`, `legs`, `memo`',
    type: 'extra_forbidden',
  })
  const deep = await issues('POST /v1/pay', { body: { amount_usdc: 5, legs: [{ price: 1, pat: 2 }] } })
  assert.ok(deep.some(({ type, loc }) => type === 'extra_forbidden' && loc.join('.') === 'body.legs.0.pat'))
  const identity = { agent_id: 'x', application_id: 'y', user_id: 'z' }
  await sendRequest(app.url, 'POST /v1/pay', { body: { amount_usdc: 5, ...identity } })
  assert.deepEqual(seen().input, { amount_usdc: '5' })
})

test('a misspelt field, parameter or word gets a suggestion', async () => {
  const said = async (route: string, body?: object) =>
    (await issues(route, body === undefined ? {} : { body })).map(
      ({ loc, msg }) => `${loc.join('.')}: ${msg}`,
    )
  const extra = 'Extra inputs are not permitted'
  assert.deepEqual(await said('POST /v1/pay', { amount_usdc: 5, memmo: '1', leggs: [] }), [
    `body.memmo: ${extra}; did you mean \`memo\`?`,
    `body.leggs: ${extra}; did you mean \`legs\`?`,
  ])
  assert.deepEqual(await said('POST /v1/pay', { amountUSDC: 5 }), [
    'body.amount_usdc: Field required: rename `amountUSDC` to `amount_usdc`',
    `body.amountUSDC: ${extra}; did you mean \`amount_usdc\`?`,
  ])
  assert.deepEqual(await said('POST /v1/pay', { amount_usdc: 5, wait: true }), [
    `body.wait: ${extra} here: send \`wait\` in the query`,
  ])
  const deep = await said('POST /v1/pay', { amount_usdc: 5, legs: [{ price: 1, pat: 2 }] })
  assert.equal(deep.at(-1), `body.legs.0.pat: ${extra}; the fields are \`price\`, \`part\``)
  assert.deepEqual(await said('POST /v1/pay?amount_usdc=5&idempotency_key=k', { amount_usdc: 5 }), [
    `query.amount_usdc: ${extra} here: send \`amount_usdc\` in the body`,
    `query.idempotency_key: ${extra} here: send \`idempotency_key\` in the body`,
  ])
  assert.deepEqual(await said('GET /v1/probe?statu=open'), [
    `query.statu: ${extra}; did you mean \`status\`?`,
  ])
  assert.deepEqual(await said('GET /v1/probe/open?a=1'), [`query.a: ${extra}; there are no fields here`])
  assert.deepEqual(await said('POST /v1/probe/check', { name: 'ab', side: 'BUY' }), [
    "body.side: Input should be 'buy' or 'sell'; did you mean 'buy'?",
  ])
  assert.deepEqual(await said('GET /v1/probe?status=close'), [
    "query.status: Input should be 'open' or 'closed'; did you mean 'closed'?",
  ])
})

/** Processor time of this process for the cheapest of several runs, so that the load of the machine does not matter. */
async function leastCpuMs(run: () => Promise<unknown>): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 4; attempt++) {
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    leastMs = Math.min(leastMs, (user + system) / 1_000)
  }
  return leastMs
}

test('thousands of unknown names and very long words are validated within milliseconds', async () => {
  const fields = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`amount_usd${at}`, 1]))
  const long = { amount_usdc: 5, ['memo'.repeat(60)]: 1, memo: 'x'.repeat(100_000) }
  const hostile: [string, object][] = [
    ['POST /v1/pay', { body: { ...fields } }],
    ['POST /v1/pay', { body: long }],
    ['POST /v1/probe/check', { body: { name: 'ab', side: 'buy'.repeat(50_000) } }],
    [`GET /v1/probe?${Array.from({ length: 900 }, (_, at) => `statu${at}=1`).join('&')}`, {}],
  ]
  for (const [route, sent] of hostile) {
    const items = await issues(route, sent)
    const ms = await leastCpuMs(() => issues(route, sent))
    assert.ok(items.length <= 20 && ms < 250, `${route.slice(0, 40)}: ${items.length} items in ${ms} ms`)
  }
})

test('an unknown query parameter is rejected on every route, by its name, and the identity passes', async () => {
  for (const route of ['GET /v1/probe', 'GET /v1/probe/open', 'GET /v1/probe/p1', 'POST /v1/pay/t1/cancel']) {
    const items = await issues(`${route}?statuss=open&agent_id=x`, {})
    assert.deepEqual(
      items.map(({ loc, type }) => [loc, type]),
      [[['query', 'statuss'], 'extra_forbidden']],
      route,
    )
  }
  const many = Array.from({ length: 1_000 }, (_, at) => `k${at}=1`).join('&')
  assert.equal((await issues(`GET /v1/probe?${many}`, {})).length, 20)
})

test('a body with only optional fields may be absent', async () => {
  for (const sent of [{}, { raw: '', headers: json }, { body: {} }])
    assert.equal((await sendRequest(app.url, 'POST /v1/ease', sent)).status, 200)
  assert.deepEqual(seen().input, { note: 'none' })
  const document = (await sendRequest(app.url, 'GET /openapi.json')).body as {
    paths: Record<string, { post: { requestBody: { required: boolean } } }>
  }
  assert.equal(document.paths['/v1/ease']?.post.requestBody.required, false)
  assert.equal(document.paths['/v1/probe/check']?.post.requestBody.required, true)
})

test('a compressed body is rejected as such', async () => {
  const raw = new Uint8Array(gzipSync('{"name":"ab"}'))
  const labelled = await sendRequest(app.url, 'POST /v1/probe/check', {
    raw,
    headers: { ...json, 'content-encoding': 'gzip' },
  })
  assert.deepEqual([labelled.status, labelled.body.code], [415, 'unsupported_media_type'])
  assert.match(String(labelled.body.detail), /gzip/)
  const [item] = await issues('POST /v1/probe/check', { raw, headers: json })
  assert.deepEqual(item?.ctx, { error: 'The body is compressed; send it without gzip' })
})

test('other bodies ignore unknown fields, and a declared identity field is read', async () => {
  await sendRequest(app.url, 'POST /v1/probe/check', {
    body: { name: 'ab', extra: 1, user_id: 'z', free: { any: 1 } },
  })
  assert.deepEqual(seen().input, { name: 'ab', count: 1, free: { any: 1 } })
  await sendRequest(app.url, 'POST /v1/sign', { body: { agent_id: 'agt_x', user_id: 'z' } })
  assert.deepEqual(seen().input, { agent_id: 'agt_x' })
})

test('wait and timeout are bounded and never part of the input', async () => {
  for (const [query, type] of [
    ['timeout=4', 'greater_than_equal'],
    ['timeout=91', 'less_than_equal'],
    ['wait=perhaps', 'bool_parsing'],
  ] as const) {
    assert.equal((await issues(`POST /v1/pay?${query}`, { body: { amount_usdc: 5 } }))[0]?.type, type)
  }
  await sendRequest(app.url, 'POST /v1/pay?timeout=5', { body: { amount_usdc: 5 } })
  assert.deepEqual(seen().options, { wait: false, timeoutMs: 5_000 })
  await sendRequest(app.url, 'POST /v1/pay', { body: { amount_usdc: 5 } })
  assert.deepEqual(seen().options, { wait: false, timeoutMs: 60_000 })
  assert.deepEqual(seen().input, { amount_usdc: '5' })
})

test('the idempotency key comes by header or by body, and both must agree', async () => {
  const body = { amount_usdc: 5 }
  const key = (name: string) => ({ 'idempotency-key': name })
  const first = await sendRequest(app.url, 'POST /v1/pay', { body, headers: key('k-1') })
  assert.equal(seen().options.key, 'k-1')
  assert.equal(first.headers.get('idempotent-replayed'), null)
  assert.equal(first.headers.get('idempotency-key'), 'k-1')
  const again = await sendRequest(app.url, 'POST /v1/pay', { body: { ...body, idempotency_key: 'k-1' } })
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual(seen().input, { amount_usdc: '5' })
  const agreed = { body: { ...body, idempotency_key: 'k-1' }, headers: key('k-1') }
  assert.equal((await sendRequest(app.url, 'POST /v1/pay', agreed)).status, 200)
  const loc = ['body', 'idempotency_key']
  for (const [sent, where] of [
    [{ body: { ...body, idempotency_key: 'k-2' }, headers: key('k-1') }, loc],
    [{ body: { ...body, idempotency_key: '' } }, loc],
    [{ body: { ...body, idempotency_key: 5 } }, loc],
    [{ body: { ...body, idempotency_key: 'a b' } }, loc],
    [{ body: { ...body, idempotency_key: 'k'.repeat(256) } }, loc],
    [{ body, headers: key('a b') }, ['header', 'Idempotency-Key']],
    [{ body, headers: key('k'.repeat(256)) }, ['header', 'Idempotency-Key']],
  ] as const) {
    assert.deepEqual((await issues('POST /v1/pay', sent))[0]?.loc, where)
  }
  assert.equal(
    (await sendRequest(app.url, 'POST /v1/pay/t9/cancel', { headers: key('~'.repeat(255)) })).status,
    200,
  )
  assert.deepEqual(seen().options.key, '~'.repeat(255))
})

test('an answer has the fields of its schema and no others', async () => {
  const { body } = await sendRequest(app.url, 'GET /v1/probe/p%2F1')
  assert.deepEqual(body, { probe_id: 'p/1', at: 'now' })
})
