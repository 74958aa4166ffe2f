/** kill -9 between the answer of the image service and the reply: one credit, and the same images under the same key. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { addBackend } from '../harness/backend.ts'
import { type Agent, bearer, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { creditsOf, type ImageBody } from '../images/image-app.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'

const pointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|begin|commit|insert backend_request|update file_content|insert file_content|insert file)|net:images)/

let app: CrashApp
let survivor: Gateway
let agent: Agent
let userId: string
let backendKey: string
let made = 0

const ask = (url: string, key: string) =>
  http<ImageBody>(`${url}/chat/image/`, {
    method: 'POST',
    headers: { 'x-backend-key': backendKey, 'idempotency-key': key },
    body: { user: userId, query: 'a coin, poster', image_size: '256x256' },
    timeoutMs: 25_000,
  })
const bytesAt = async ({ images }: ImageBody): Promise<string> =>
  Buffer.from(await (await fetch(images[0]!.url)).arrayBuffer()).toString('base64')

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  agent = await newAgent(survivor.url)
  userId = (await http<{ user_id: string }>(`${survivor.url}/v1/user`, { headers: bearer(agent) })).body
    .user_id
  backendKey = await addBackend(app.admin)
  assert.equal((await ask(survivor.url, 'first')).status, 200)
  made += 1
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

const pointsOfOneCall = (): Promise<string[]> =>
  recordPoints({
    pattern: pointPattern,
    passesOf: () => 1,
    needed,
    shortPoint: 'net:images:after',
    launch: app.gateway,
    async work({ url }, attempt) {
      assert.equal((await ask(url, attempt)).status, 200)
      made += 1
    },
  })

const needed = [/^net:images:after/, /^db:task_step:before/, /^db:task_step:after|^db:commit:after/]

test('a call killed at any point is charged once, and its key has its images', async (t) => {
  const points = await pointsOfOneCall()
  const reached = await killAtEach(points, app.gateway, async (point, victim) => {
    const key = keyAt(point)
    victim.child.kill('SIGUSR2')
    const first = await ask(victim.url, key).catch(() => undefined)
    const died = hasDied(victim, first)
    await victim.kill()
    const [one, other] = [await ask(survivor.url, key), await ask(survivor.url, key)]
    assert.deepEqual([one.status, other.status], [200, 200], `${point}: ${JSON.stringify(one.body)}`)
    if (first?.status === 200) assert.equal(first.body.seed, one.body.seed, point)
    assert.equal(await bytesAt(one.body), await bytesAt(other.body), point)
    made += 1
    assert.equal(await creditsOf(survivor.url, agent), 200 - made, point)
    return died
  })
  t.diagnostic(`${reached}, ${made} calls`)
  assert.equal(await ledgerDrift(app.admin), 0)
})
