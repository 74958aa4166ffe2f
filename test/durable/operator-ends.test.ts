/** What an operator's end of a swap or of an order in review leaves: the same as the end by its own step. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { hookKind } from '#features/hooks/view.ts'
import { systemOwner, type TaskKind } from '#kernel/task/task.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, type Instance, newUser, openFixture } from './engine-fixture.ts'
import { leaveHookPair } from './hook-pair.ts'

const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const weth = '0x4200000000000000000000000000000000000006'
const tokens = {
  usdc: { symbol: 'USDC', name: 'USD Coin', decimals: 6, address: usdc },
  weth: { symbol: 'WETH', name: 'Wrapped Ether', decimals: 18, address: weth },
}
const end = (token: JsonObject) => ({ chain_id: '8453', token, is_native: false, account: '0xown' })
const swapData = (more: JsonObject = {}): JsonObject => ({
  origin: end(tokens.usdc),
  destination: end(tokens.weth),
  amount_in: '2000000',
  amount_out_min: '900000000000000',
  usd_micros: '2000000',
  quote: {},
  provider: 'relay',
  provider_request_id: '0x01',
  ...more,
})
const inReview: TaskKind['steps'] = {
  sign: async () => ({ park: { afterMs: 600_000, next: 'sign' }, state: 'review', outcome: 'unknown' }),
}
const kindOf = (kind: string): TaskKind => ({ kind, version: 1, priority: 0, steps: inReview })
const evidence = ['--evidence', 'seen on two explorers']

describe("an operator's end", () => {
  const folder = dataFolder()
  let fixture: EngineFixture
  let instance: Instance
  let operator: Operator
  before(async () => {
    fixture = await openFixture()
    instance = await fixture.instance(
      { steps: { only: async () => executed } },
      { internal: [kindOf('swap'), kindOf(hookKind)] },
    )
    operator = operatorOf({ DATABASE_URL: fixture.url, DATA_DIR: folder.path })
  })
  after(async () => {
    await fixture[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  const addUser = async () => {
    const id = newUser()
    await fixture.rows(
      `insert into app_user (id, agent_id, auth_scheme, created_at) values ($1::uuid, 'agt_'
         || translate(upper(right(replace($1::uuid::text, '-', ''), 26)), 'ILOU', '1111'), 'keypair', now()) returning id`,
      id,
    )
    return id
  }
  const swapInReview = async (userId: string, data: JsonObject) => {
    const admission = { data, first: 'sign' }
    const id = await fixture.admin.transaction((tx) =>
      instance.taskEngine.enqueue(tx, { userId, kind: kindOf('swap'), input: {}, admission }),
    )
    await reviewed(id)
    return id
  }
  const reviewed = (id: string) =>
    eventually(
      async () =>
        (await fixture.rows(`select id from task where id = $1 and state = 'review'`, id))[0] as object,
      'the task is in review',
    )
  const ordersOf = (userId: string) =>
    fixture.rows<TriggerOrder>(
      // A stop is before its target.
      'select * from trigger_order where user_id = $1 order by direction desc, id',
      userId,
    )
  const eventsOf = async (userId: string, prefix: string) =>
    (
      await fixture.rows<{ type: string }>(
        'select type from user_event where user_id = $1 and starts_with(type, $2) order by seq',
        userId,
        prefix,
      )
    ).map(({ type }) => type)
  const taskOf = async (id: string) =>
    (
      await fixture.rows<{ status: string; outcome: string; result: Record<string, string> | null }>(
        'select status, outcome, result from task where id = $1',
        id,
      )
    )[0]!
  const watchesOf = (id: string) =>
    fixture.rows(
      `select id from task where user_id = $1 and kind = 'swap_late_payment' and data ->> 'task_id' = $2`,
      systemOwner,
      id,
    )

  test('arms the hooks of a swap that was executed, for what arrived, and counts its cost', async () => {
    const user = await addUser()
    const leg = (type: string, fraction: string) => ({
      id: newUser(),
      type,
      fraction,
      price: null,
      sell: '1',
    })
    const attached = {
      legs: [leg('stop_loss', '0.1'), leg('take_profit', '0.2')],
      group: newUser(),
      slippage_bps: 100,
    }
    const id = await swapInReview(user, swapData({ attached }))
    const words = ['tasks', 'end', id, '--outcome', 'executed', ...evidence]
    assert.match(await operator.refusal(...words, '--why', 'x'), /--amount-out is required: the WETH/)
    await operator.act('no receipt', ...words, '--tx-hash', '0xdone', '--amount-out', '1000000000000000')
    const ended = await taskOf(id)
    assert.deepEqual(
      [ended.status, ended.outcome, ended.result?.amount_out, ended.result?.tx_hash],
      ['completed', 'executed', '1000000000000000', '0xdone'],
    )
    const hooks = await ordersOf(user)
    assert.deepEqual(
      hooks.map(({ status, input }) => [status, input.lot_left]),
      [
        ['armed', '1000000000000000'],
        ['armed', '1000000000000000'],
      ],
    )
    assert.deepEqual(await eventsOf(user, 'hook.'), ['hook.created', 'hook.created'])
    const [basis] = await fixture.rows<{ units: string }>(
      'select units from cost_basis where user_id = $1 and token = lower($2)',
      user,
      weth,
    )
    assert.equal(basis?.units, '1000000000000000')
  })

  test('watches for a later payment of a deposit that nothing came back for', async () => {
    const user = await addUser()
    const id = await swapInReview(user, swapData({ deposit_tx: '0xdeposit' }))
    const words = (outcome: string) => ['tasks', 'end', id, '--outcome', outcome, ...evidence]
    assert.match(await operator.refusal(...words('not_executed'), '--why', 'x'), /0xdeposit was made/)
    assert.equal((await watchesOf(id)).length, 0)
    await operator.act('the provider is gone', ...words('partial'))
    const ended = await taskOf(id)
    assert.deepEqual([ended.status, ended.outcome, ended.result?.refunded], ['failed', 'partial', null])
    assert.equal((await watchesOf(id)).length, 1)
  })

  /** A stop and a target that sell what a swap bought; the stop has fired. */
  const firedStop = async (data: JsonObject) => {
    const user = await addUser()
    const { stop: left } = await leaveHookPair(fixture, user)
    const { priceTriggers } = instance
    const [lease] = await priceTriggers.lease([left.market])
    assert.equal(await priceTriggers.fireTriggers(lease!, '1', left.quote_key), 1)
    const stop = (await ordersOf(user)).find(({ id }) => id === left.id)
    assert.ok(stop?.task_id, 'the stop has a task')
    await reviewed(stop.task_id)
    await fixture.rows(
      'update task set data = data || $2::jsonb where id = $1 returning id',
      stop.task_id,
      JSON.stringify(data),
    )
    return { user, taskId: stop.task_id }
  }

  test('arms an order again whose swap was not executed, and its group, with their events', async () => {
    const { user, taskId } = await firedStop(swapData())
    await operator.act('never mined', 'tasks', 'end', taskId, '--outcome', 'not_executed', ...evidence)
    assert.deepEqual(
      (await ordersOf(user)).map(({ status, task_end }) => [status, task_end]),
      [
        ['armed', null],
        ['armed', null],
      ],
    )
    const published = await eventsOf(user, 'hook.')
    assert.deepEqual(published.slice(-2).sort(), ['hook.attempt_failed', 'hook.created'])
  })

  test('ends an order whose deposit is lost, counts it as sold, and watches for its payment', async () => {
    const { user, taskId } = await firedStop(swapData({ amount_in: '4000000', deposit_tx: '0xdeposit' }))
    await operator.act('the provider is gone', 'tasks', 'end', taskId, '--outcome', 'partial', ...evidence)
    assert.deepEqual(
      (await ordersOf(user)).map(({ status, task_end, input }) => [status, task_end, input.lot_left]),
      [
        ['fired', 'failed', '1000000'],
        ['cancelled', null, '1000000'],
      ],
    )
    assert.equal((await eventsOf(user, 'hook.')).at(-1), 'hook.failed')
    assert.equal((await watchesOf(taskId)).length, 1)
  })
})
