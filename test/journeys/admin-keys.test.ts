/**
 * Key-encryption keys: a wrong or missing one prevents the start, and a rotation continues until no old key is left.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { operatorOf } from '../harness/admin.ts'
import { testDatabase } from '../harness/cluster.ts'
import {
  bearer,
  dataFolder,
  eventually,
  freshGateway,
  http,
  launch,
  NotReady,
  newAgent,
} from '../harness/gateway.ts'
import { createFundedPerson } from './users.ts'
import { worldOf } from './world.ts'

/** One gateway rewraps in its interval, the other finds it in its next one. */
const maintenanceMsMax = 30_000
const newKey = () => randomBytes(32).toString('base64')
const [old, fresh] = [newKey(), newKey()]
const folder = dataFolder()
const parts = new AsyncDisposableStack()
let settings: Record<string, string>
const withKeys = (...keys: string[]) => ({ ...settings, KEY_ENCRYPTION_KEYS: keys.join(',') })

before(async () => {
  const origin = parts.use(await freshGateway())
  const world = await worldOf(origin.world)
  const database = parts.use(await testDatabase())
  settings = { ...(world.env as Record<string, string>), DATABASE_URL: database.url, DATA_DIR: folder.path }
})
after(async () => {
  await parts.disposeAsync()
  folder[Symbol.dispose]()
})

const refusalOf = async (env: Record<string, string>): Promise<string> => {
  const gateway = await launch({ env }).catch((error: unknown) => {
    if (error instanceof NotReady) return error
    throw error
  })
  if (gateway instanceof NotReady) return gateway.message
  await gateway.stop()
  throw new Error('the gateway started')
}

test('a start is rejected where a key in use is missing or is another one under the same id', async () => {
  {
    await using gateway = await launch({ env: withKeys(`old:${old}`) })
    await newAgent(gateway.url)
    const { body } = await http<{ checks: { custody: { status: string } } }>(`${gateway.url}/health`)
    assert.equal(body.checks.custody.status, 'ok')
    const metrics = await http<{ text: string }>(`${gateway.url}/metrics`)
    assert.match(metrics.body.text, /^portico_key_encryption_keys_unusable 0$/m)
  }
  assert.match(await refusalOf(withKeys(`old:${fresh}`)), /the key old does not unwrap the wallets/)
  assert.match(
    await refusalOf(withKeys(`new:${fresh}`)),
    /sealed under the key old, which is not in the list/,
  )
})

test('a rotation wraps every key, reports its progress, and the old key can be removed', async () => {
  const rows = (name: string) => operatorOf(withKeys(`new:${fresh}`, `old:${old}`)).rows('keys', name)
  await using gateway = await launch({ env: withKeys(`old:${old}`) })
  const person = await createFundedPerson(gateway.url)
  for (let n = 0; n < 60; n++) await newAgent(gateway.url)
  const operator = operatorOf(withKeys(`new:${fresh}`, `old:${old}`))
  const [before] = await rows('show')
  assert.deepEqual([before?.kek_id, before?.role, before?.opens], ['old', 'former', 'yes'])
  const total = Number(before?.keys)
  assert.ok(total >= 124, `${total}`)

  const { out } = await operator.act('yearly rotation', 'keys', 'rotate')
  assert.match(out, /100 of/)
  assert.ok(out.includes(`${total} of ${total} keys`), out)
  assert.deepEqual(
    (await rows('show')).map(({ kek_id, keys }) => [kek_id, Number(keys)]),
    [['new', total]],
  )
  const rotations = (await operator.log()).filter(({ command }) => command === 'keys rotate')
  assert.deepEqual(
    rotations.map(({ details, reason }) => [details.phase, reason]),
    [
      ['ended', 'yearly rotation'],
      ['begun', 'yearly rotation'],
    ],
  )
  await gateway.stop()

  await using after = await launch({ env: withKeys(`new:${fresh}`) })
  const deposit = await http<{ status: string }>(`${after.url}/v1/earn/deposit?wait=true`, {
    method: 'POST',
    body: { amount_usdc: '2' },
    headers: bearer(person),
  })
  assert.equal(deposit.body.status, 'completed', JSON.stringify(deposit.body))
})

test('a gateway with a new key rewraps the others by itself, and one without that key reports it', async () => {
  using elsewhere = dataFolder()
  await using database = await testDatabase()
  const own = { DATABASE_URL: database.url, MAINTENANCE_MS: '1000' }
  await using late = await launch({ env: { ...withKeys(`old:${old}`), ...own } })
  await newAgent(late.url)
  const operator = operatorOf({ ...withKeys(`new:${fresh}`, `old:${old}`), ...own })
  const keys = async () =>
    (await operator.rows('keys', 'show')).map(({ kek_id, keys }) => [kek_id, Number(keys)])
  assert.deepEqual(await keys(), [['old', 2]])
  await using early = await launch({
    env: { ...withKeys(`new:${fresh}`, `old:${old}`), ...own, DATA_DIR: elsewhere.path },
  })
  const lateSays = async () => {
    const { body } = await http<{ checks: { custody: { status: string } } }>(`${late.url}/health`)
    const { text } = (await http<{ text: string }>(`${late.url}/metrics`)).body
    const gauge = /^portico_key_encryption_keys_unusable (\d+)$/m.exec(text)?.[1]
    return [body.checks.custody.status, gauge]
  }
  assert.deepEqual(await lateSays(), ['ok', '0'])
  await eventually(
    async () => ((await lateSays()).join() === 'degraded,1' ? true : undefined),
    'the gateway without the new key reports it',
    maintenanceMsMax,
  )
  assert.deepEqual(await keys(), [['new', 2]])
  await early.stop()
  await late.stop()
})

test('keys that no configured key opens are named, and the rotation does not end as done', async () => {
  const operator = operatorOf(withKeys(`other:${newKey()}`))
  const [shown] = await operator.rows('keys', 'show')
  assert.deepEqual([shown?.role, shown?.opens], ['not in the settings', 'absent'])
})
