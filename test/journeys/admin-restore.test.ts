/** A backup restored over the embedded database that it was made of. */
import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { embeddedPostgres } from '#store/embedded.ts'
import type { Operator } from '../harness/admin.ts'
import { type Gateway, newAgent } from '../harness/gateway.ts'
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
  assert.ok(await isKnown(gateway.url, agent.token))
})
