/**
 * An operator's end of tasks of each kind that moves money in several legs or books something of its own: what the user
 * reads afterwards is what happened, and what the facts of the task exclude is refused.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemOwner, type TaskKind } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, type Instance, newUser, openFixture } from './engine-fixture.ts'

const hash = (digit: string) => `0x${digit.repeat(64)}`
const usdcOf = (chainId: string) => ({
  symbol: 'USDC',
  name: 'USD Coin',
  decimals: 6,
  address:
    chainId === '8453'
      ? '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
      : '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
})
const account = `0x${'a'.repeat(40)}`
const sideOn = (chainId: string) => ({
  chain_id: chainId,
  token: usdcOf(chainId),
  is_native: false,
  account,
})
const swapData = (more: JsonObject = {}): JsonObject => ({
  origin: sideOn('8453'),
  destination: sideOn('42161'),
  amount_in: '50000000',
  amount_out_min: '49500000',
  usd_micros: '50000000',
  settled_by: 'status',
  quote: {},
  provider: 'relay',
  provider_request_id: '0x01',
  ...more,
})
const depositMade = { deposit_tx: hash('d'), deposited_at: new Date(0).toISOString() }
const spent = [
  {
    chain_id: '8453',
    token_address: usdcOf('8453').address,
    symbol: 'USDC',
    amount: '-50000000',
    decimals: 6,
  },
]
const fundData = (more: JsonObject = {}): JsonObject => ({
  account,
  amount_units: '49500000',
  ahead_ms: 0,
  since_ms: 0,
  swap: swapData(),
  ...more,
})
const withdrawData = (more: JsonObject = {}): JsonObject => ({
  account,
  amount_usd: '30',
  transfer_usd: null,
  ahead_ms: 0,
  since_ms: 0,
  ...more,
})

const inReview: TaskKind['steps'] = {
  sign: async () => ({ park: { afterMs: 600_000, next: 'sign' }, state: 'review', outcome: 'unknown' }),
}
const kindOf = (kind: string): TaskKind => ({ kind, version: 1, priority: 0, steps: inReview })
const kinds = [
  'credits_recharge',
  'earn_deposit',
  'earn_withdraw',
  'hook_execute',
  'perp_fund',
  'perp_open',
  'perp_withdraw',
  'wallets_transfer',
]
const evidence = ['--evidence', 'seen on two explorers']

type Ended = {
  status: string
  outcome: string
  message: string
  result: Record<string, unknown> | null
  error: { code: string; message: string } | null
  data: { balance_changes?: { chain_id: string; amount: string }[]; transactions?: { status: string }[] }
}
type NewEffect = {
  kind?: string
  status?: string
  hash?: string
  intent?: JsonObject
  validMs?: number | null
}

describe("an operator's end of each kind", () => {
  const folder = dataFolder()
  let fixture: EngineFixture
  let instance: Instance
  let operator: Operator
  let user: string
  before(async () => {
    fixture = await openFixture()
    instance = await fixture.instance(
      { steps: { only: async () => executed } },
      { internal: kinds.map(kindOf) },
    )
    operator = operatorOf({ DATABASE_URL: fixture.url, DATA_DIR: folder.path })
    user = newUser()
    await fixture.rows(
      `insert into app_user (id, agent_id, auth_scheme, created_at) values ($1::uuid, 'agt_'
         || translate(upper(right(replace($1::uuid::text, '-', ''), 26)), 'ILOU', '1111'), 'keypair', now()) returning id`,
      user,
    )
  })
  after(async () => {
    await fixture[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  const taskOf = async (id: string) =>
    (await fixture.rows<Ended>('select status, outcome, result, error, data from task where id = $1', id))[0]!
  const addEffect = async (
    id: string,
    {
      kind = 'evm_batch',
      status = 'unknown',
      hash: sent = hash('1'),
      intent = {},
      validMs = -1_000,
    }: NewEffect,
  ) => {
    const effectId = newUser()
    await fixture.rows(
      `insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, valid_until, at)
       values ($1::uuid, $2, 'sign', $3, $4::jsonb, '{}', $1::uuid::text, $5, 'none', now() + make_interval(secs => $6::double precision), now())
       returning id`,
      effectId,
      id,
      kind,
      JSON.stringify(intent),
      status,
      validMs === null ? null : validMs / 1_000,
    )
    await fixture.rows(
      `insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
       values ($1::uuid, 0, 'raw', $2, 'evm', '8453', $1::uuid::text, 1, $3, now()) returning n`,
      effectId,
      sent,
      status === 'confirmed' ? 'confirmed' : 'sent',
    )
    return sent
  }
  const addTask = async (kind: string, data: JsonObject) => {
    const id = await fixture.admin.transaction((tx) =>
      instance.taskEngine.enqueue(tx, {
        userId: user,
        kind: kindOf(kind),
        input: {},
        admission: { data, first: 'sign' },
      }),
    )
    await eventually(
      async () =>
        (await fixture.rows(`select id from task where id = $1 and state = 'review'`, id))[0] as object,
      'the task is in review',
    )
    return id
  }
  const end = async (id: string, ...words: string[]) => {
    await operator.act('decided', 'tasks', 'end', id, '--outcome', ...words, ...evidence)
    return taskOf(id)
  }
  const refusal = (id: string, ...words: string[]) =>
    operator.refusal('tasks', 'end', id, '--outcome', ...words, ...evidence, '--why', 'x')
  const watchesOf = (id: string) =>
    fixture.rows(
      `select id from task where user_id = $1 and kind = 'swap_late_payment' and data ->> 'task_id' = $2`,
      systemOwner,
      id,
    )
  const unitsOf = async (asset: string, subAccount: string) =>
    (
      await fixture.rows<{ avail: string }>(
        'select avail::text from account where owner = $1 and asset = $2 and sub_account = $3',
        user,
        asset,
        subAccount,
      )
    )[0]?.avail
  const amounts = ({ data }: Ended) =>
    (data.balance_changes ?? []).map(({ chain_id, amount }) => `${chain_id} ${amount}`)

  test('a funding whose swap has its deposit is partial, and what the provider pays later is watched for', async () => {
    const data = fundData({ swap: swapData(depositMade), balance_changes: spent })
    const id = await addTask('perp_fund', data)
    await addEffect(id, { status: 'confirmed', hash: hash('d') })
    assert.match(await refusal(id, 'not_executed'), /was executed: 0xd+\. Use --outcome partial/)
    assert.match(await refusal(id, 'executed'), /The deposit has not begun: use --outcome partial/)
    assert.equal((await watchesOf(id)).length, 0)
    const ended = await end(id, 'partial')
    assert.deepEqual(
      [ended.status, ended.outcome, ended.error?.code],
      ['failed', 'partial', 'ended_by_operator'],
    )
    const { remaining, legs } = ended.result as { remaining: JsonObject; legs: JsonObject[] }
    assert.deepEqual(
      [remaining.place, remaining.chain_id, remaining.amount, remaining.tx_hash],
      ['provider', '8453', '50000000', hash('d')],
    )
    assert.deepEqual(
      legs.map(({ role, status }) => `${role} ${status}`),
      ['swap failed', 'deposit not_started'],
    )
    assert.deepEqual(amounts(ended), ['8453 -50000000'])
    assert.equal((await watchesOf(id)).length, 1)
  })

  test('a payment that an operator finds after the end is added to its task once, with an event', async () => {
    const data = fundData({ swap: swapData(depositMade), balance_changes: spent })
    const id = await addTask('perp_fund', data)
    const found = [
      'tasks',
      'add-payment',
      id,
      '--as',
      'fill',
      '--amount',
      '49900000',
      ...evidence,
      '--payment',
    ]
    assert.match(await operator.refusal(...found, `${hash('a')}:8`, '--why', 'x'), /has not failed/)
    await addEffect(id, { status: 'confirmed', hash: hash('0') })
    await end(id, 'partial')
    assert.match(await operator.refusal(...found, hash('0'), '--why', 'x'), /<hash>:<log>/)
    await operator.act('seen on the explorer', ...found, `${hash('a')}:8`)
    const shown = await taskOf(id)
    const { remaining } = shown.result as { remaining: JsonObject }
    assert.deepEqual(
      [shown.status, remaining.place, remaining.chain_id, remaining.amount],
      ['failed', 'wallet', '42161', '49900000'],
    )
    assert.deepEqual(amounts(shown).sort(), ['42161 49900000', '8453 -50000000'])
    const events = await fixture.rows<{ type: string }>(
      `select type from user_event where task_id = $1 and type = 'swap.late_payment'`,
      id,
    )
    assert.equal(events.length, 1)
    assert.match(await operator.refusal(...found, `${hash('a')}:8`, '--why', 'twice'), /is counted already/)
    const [logged] = (await operator.log('--subject', id)).filter(
      ({ command }) => command === 'tasks add-payment',
    )
    assert.deepEqual(
      [logged?.actor, logged?.reason, logged?.details.amount],
      ['ann', 'seen on the explorer', '49900000'],
    )
  })

  test('a funding whose swap was filled has its dollars in the wallet, by a payment that counts once', async () => {
    const data = fundData({ swap: swapData(depositMade), balance_changes: spent })
    const filled = ['partial', '--amount-out', '49900000', '--payment']
    const id = await addTask('perp_fund', data)
    await addEffect(id, { status: 'confirmed', hash: hash('2') })
    assert.match(await refusal(id, ...filled, hash('f')), /<hash>:<log>/)
    const ended = await end(id, ...filled, `${hash('f')}:3`)
    const { remaining } = ended.result as { remaining: JsonObject }
    assert.deepEqual(
      [ended.outcome, remaining.place, remaining.chain_id, remaining.amount, remaining.tx_hash],
      ['partial', 'wallet', '42161', '49900000', hash('f')],
    )
    assert.deepEqual(amounts(ended).sort(), ['42161 49900000', '8453 -50000000'])
    assert.equal((await watchesOf(id)).length, 0)
    const second = await addTask('perp_fund', data)
    assert.match(
      await refusal(second, ...filled, `${hash('f')}:3`),
      /is already counted, or the gateway sent it/,
    )
  })

  test('a funding whose deposit reached the venue is executed, and one that was not credited is partial', async () => {
    const credited = await addTask('perp_fund', { ...fundData(), swap: undefined } as never)
    const mined = await addEffect(credited, { hash: hash('3') })
    assert.match(await refusal(credited, 'executed', '--tx-hash', hash('9')), /one of 0x3+/)
    const ended = await end(credited, 'executed', '--tx-hash', mined)
    assert.deepEqual(
      [ended.status, ended.outcome, ended.result?.amount, ended.result?.tx_hash],
      ['completed', 'executed', '49500000', mined],
    )
    assert.deepEqual(amounts(ended), ['42161 -49500000'])
    const lost = await addTask('perp_fund', { ...fundData({ tx_hash: hash('4') }), swap: undefined } as never)
    await addEffect(lost, { status: 'confirmed', hash: hash('4') })
    const partial = await end(lost, 'partial')
    assert.deepEqual(
      [partial.status, partial.outcome, partial.result?.tx_hash],
      ['failed', 'partial', hash('4')],
    )
    assert.match(partial.error!.message, /the venue has not credited the deposit/)
  })

  test('a withdrawal ends by its payout, and one whose swap has a deposit is partial', async () => {
    const action = { action: { type: 'withdraw' } }
    const id = await addTask('perp_withdraw', withdrawData())
    await addEffect(id, { kind: 'hyperliquid_action', status: 'confirmed', intent: action, hash: 'w:1' })
    assert.match(await refusal(id, 'not_executed'), /was executed/)
    assert.match(await refusal(id, 'executed'), /--amount-out is required/)
    const payment = ['--payment', `${hash('5')}:1`]
    assert.match(await refusal(id, 'executed', '--amount-out', '12000000', ...payment), /is another payment/)
    const ended = await end(id, 'executed', '--amount-out', '29000000', ...payment)
    assert.deepEqual(
      [ended.status, ended.outcome, ended.result?.amount, ended.result?.fee_usd, ended.result?.tx_hash],
      ['completed', 'executed', '29000000', '1', hash('5')],
    )
    const received = { units: '29000000', txHash: hash('6'), at: new Date().toISOString() }
    const swap = swapData({
      ...depositMade,
      origin: sideOn('42161'),
      destination: sideOn('8453'),
      amount_in: '29000000',
    })
    const leg = await addTask(
      'perp_withdraw',
      withdrawData({ received, destination: { chain: '8453', token: 'USDC' }, swap }),
    )
    await addEffect(leg, { kind: 'hyperliquid_action', status: 'confirmed', intent: action, hash: 'w:2' })
    const short = ['partial', '--amount-out', '20000000', '--payment', `${hash('b')}:2`]
    const partial = await end(leg, ...short)
    const { remaining } = partial.result as { remaining: JsonObject }
    assert.deepEqual([partial.outcome, remaining.place], ['partial', 'provider'])
    assert.ok(BigInt(String(remaining.amount)) < 29_000_000n, 'a part was paid for')
    assert.deepEqual(amounts(partial), ['8453 20000000'])
    assert.equal((await watchesOf(leg)).length, 1)
  })

  test('a withdrawal that was held back because an equal one was paid out is not executed, at once', async () => {
    const id = await addTask(
      'perp_withdraw',
      withdrawData({ unclear_before: 'an equal one was paid out', held_back: true }),
    )
    await addEffect(id, {
      kind: 'hyperliquid_action',
      intent: { action: { type: 'withdraw' } },
      hash: 'w:3',
      validMs: null,
    })
    const ended = await end(id, 'not_executed')
    assert.deepEqual([ended.status, ended.outcome], ['failed', 'not_executed'])
    const effects = await fixture.rows<{ status: string }>('select status from effect where task_id = $1', id)
    assert.deepEqual(effects, [{ status: 'dropped' }])
  })

  test('a withdrawal whose swap was executed before, and that nobody quotes, ends by what the operator saw', async () => {
    const soldBefore = () =>
      addTask(
        'perp_withdraw',
        withdrawData({
          received: { units: '29000000', txHash: hash('6'), at: new Date().toISOString() },
          balance_changes: [
            { ...spent[0]!, chain_id: '42161', amount: '29000000', token_address: usdcOf('42161').address },
          ],
          destination: { chain: 'base', token: 'USDC' },
          sought: { chain_id: '42161', kind: 'evm_batch', is_found: true, tx_hash: null },
        }),
      )
    const id = await soldBefore()
    assert.match(await refusal(id, 'not_executed'), /has executed this before/)
    assert.match(await refusal(id, 'partial'), /--tx-hash is required/)
    const found = ['--tx-hash', hash('a')]
    assert.match(await refusal(id, 'executed', ...found), /--amount-out is required: the USDC that arrived/)
    assert.match(await refusal(id, 'partial', ...found, '--amount-out', '9'), /--amount-out says nothing/)
    const ended = await end(id, 'executed', ...found, '--amount-out', '28900000')
    const { amount, amount_usd, chain_id, token_address, tx_hash } = ended.result!
    assert.deepEqual(
      [ended.status, amount, amount_usd, chain_id, token_address, tx_hash],
      ['completed', '28900000', '29', '8453', usdcOf('8453').address, hash('a')],
    )
    assert.deepEqual(amounts(ended), ['8453 28900000'])
    const unpaid = await soldBefore()
    const partial = await end(unpaid, 'partial', '--tx-hash', hash('e'))
    const { remaining } = partial.result as { remaining: JsonObject }
    assert.deepEqual(
      [partial.outcome, remaining.place, remaining.chain_id, remaining.amount, remaining.tx_hash],
      ['partial', 'provider', '42161', '29000000', hash('e')],
    )
    assert.deepEqual(amounts(partial), [])
  })

  const recharge = {
    pack_id: '5',
    credits: 300,
    chain_id: '8453',
    till: '0xtill',
    account,
    amount_units: '1000',
    native_price_usd: '1',
    locked_until: '',
  }

  test('a purchase that was paid brings its credits, and none whose payment is in the till is called unpaid', async () => {
    const id = await addTask('credits_recharge', recharge)
    const mined = await addEffect(id, { hash: hash('7') })
    assert.match(await refusal(id, 'executed', '--tx-hash', hash('9')), /one of 0x7+/)
    const ended = await end(id, 'executed', '--tx-hash', mined)
    assert.deepEqual(
      [ended.status, ended.result?.credits, ended.result?.tx_hash, ended.result?.paid],
      ['completed', 300, mined, '1000'],
    )
    assert.deepEqual(amounts(ended), ['8453 -1000'])
    assert.equal(await unitsOf('credits', 'credits:purchased'), '300')
    const unpaid = await addTask('credits_recharge', recharge)
    await addEffect(unpaid, { hash: hash('8') })
    await fixture.rows(
      `insert into credit_payment (chain_id, tx_hash, log_index, block, payer, token, amount, task_id, state, found_at)
       values ('8453', $1, 0, 1, $2, '0x', 1000, $3, 'pending', now()) returning state`,
      hash('8'),
      account,
      unpaid,
    )
    assert.match(await refusal(unpaid, 'not_executed'), /The payment of the task was made: 0x8+/)
    assert.match(await refusal(unpaid, 'partial'), /as a whole, or not at all/)
  })

  test('credits are granted by a task of the user, and settle a stray payment once', async () => {
    const before = BigInt((await unitsOf('credits', 'credits:purchased')) ?? '0')
    await fixture.rows(
      `insert into credit_payment (chain_id, tx_hash, log_index, block, payer, token, amount, state, reason, found_at)
       values ('8453', $1, 4, 1, $2, '0x', 5, 'stray', 'no_task', now()) returning state`,
      hash('e'),
      account,
    )
    const words = ['credits', 'grant', user, '250', '--payment', `8453:${hash('e')}:4`]
    await operator.act('sent by hand', ...words)
    assert.match(await operator.refusal(...words, '--why', 'again'), /There is no such stray payment/)
    assert.match(await operator.refusal('credits', 'grant', user, '1.5', '--why', 'x'), /whole number/)
    const granted = await fixture.rows<{ kind: string; data: { credits: string; reason: string } }>(
      `select kind, data from task where user_id = $1 and kind = 'credits_grant'`,
      user,
    )
    assert.deepEqual(
      granted.map(({ data }) => [data.credits, data.reason]),
      [['250', 'sent by hand']],
    )
    assert.equal(BigInt((await unitsOf('credits', 'credits:purchased')) ?? '0'), before)
    const [logged] = (await operator.log('--subject', user)).filter(
      ({ command }) => command === 'credits grant',
    )
    assert.deepEqual([logged?.actor, logged?.reason, logged?.details.credits], ['ann', 'sent by hand', '250'])
  })

  test('a deposit into the vault opens its position, and a withdrawal takes the shares that were burnt', async () => {
    const vault = {
      position_id: newUser(),
      account,
      chain_id: '8453',
      vault: '0xv',
      amount_usdc: '3',
      apy_at_action: null,
    }
    const id = await addTask('earn_deposit', { ...vault, assets_units: '3000000' })
    const mined = await addEffect(id, { hash: hash('b') })
    assert.match(await refusal(id, 'executed', '--tx-hash', mined), /--amount-out is required: the shares/)
    const ended = await end(id, 'executed', '--tx-hash', mined, '--amount-out', '2900000000000000000')
    assert.equal(ended.result?.shares_delta, '2900000000000000000')
    const [position] = await fixture.rows<{ shares: string }>(
      `select avail::text as shares from account where owner = $1 and sub_account = $2`,
      user,
      `position:${vault.position_id}`,
    )
    assert.equal(position?.shares, '2900000000000000000')
  })

  test('an order that fired and was found executed, and never quoted, ends by the amounts of the operator', async () => {
    const sought = { chain_id: '8453', kind: 'evm_batch', is_found: true, tx_hash: null }
    const id = await addTask('hook_execute', { trigger_order_id: newUser(), sought })
    assert.match(await refusal(id, 'not_executed'), /has executed this before the task/)
    const found = ['executed', '--tx-hash', hash('f')]
    assert.match(await refusal(id, ...found), /--amount-in is required/)
    assert.match(await refusal(id, ...found, '--amount-in', '7'), /--amount-out is required/)
    const ended = await end(id, ...found, '--amount-in', '7', '--amount-out', '9')
    const { amount_in, amount_out, tx_hash } = ended.result ?? {}
    assert.deepEqual(
      [ended.status, ended.outcome, amount_in, amount_out, tx_hash],
      ['completed', 'executed', '7', '9', hash('f')],
    )
  })

  test('an order at the venue whose collateral alone was moved can be called not executed, a placed one not', async () => {
    const moved = await addTask('perp_open', {})
    await addEffect(moved, {
      kind: 'hyperliquid_action',
      status: 'confirmed',
      intent: { action: { type: 'move_cash' } },
      hash: 'a:1',
    })
    const order = { kind: 'hyperliquid_action', intent: { action: { type: 'order' } } }
    const open = await addTask('perp_open', {})
    await addEffect(open, { ...order, hash: 'a:2', validMs: 60_000 })
    assert.match(await refusal(open, 'not_executed'), /can be executed until/)
    const unbounded = await addTask('perp_open', {})
    await addEffect(unbounded, { ...order, hash: 'a:3', validMs: null })
    assert.match(await refusal(unbounded, 'not_executed'), /can be executed until/)
    assert.equal((await end(moved, 'not_executed')).outcome, 'not_executed')
  })

  test('a task that is looked up without an answer is listed and ended once its bytes are void', async () => {
    const recipient = `0x${'b'.repeat(40)}`
    const transfer = {
      chain_id: '8453',
      token: usdcOf('8453').address,
      is_native: false,
      account,
      recipient,
      amount_units: '5',
      usd_micros: '5',
      principal: 'agent',
      token_program: '',
    }
    const id = await addTask('wallets_transfer', transfer)
    const mined = await addEffect(id, { hash: hash('c'), validMs: 60_000 })
    const age = (hours: number) =>
      fixture.rows(
        `update task set state = 'reconciling', created_at = now() - make_interval(hours => $2),
           deadline = now() - make_interval(mins => 1) where id = $1 returning id`,
        id,
        hours,
      )
    const isListed = async () => (await operator.rows('tasks', 'list')).some((row) => row.id === id)
    await age(3)
    assert.equal(await isListed(), false, 'its bytes can be executed')
    await fixture.rows(
      `update effect set valid_until = now() - interval '1 minute' where task_id = $1 returning id`,
      id,
    )
    assert.equal(await isListed(), true)
    await age(0)
    assert.match(await refusal(id, 'executed', '--tx-hash', mined), /not in review/)
    await age(3)
    const ended = await end(id, 'executed', '--tx-hash', mined)
    assert.deepEqual(
      [ended.status, ended.result?.amount, ended.result?.recipient],
      ['completed', '5', recipient],
    )
    assert.deepEqual(amounts(ended), ['8453 -5'])
  })
})
