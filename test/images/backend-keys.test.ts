/** Keys of backends: who is admitted, who pays, and how a key is replaced and ended. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { bearer, http } from '../harness/gateway.ts'
import { type Account, createImageApp, type ImageApp, type ImageBody, made } from './image-app.ts'

let app: ImageApp
let account: Account
before(async () => {
  app = await createImageApp({ RATE_REFUSED: '0' })
  account = await app.account()
})
afterEach(() => app.reset())
after(() => app?.[Symbol.asyncDispose]())

const request = (user = account.userId) => ({ user, query: 'a bear, poster', image_size: '256x256' })

test('only the key of a backend in its header is admitted', async () => {
  const before = await account.credits()
  const [, id] = app.backendKey.split('_')
  const wrong: Record<string, string>[] = [
    {},
    { 'x-backend-key': '' },
    { 'x-backend-key': 'secret' },
    { 'x-backend-key': `${app.backendKey}x` },
    { 'x-backend-key': app.backendKey.slice(0, -1) },
    { 'x-backend-key': `bk_${id}_${'A'.repeat(43)}` },
    { 'x-backend-key': `bk_${'0'.repeat(16)}_${'A'.repeat(43)}` },
    { authorization: `Bearer ${app.backendKey}` },
    { 'x-api-key': app.backendKey },
    bearer(account.agent),
  ]
  for (const headers of wrong) {
    const {
      status,
      body,
      headers: sent,
    } = await http<ImageBody>(`${app.gateway.url}/chat/image/`, {
      method: 'POST',
      headers,
      body: request(),
    })
    assert.deepEqual([status, body.code], [401, 'unauthorized'], JSON.stringify(headers))
    assert.ok(sent.get('www-authenticate'))
  }
  assert.equal(await account.credits(), before)
})

test('the key opens nothing else', async () => {
  for (const path of ['/v1/credits', '/v1/user', '/v1/wallets']) {
    const { status } = await http(app.gateway.url + path, { headers: { 'x-backend-key': app.backendKey } })
    assert.equal(status, 401, path)
  }
})

test('a user whom the gateway does not know is not found, and a suspended one does not pay', async () => {
  const unknown = await app.ask(request('01890000-0000-7000-8000-000000000000'))
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'not_found'])
  const other = await app.account()
  await app.operator.act('a test', 'users', 'freeze', other.userId)
  const suspended = await app.ask(request(other.userId))
  assert.deepEqual([suspended.status, suspended.body.code], [403, 'suspended'])
  await app.operator.act('a test', 'users', 'unfreeze', other.userId)
})

test('the account of a backend pays for whomever it names', async () => {
  const payer = await app.account()
  const key = await app.createKey('paying', '--account', payer.userId)
  const anyone = '0198a000-0000-7000-8000-00000000abcd'
  const body = made(await app.ask(request(anyone), { backendKey: key }))
  assert.equal(body.credits_available, 199)
  assert.equal(await payer.credits(), 199)
  const before = await account.credits()
  made(await app.ask(request(), { backendKey: key }))
  assert.equal(await account.credits(), before)
})

test('a former key works until its overlap ends, and a revoked one ends at once', async () => {
  const first = await app.createKey('rotating')
  const rotate = async (...more: string[]) =>
    (
      await app.operator.rows<{ key: string }>(
        'backend-keys',
        'rotate',
        'rotating',
        ...more,
        '--why',
        'a test',
      )
    )[0]!.key
  const second = await rotate()
  for (const backendKey of [first, second]) made(await app.ask(request(), { backendKey }))
  const third = await rotate('--overlap-hours', '0')
  assert.equal((await app.ask(request(), { backendKey: second })).status, 401)
  assert.equal((await app.ask(request(), { backendKey: first })).status, 401)
  made(await app.ask(request(), { backendKey: third }))
  await app.operator.act('a test', 'backend-keys', 'revoke', '--key', third.split('_')[1]!)
  assert.equal((await app.ask(request(), { backendKey: third })).status, 401)
  const fourth = await rotate()
  await app.operator.act('a test', 'backend-keys', 'revoke', '--backend', 'rotating')
  assert.equal((await app.ask(request(), { backendKey: fourth })).status, 401)
})

test('keys are listed without their secrets, stored as hashes, and every change is recorded', async () => {
  const key = await app.createKey('listed')
  const [, id, secret] = /^bk_(\w{16})_(.*)$/.exec(key)!
  const rows = await app.operator.rows<{ backend: string; key: string }>('backend-keys', 'list')
  assert.ok(rows.some((row) => row.backend === 'listed' && row.key === id))
  const { rows: stored } = await app.admin.query(
    `select k.*, b.* from backend_key k join backend b on b.id = k.backend_id`,
  )
  const { rows: actions } = await app.admin.query(
    `select * from admin_action where command like 'backend-keys%'`,
  )
  assert.ok(actions.length >= 2)
  assert.ok(!JSON.stringify([rows, stored, actions]).includes(secret!))
  assert.match(
    await app.operator.refusal('backend-keys', 'create', 'listed', '--why', 'a test'),
    /There is a backend listed/,
  )
  assert.match(
    await app.operator.refusal('backend-keys', 'create', 'Listed', '--why', 'a test'),
    /lower-case/,
  )
  assert.match(await app.operator.refusal('backend-keys', 'create', 'other'), /--why/)
  assert.match(
    await app.operator.refusal('backend-keys', 'rotate', 'nobody', '--why', 'a test'),
    /no backend nobody/,
  )
  assert.match(await app.operator.refusal('backend-keys', 'revoke', '--why', 'a test'), /either --key/)
})

test('two backends may use one idempotency key', async () => {
  const other = await app.createKey('second')
  const [one, two] = [
    made(await app.ask(request(), { key: 'shared' })),
    made(await app.ask(request(), { key: 'shared', backendKey: other })),
  ]
  assert.notEqual(one.seed, two.seed)
})

test('calls are limited for each backend', async () => {
  await using limited = await createImageApp({ RATE_IMAGE: '2' })
  const user = await limited.account()
  const body = request(user.userId)
  made(await limited.ask(body))
  made(await limited.ask(body))
  const refused = await limited.ask(body)
  const { code, owner } = refused.body as unknown as Record<string, unknown>
  assert.deepEqual([refused.status, code, owner], [429, 'rate_limited', 'backend'])
  made(await limited.ask(body, { backendKey: await limited.createKey('other') }))
})
