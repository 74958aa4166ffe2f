/** What chats start by themselves, counted by the accepting statement and by each signature. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { transferOperation } from '#kernel/task/policy-action.ts'
import type { Action } from '#kernel/task/signer.ts'
import { query } from '#store/query.ts'
import { endUnexecuted } from '../harness/accept-task.ts'
import { createIdentityApp, faultOf, type IdentityApp } from './identity-app.ts'
import { actionOf, intentOf, reserve as reserveIn } from './intents.ts'

let app: IdentityApp
before(async () => {
  app = await createIdentityApp()
})
after(() => app[Symbol.asyncDispose]())

type Instance = IdentityApp | Awaited<ReturnType<IdentityApp['instance']>>
const dollars = (amount: number) => BigInt(amount) * 1_000_000n
const codeOf = (answer: Promise<unknown>) =>
  answer.then(
    () => 'ok',
    () => faultOf(answer).then(({ code, extras }) => String(extras.rule ?? code)),
  )

async function userWith(limit: bigint) {
  const caller = await app.auth.authenticate(`Bearer ${await app.token(await app.register())}`)
  const { wallets } = await app.ask('user_show', {}, caller)
  const { userId } = caller
  await query(
    app.db,
    'insert into policy (user_id, version, chat_per_day_micros, updated_at) values ($1, 1, $2, now())',
    [userId, limit],
  )
  const start = (usdMicros: bigint, change: Partial<Action> = {}, on: Instance = app) =>
    reserveIn(actionOf(app, userId, { usdMicros, principal: 'chat', ...change }), on)
  return { caller, userId, own: wallets[0]?.address ?? '', start }
}
const countedOf = async (userId: string): Promise<bigint> => {
  const text = 'select policy_chat_spent($1, $2, null) as sum'
  const since = new Date(app.clock.now().getTime() - 86_400_000)
  return BigInt((await query<{ sum: string }>(app.db, text, [userId, since]))[0]?.sum ?? 0)
}
const authorize = (action: Action, own: string) =>
  app.transact((tx) => app.policy.policy.authorize(tx, intentOf(app, action, own)))

test('64 orders of chats at once, on two instances, never exceed the limit of chats', async () => {
  const other = await app.instance()
  const { userId, start } = await userWith(dollars(1000))
  const codes = await Promise.all(
    Array.from({ length: 64 }, (_, at) => codeOf(start(dollars(300), {}, at % 2 ? app : other))),
  )
  assert.equal(codes.filter((code) => code === 'ok').length, 3)
  assert.equal(codes.filter((code) => code === 'chat_per_day_usd').length, 61)
  assert.equal(await countedOf(userId), dollars(900))
})

test('orders of agents count nothing against it, and those of chats count against the cap of the day', async () => {
  const { userId, start } = await userWith(dollars(1000))
  for (let more = 0; more < 4; more++)
    assert.equal(await codeOf(start(dollars(1000), { principal: 'agent' })), 'ok')
  assert.equal(await countedOf(userId), 0n)
  assert.equal(await codeOf(start(dollars(1000))), 'ok')
  assert.equal(await codeOf(start(1n, { principal: 'agent' })), 'per_day_usd')
})

test('what ended without an effect, and what is a day old, leaves room again', async () => {
  const { start } = await userWith(dollars(300))
  const { taskId } = await start(dollars(300))
  assert.equal(await codeOf(start(1n)), 'chat_per_day_usd')
  await endUnexecuted(app, taskId)
  assert.equal(await codeOf(start(dollars(300))), 'ok')
  assert.equal(await codeOf(start(1n)), 'chat_per_day_usd')
  app.time.offsetMs += 86_401_000
  assert.equal(await codeOf(start(dollars(300))), 'ok')
  app.time.offsetMs = 0
})

test('exits, transfers and what counts nothing are not started by chats', async () => {
  const { start } = await userWith(dollars(300))
  assert.equal(await codeOf(start(1n, { exit: true })), 'chat_per_day_usd')
  assert.equal(await codeOf(start(0n)), 'chat_per_day_usd')
  assert.notEqual(await codeOf(start(1n, { operation: transferOperation })), 'ok')
})

test('what needs an approval is refused before a task exists', async () => {
  const { caller, start } = await userWith(dollars(300))
  await app.ask('policy_tighten', { approval_above_usd: '10' }, caller)
  assert.equal(await codeOf(start(dollars(10))), 'ok')
  assert.equal(await codeOf(start(dollars(10) + 1n)), 'approval_above_usd')
})

test('a task of a chat signs no more than the limit allows, as it is at the signature', async () => {
  const { caller, userId, own, start } = await userWith(dollars(60))
  const action = await start(dollars(25))
  const agents = { ...action, principal: 'agent' as const }
  assert.deepEqual(
    [await codeOf(authorize(agents, own)), await codeOf(authorize(agents, own))],
    ['ok', 'ok'],
    'more than it reserved, within the limit',
  )
  assert.equal(await countedOf(userId), dollars(50))
  assert.equal(await codeOf(authorize(agents, own)), 'chat_per_day_usd')
  const next = await start(dollars(10))
  await app.ask('policy_tighten', { chat_per_day_usd: '0' }, caller)
  assert.equal(await codeOf(authorize({ ...next, usdMicros: dollars(10) }, own)), 'chat_per_day_usd')
})
