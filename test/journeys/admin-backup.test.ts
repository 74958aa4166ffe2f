/** Backups of the embedded database, made beside a running gateway and restored, under any account. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { type Gateway, newAgent } from '../harness/gateway.ts'
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

test('a backup beside a running gateway restores into an empty folder with every user acknowledged before it', async () => {
  const agents = await Promise.all(Array.from({ length: 8 }, () => newAgent(gateway.url)))
  // Writes continue while the files are copied; users of that time may or may not be in the copy.
  let writing = true
  const more = (async () => {
    while (writing) await newAgent(gateway.url)
  })()
  const made = await operator.run('backup', path('copy'), '--by', 'ann')
  writing = false
  await more
  assert.match(made.out, /files, \d+ bytes in .*copy/)
  assert.equal(statSync(path('copy')).mode & 0o777, 0o700)
  assert.match(await operator.refusal('backup', path('copy')), /already exists/)

  const second = installations.operator('second')
  const restored = await second.act('a drill', 'restore', path('copy'))
  assert.match(restored.out, /was restored from .*copy/)
  {
    await using again = await installations.launch('second')
    for (const { token } of agents) assert.ok(await isKnown(again.url, token))
    const { token } = await newAgent(again.url)
    assert.ok(await isKnown(again.url, token))
  }
  const actions = await second.log()
  const restore = actions.find(({ command }) => command === 'restore')
  assert.deepEqual([restore?.actor, restore?.reason], ['ann', 'a drill'])
})

test('an external server is backed up with its own tools', async () => {
  const foreign = operatorOf({ DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/x', DATA_DIR: path('third') })
  assert.match(
    await foreign.refusal('restore', path('copy'), '--why', 'x'),
    /DATABASE_URL points to an external server/,
  )
  const empty = installations.operator('never')
  assert.match(await empty.refusal('tasks', 'list'), /There is no database in/)
})
