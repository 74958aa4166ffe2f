import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Entry, read } from '#kernel/contract/operation.ts'
import { OpenObject } from '#kernel/contract/wire-types.ts'
import { pathHints } from './nearest-path.ts'

const documented = (route: `${'GET' | 'POST'} /${string}`) => ({
  name: route,
  group: 'probe',
  about: '',
  entry: read(route, { summary: 'x', access: 'public', output: OpenObject }) as Entry,
})
const routes = [
  'GET /v1/perp/orders',
  'GET /v1/perp/setup',
  'POST /v1/perp/setup',
  'POST /v1/perp/orders/cancel',
  'GET /v1/tasks',
  'GET /v1/tasks/{task_id}',
  'POST /v1/tasks/{task_id}/cancel',
  'GET /credits/packs',
] as const
const { nearest: suggest, changesBelow } = pathHints(routes.map(documented))

test('a misspelt path gets the nearest one with its method', () => {
  for (const [method, url, wanted] of [
    ['GET', '/v1/perp/order', 'GET /v1/perp/orders'],
    ['POST', '/v1/perp/order', 'GET /v1/perp/orders'],
    ['GET', '/v1/perps/orders?limit=3', 'GET /v1/perp/orders'],
    ['GET', '/V1/Perp/Orders', 'GET /v1/perp/orders'],
    ['GET', '/perp/orders', 'GET /v1/perp/orders'],
    ['GET', '/v2/perp/orders', 'GET /v1/perp/orders'],
    ['GET', '/api/v1/perp/orders', 'GET /v1/perp/orders'],
    ['POST', '/v1/perp/setups', 'POST /v1/perp/setup'],
    ['PUT', '/v1/perp/setups', 'GET /v1/perp/setup or POST /v1/perp/setup'],
    ['GET', '/v1/task/0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11', 'GET /v1/tasks/{task_id}'],
    ['POST', '/v1/tasks/abc/cancle', 'POST /v1/tasks/{task_id}/cancel'],
    ['GET', '/v1/credits/packs', 'GET /credits/packs'],
  ] as const)
    assert.equal(suggest(method, url), `There is no such path; did you mean ${wanted}?`, url)
})

test('a path that is near to none leads to the list of paths', () => {
  const listed = 'There is no such path; /openapi.json lists every path'
  for (const url of ['/nothing', '/', '/wp-admin/setup.php', '/.env', '/a/b/c/d/e/f/g/h/i'])
    assert.equal(suggest('GET', url), listed, url)
})

test('below a known path stands what changes it', () => {
  assert.deepEqual(changesBelow('/v1/tasks/abc?x=1'), ['POST /v1/tasks/{task_id}/cancel'])
  assert.deepEqual(changesBelow('/v1/perp/orders/'), ['POST /v1/perp/orders/cancel'])
  assert.deepEqual(changesBelow('/v1/perp/setup'), [])
  assert.deepEqual(changesBelow('/'), [])
})

test('a path made to be expensive costs no more than a common one', () => {
  const hostile = [
    `/${'a'.repeat(16_000)}`,
    '/a'.repeat(8_000),
    `/${Array.from({ length: 8 }, (_, at) => `${at}`.repeat(15)).join('/')}`,
    `/v1/${'setupp'.repeat(5)}/${'orderss'.repeat(4)}`,
  ]
  for (const url of hostile) {
    const before = process.cpuUsage()
    for (let at = 0; at < 200; at++) suggest('GET', url)
    const { user, system } = process.cpuUsage(before)
    const ms = (user + system) / 1_000 / 200
    assert.ok(ms < 2, `${url.slice(0, 40)}: ${ms} ms of processor time`)
  }
})
