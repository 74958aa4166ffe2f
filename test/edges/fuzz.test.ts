import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import fc from 'fast-check'
import { faults } from '#kernel/contract/fault.ts'
import {
  type Document,
  type OperationCase,
  operationCases,
  type Parts,
  urlOf,
} from '../proof/support/openapi-requests.ts'
import { type Answer, createHttpApp, type HttpApp, sendRequest } from './http-app.ts'

async function* brief() {
  yield { event: 'done', data: {} }
}

let app: HttpApp
let document: Document
let cases: OperationCase[]
let ajv: Ajv2020
before(async () => {
  app = await createHttpApp({ streams: new Proxy({}, { get: () => brief }) })
  document = (await sendRequest(app.url, 'GET /openapi.json')).body as unknown as Document
  // These fail on request, which is the opposite of what this test needs.
  cases = operationCases(document).filter(({ name }) => name !== 'probe_break' && name !== 'probe_prove')
  ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema({ $id: 'doc', ...document })
})
after(() => app.close())

const checks = new Map<string, ValidateFunction>()

const matches = (schema: object, body: unknown): void => {
  const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"doc#/')
  const check = checks.get(text) ?? ajv.compile(JSON.parse(text) as object)
  checks.set(text, check)
  assert.ok(check(body), JSON.stringify({ errors: check.errors, body }))
}

const send = (
  { method, path }: OperationCase,
  parts: Parts,
  headers: Record<string, string | undefined> = {},
) =>
  sendRequest(app.url, `${method} ${urlOf(path, parts)}`, {
    ...(parts.body !== undefined && { body: parts.body }),
    headers,
  })

/** A documented answer in its documented form. */
function documented(found: OperationCase, answer: Answer): void {
  assert.ok(found.statuses.includes(answer.status), `${found.name}: ${answer.status} ${answer.text}`)
  if (found.isStream && answer.status === 200) {
    assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/)
    return
  }
  const schema = found.answer(answer.status)
  assert.ok(schema, `${found.name}: no schema for ${answer.status}`)
  matches(schema, answer.body)
}

const runs = { numRuns: 12 }

test('every operation accepts what its schema allows', async () => {
  assert.ok(cases.length >= 12)
  for (const found of cases) {
    await fc.assert(
      fc.asyncProperty(found.valid, async (parts) => {
        // No task ends here, so a wait would last until its limit.
        const query = found.query.includes('wait') ? { ...parts.query, wait: false } : parts.query
        const answer = await send(found, { ...parts, query })
        assert.equal(answer.status, 200, `${found.name} ${JSON.stringify(parts)} ${answer.text}`)
        documented(found, answer)
      }),
      { numRuns: 30 },
    )
  }
})

test('one violated keyword is 422 with its location', async () => {
  let broken = 0
  for (const found of cases) {
    for (const { keyword, loc, parts } of found.broken) {
      broken++
      await fc.assert(
        fc.asyncProperty(parts, async (value) => {
          const answer = await send(found, value)
          const said = `${found.name} ${keyword} at ${loc.join('.')} ${JSON.stringify(value)} ${answer.text}`
          assert.equal(answer.status, 422, said)
          documented(found, answer)
          const items = answer.body.detail as { loc: unknown }[]
          assert.ok(
            items.some((item) => JSON.stringify(item.loc) === JSON.stringify(loc)),
            said,
          )
        }),
        runs,
      )
    }
  }
  assert.ok(broken > 40, `${broken} mutations`)
})

test('a missing credential is 401 with the exact header, wherever one is needed', async () => {
  for (const found of cases.filter(({ isPublic }) => !isPublic)) {
    await fc.assert(
      fc.asyncProperty(found.valid, async (parts) => {
        const answer = await send(found, parts, { authorization: undefined })
        assert.equal(answer.status, 401)
        assert.equal(
          answer.headers.get('www-authenticate'),
          `Bearer resource_metadata="${app.url}/.well-known/oauth-protected-resource"`,
        )
        documented(found, answer)
      }),
      { numRuns: 3 },
    )
  }
})

test('a wrong method is 405 and Allow names the right ones', async () => {
  for (const found of cases) {
    const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
      (method) => !(method.toLowerCase() in (document.paths[found.path] ?? {})),
    )
    await fc.assert(
      fc.asyncProperty(found.valid, fc.constantFrom(...others), async (parts, method) => {
        const answer = await sendRequest(app.url, `${method} ${urlOf(found.path, parts)}`)
        // A path such as /v1/probe/open is also one of /v1/probe/{probe_id}.
        if (answer.status !== 405) return
        assert.ok(answer.headers.get('allow')?.includes(found.method))
      }),
      { numRuns: 5 },
    )
  }
})

const jsonish = fc.oneof(
  fc.json(),
  fc.string(),
  fc
    .array(fc.constantFrom(...'{}[]",:0129.eE+-\\ntrufals \u0000\ud800é'.split('')), { maxLength: 60 })
    .map((all) => all.join('')),
  fc.json().map((text) => text.slice(0, -1)),
)

test('no body of any kind is answered by a 5xx or in an undocumented form', async () => {
  const bodied = cases.filter(({ method }) => method !== 'GET')
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...bodied), jsonish, async (found, raw) => {
      const parts = { path: { task_id: 't', probe_id: 'p' }, query: {}, body: undefined }
      const answer = await sendRequest(app.url, `${found.method} ${urlOf(found.path, parts)}`, {
        raw,
        headers: { 'content-type': 'application/json' },
      })
      documented(found, answer)
      assert.ok(answer.status < 500)
    }),
    { numRuns: 800 },
  )
})

test('no path, query or header is answered by a 5xx or in an undocumented form', async () => {
  const part = fc.oneof(
    fc.string(),
    fc.constantFrom('v1', 'probe', '..', '%00', '%', '%2e', 'pay', '?', '#', '//', ';'),
  )
  const header = fc.stringMatching(/^[\t\x20-\x7e]{0,40}$/)
  const names = fc.constantFrom(
    'authorization',
    'accept',
    'idempotency-key',
    'last-event-id',
    'x-request-id',
    'traceparent',
    'origin',
    'if-none-match',
    'content-type',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'),
      fc.array(part, { maxLength: 5 }).map((parts) => `/${parts.join('/')}`.replace(/[\s\p{Cc}]/gu, '')),
      fc.dictionary(names, header, { noNullPrototype: true }),
      async (method, path, headers) => {
        const answer = await sendRequest(app.url, `${method} ${path}`, { headers })
        assert.ok(answer.status < 500, answer.text)
        if (answer.status < 400 || method === 'HEAD') return
        if (answer.status === 422) assert.ok(Array.isArray(answer.body.detail ?? answer.body.errors))
        else assert.ok(Object.hasOwn(faults, String(answer.body.code)), `${path} ${answer.text}`)
      },
    ),
    { numRuns: 800 },
  )
})
