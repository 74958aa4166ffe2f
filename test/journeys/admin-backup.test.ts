/** Backups of the embedded database, made beside a running gateway and put back, under whatever account runs this. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { bearer, dataFolder, type Gateway, http, launch, newAgent } from '../harness/gateway.ts'

/** Without upstreams: what is backed up is the database. */
const off = Object.fromEntries(
  ['ETHEREUM', 'BASE', 'ARBITRUM', 'POLYGON', 'SOLANA'].map((name) => [`${name}_RPC_URL`, 'off']),
)
const settings = { ...off, RATE_AUTH: '100000', HYPERLIQUID_URL: 'off', PRICES_URL: 'off', FAUCET_URL: 'off' }
const folder = dataFolder()
const path = (name: string) => join(folder.path, name)
let gateway: Gateway
let operator: Operator
const envOf = (name: string) => ({ ...settings, DATA_DIR: path(name) })

before(async () => {
  gateway = await launch({ env: envOf('first') })
  operator = operatorOf(envOf('first'))
})
after(async () => {
  await gateway?.stop()
  folder[Symbol.dispose]()
})

const isKnown = async (url: string, token: string) =>
  (await http(`${url}/v1/user`, { headers: bearer({ token }) })).status === 200

test('a backup beside a running gateway and its restore into an empty folder are equal in every row', async () => {
  const agents = await Promise.all(Array.from({ length: 8 }, () => newAgent(gateway.url)))
  // Writing goes on while the files are copied: all of it that was answered before the end may be in the copy.
  let writing = true
  const more = (async () => {
    while (writing) await newAgent(gateway.url)
  })()
  const made = await operator.run('backup', path('copy'), '--by', 'ann')
  writing = false
  await more
  assert.match(made.out, /files, \d+ bytes in .*copy/)
  assert.equal(statSync(path('copy')).mode & 0o777, 0o700)
  assert.match(await operator.refused('backup', path('copy')), /exists already/)

  const second = operatorOf(envOf('second'))
  const restored = await second.act('a drill', 'restore', path('copy'))
  assert.match(restored.out, /is that of .*copy/)
  {
    await using again = await launch({ env: envOf('second') })
    for (const { token } of agents) assert.ok(await isKnown(again.url, token))
    await newAgent(again.url)
    const [action] = await second.log('--limit', '20')
    assert.ok(action)
  }
  const actions = await second.log()
  const restore = actions.find(({ command }) => command === 'restore')
  assert.deepEqual([restore?.actor, restore?.reason], ['ann', 'a drill'])
})

test('a server of your own is backed up with its own tools', async () => {
  const foreign = operatorOf({ DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/x', DATA_DIR: path('third') })
  assert.match(
    await foreign.refused('restore', path('copy'), '--why', 'x'),
    /DATABASE_URL names a server of your own/,
  )
  const empty = operatorOf(envOf('never'))
  assert.match(await empty.refused('tasks', 'list'), /There is no database in/)
})
