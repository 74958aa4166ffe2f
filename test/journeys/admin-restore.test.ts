/** A backup restored over the embedded database that it was made of. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { embeddedPostgres } from '#store/embedded-server.ts'
import { type Operator, spawnAdmin } from '../harness/admin.ts'
import { eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { query } from '../store/embedded-fixture.ts'
import { isKnown, offlineInstallations } from './offline-gateway.ts'

const installations = offlineInstallations()
const { path } = installations
let gateway: Gateway
let operator: Operator

before(async () => {
  gateway = await installations.launch('first')
  operator = installations.operator('first')
})
after(async () => {
  await gateway?.stop()
  installations[Symbol.dispose]()
})

const tables = ['app_user', 'agent_key', 'wallet', 'access_token', 'account', 'transfer', 'schema_migration']
const contents = async (url: string): Promise<string[]> =>
  Promise.all(
    tables.map(async (table) => {
      const rows = await query<{ n: string; sum: string }>(
        url,
        `select count(*)::text as n, md5(coalesce(string_agg(t::text, E'\\n' order by t::text), '')) as sum from ${table} t`,
      )
      return `${table} ${rows[0]!.n} ${rows[0]!.sum}`
    }),
  )

test('a restore in place goes back to the moment of the backup, and keeps a copy of the later state', async () => {
  const early = await newAgent(gateway.url)
  await operator.run('backup', path('early'))
  const url = (await operator.run('psql', '--url')).out.trim()
  const then = await contents(url)
  const late = await newAgent(gateway.url)
  assert.match(await operator.refusal('restore', path('early'), '--why', 'too soon'), /in use by process/)
  // A killed gateway leaves its server running.
  await gateway.kill()

  const { out } = await operator.act('went wrong', 'restore', path('early'))
  const aside = /previous database is in (\S+);/.exec(out)?.[1] ?? ''
  assert.ok(existsSync(aside), out)
  const server = await embeddedPostgres({ dataDir: path('first') })
  assert.deepEqual(await contents(server.url), then)
  await server.close()
  gateway = await installations.launch('first')
  assert.deepEqual(
    [await isKnown(gateway.url, early.token), await isKnown(gateway.url, late.token)],
    [true, false],
  )
  // A sponsor that was first used after the backup has no counter in it.
  const at = (await operator.run('psql', '--url')).out.trim()
  const used = JSON.stringify({ '8453:new': { chain: '8453', signer: 'new', from: '0', to: '7' } })
  await query(at, `update money_hold set detail = detail || '${used}'::jsonb where scope = 'all'`)
  await operator.act('accepted', 'time', 'resume', '--unseen')
  assert.deepEqual(await query(at, `select next::text from nonce_sequence where signer = 'new'`), [
    { next: '7' },
  ])
})

const reasonsOnHold = async (): Promise<string[]> => {
  type Health = { checks: { money: { on_hold: { reason: string }[] } } }
  const { body } = await http<Health>(`${gateway.url}/health`)
  return body.checks.money.on_hold.map(({ reason }) => reason)
}
const isHeld = (held: boolean) =>
  eventually(async () => (await reasonsOnHold()).length > 0 === held || undefined, `money on hold: ${held}`)

test('a restore that is killed in its middle leaves money on hold, also where nothing is remembered', async () => {
  await operator.run('backup', path('interrupted'))
  await gateway.stop()
  const memory = join(path('first'), 'database-time')
  rmSync(memory, { recursive: true })
  const child = spawnAdmin(installations.envOf('first'), ['restore', path('interrupted'), '--why', 'x'])
  await eventually(async () => existsSync(join(memory, 'restored')) || undefined, 'the restore has begun')
  child.kill('SIGKILL')
  await once(child, 'close')
  gateway = await installations.launch('first')
  assert.deepEqual(await reasonsOnHold(), ['restored'])
  await operator.act('accepted', 'time', 'resume', '--unseen')
  await isHeld(false)
})

test('an operator holds the money of a database that other tools restored, from the moment it was restored to', async () => {
  assert.match(await operator.refusal('time', 'hold', '--why', 'x'), /name the moment .* with --since/)
  assert.match(
    await operator.refusal('time', 'hold', '--since', 'noon', '--why', 'x'),
    /a moment that has passed/,
  )
  const since = new Date(Date.now() - 600_000).toISOString()
  await operator.act('restored by the provider', 'time', 'hold', '--since', since)
  await isHeld(true)
  const [shown] = await operator.rows<{ reason: string; point: string }>('time', 'show')
  assert.deepEqual([shown?.reason, shown?.point], ['restored', since])
  await operator.rows('time', 'compare')
  await operator.act('compared', 'time', 'resume')
  await isHeld(false)

  // After a stop the last heartbeat is the moment; a chain that nobody has compared goes on unseen alone.
  await gateway.stop()
  const backdate = `update database_witness set seen_at = seen_at - interval '1 hour'`
  await operator.act('x', 'psql', '--write', backdate)
  await operator.act('restored by the provider', 'time', 'hold')
  const chain = `insert into money_hold (scope, reason, since) values ('8453', 'not_compared', now())`
  await operator.act('x', 'psql', '--write', chain)
  assert.match(await operator.refusal('time', 'compare'), /No gateway is running on this database/)
  const uncompared = await operator.refusal('time', 'resume', '--chain', '8453', '--why', 'x')
  assert.match(uncompared, /Chain 8453 was not compared yet/)
  await operator.act('its node is gone', 'time', 'resume', '--chain', '8453', '--unseen')
  gateway = await installations.launch('first')
  assert.deepEqual(await reasonsOnHold(), ['restored'])
  const output = gateway.lines.join('\n')
  assert.match(
    output,
    /^hold +All money is on hold since \S+: the database was restored from a backup\. Run `npm run admin -- time show`/m,
  )
  assert.match(output, /the database was restored: money is on hold/)
  await operator.act('accepted', 'time', 'resume', '--unseen')
  await isHeld(false)
})

test('a damaged backup is rejected and leaves the database unchanged', async () => {
  const agent = await newAgent(gateway.url)
  await operator.run('backup', path('damaged'))
  const base = join(path('damaged'), 'data', 'base')
  const database = readdirSync(base).sort((a, b) => Number(b) - Number(a))[0]!
  const file = readdirSync(join(base, database)).find((name) => /^\d+$/.test(name))!
  appendFileSync(join(base, database, file), 'x')
  await gateway.stop()
  const damaged = await operator.refusal('restore', path('damaged'), '--why', 'x')
  assert.match(damaged, /missing or damaged/)
  assert.match(await operator.refusal('restore', path('nothing'), '--why', 'x'), /is not a backup/)
  gateway = await installations.launch('first')
  assert.deepEqual(await reasonsOnHold(), [], 'what was not replaced is not on hold')
  assert.ok(await isKnown(gateway.url, agent.token))
})
