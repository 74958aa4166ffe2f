/** Stops and profits that a swap leaves on what it buys, and the hooks that it cancels on what it sells. */
import assert from 'node:assert/strict'
import { before, beforeEach, describe, test } from 'node:test'
import { type Hook, type OrderUsers, orderUsers, type Refusal, startPrice } from './order-users.ts'
import { executed, type SwapBody, swapOf } from './swap-users.ts'
import type { Person } from './users.ts'
import { arbitrum, base, solana } from './world.ts'

type HoldingView = {
  chain_id: string
  symbol: string
  balance: string
  avg_entry_price_usd: string | null
  cost_basis_usd: string | null
  realized_pnl_usd: string | null
  outstanding_orders: string[]
}
type WithHooks = SwapBody & {
  hooks: { id: string | null; type: string; trigger_price_usd: string }[]
  cancelled_hook_ids: string[]
  result: SwapBody['result'] & { hook_ids?: string[]; cancelled_hook_ids?: string[] }
}

describe('hooks of a swap', () => {
  let users: OrderUsers
  before(async () => {
    users = await orderUsers()
  })
  beforeEach(() => users.pool.move(startPrice))

  const buy = { chain_id_in: base, token_in: 'USDC', token_out: 'AERO', amount: '60000000' }
  const legs = {
    stop_loss: { price_percentage: '0.1' },
    take_profit: [
      { price_percentage: '0.2', sell_percentage: '0.25' },
      { price_percentage: '0.5', sell_percentage: '0.5' },
    ],
  }
  const bought = async (person: Person, body: object) => (await executed(person, body)) as WithHooks
  const refusalOf = async (person: Person, body: object) => {
    const { status, body: reply } = await person.call<Refusal>('POST /v1/swap?wait=true', { body })
    return status === 422
      ? [reply.detail[0]!.type, reply.detail[0]!.loc.join('.')]
      : [reply.code, reply.detail]
  }
  const swapCount = async (person: Person) => (await users.tasksOfKind(person, 'swap')).length

  test('it arms them when it completes, for what was received, at the price of its fill', async () => {
    const person = await users.holder('50')
    const before = await users.held(person)
    const dry = (await swapOf(person, { ...buy, ...legs, dryrun: true })).body as WithHooks
    assert.deepEqual(
      dry.hooks.map(({ id, type }) => [id, type]),
      [
        [null, 'stop_loss'],
        [null, 'take_profit'],
        [null, 'take_profit'],
      ],
    )
    assert.deepEqual(await users.outstanding(person), [])
    const done = await bought(person, { ...buy, ...legs })
    const received = (await users.held(person)) - before
    assert.equal(done.result.amount_out, String(received))
    const hooks = await users.outstanding(person)
    assert.equal(done.result.hook_ids?.length, 3)
    assert.deepEqual(
      done.hooks.map(({ id }) => id),
      done.result.hook_ids,
    )
    assert.deepEqual(hooks.map(({ id }) => id).sort(), done.result.hook_ids?.toSorted())
    const paid = 60 / (Number(received) / 1e18)
    const byId = new Map(hooks.map((hook) => [hook.id, hook]))
    const [stop, near, far] = done.result.hook_ids!.map((id) => byId.get(id)! as Hook) as [Hook, Hook, Hook]
    for (const [hook, factor] of [
      [stop, 0.9],
      [near, 1.2],
      [far, 1.5],
    ] as const) {
      assert.deepEqual([hook.amount, hook.status], [String(received), 'active'])
      assert.ok(Math.abs(Number(hook.reference_price_usd) / paid - 1) < 1e-9, JSON.stringify(hook))
      assert.ok(Math.abs(Number(hook.trigger_price_usd) / (paid * factor) - 1) < 1e-6, JSON.stringify(hook))
    }
    assert.ok(
      stop.oco_group !== null && stop.oco_group === near.oco_group && near.oco_group === far.oco_group,
    )
    assert.equal((await users.events(person, 'hook.created')).length, 3)
    const { body: wallet } = await person.call<{ holdings: HoldingView[] }>('GET /v1/holdings?chain_type=evm')
    const holding = wallet.holdings.find(({ chain_id, symbol }) => chain_id === base && symbol === 'AERO')!
    assert.deepEqual(holding.outstanding_orders.toSorted(), done.result.hook_ids?.toSorted())
    assert.ok(Math.abs(Number(holding.cost_basis_usd) - 110) < 1, JSON.stringify(holding))
    assert.equal(holding.realized_pnl_usd, null)
    const entry = Number(holding.cost_basis_usd) / Number(holding.balance)
    assert.ok(Math.abs(Number(holding.avg_entry_price_usd) / entry - 1) < 1e-5, JSON.stringify(holding))

    // A quarter is sold above; then the stop sells the rest of what the swap brought, and nothing that was there before.
    await users.pool.move(1.5)
    assert.equal((await users.firedTask(person, 'hook_execute')).outcome, 'executed')
    assert.equal(await users.held(person), before + received - received / 4n)
    await users.pool.move(1.0)
    assert.equal((await users.firedTask(person, 'hook_execute', 2)).outcome, 'executed')
    assert.equal(await users.held(person), before)
    assert.deepEqual(await users.outstanding(person), [])
    const left = await person.call<{ holdings: HoldingView[] }>('GET /v1/holdings?chain_type=evm')
    const rest = left.body.holdings.find(({ chain_id, symbol }) => chain_id === base && symbol === 'AERO')!
    assert.ok(Math.abs(Number(rest.cost_basis_usd) - 50) < 1, JSON.stringify(rest))
    assert.ok(Number(rest.realized_pnl_usd) < -1, JSON.stringify(rest))
  })

  test('a swap that fails, or is refused, arms none and cancels none', async () => {
    const person = await users.holder('50')
    const [stop] = await users.leave(person, { stop_losses: [{ price_usd: '0.5' }] })
    const units = await users.held(person)
    const bridge = {
      chain_id_in: base,
      chain_id_out: arbitrum,
      token_in: 'AERO',
      token_out: 'WETH',
      amount: String(units / 2n),
      ...legs,
      cancel_conditional_orders: true,
    }
    const huge = { ...bridge, amount: String(units * 2n) }
    assert.equal((await refusalOf(person, huge))[0], 'insufficient_balance')
    const dry = (await swapOf(person, { ...bridge, dryrun: true })).body as WithHooks
    assert.deepEqual(dry.cancelled_hook_ids, [stop!.id])
    await users.world.solver('/force', { failReason: 'SLIPPAGE' })
    const { body: failed } = await swapOf(person, bridge)
    assert.deepEqual([failed.status, failed.error?.code], ['failed', 'refunded'], JSON.stringify(failed))
    const { hooks, result } = failed as WithHooks
    assert.deepEqual([hooks.map(({ id }) => id), result.hook_ids], [[null, null, null], undefined])
    assert.deepEqual(
      (await users.outstanding(person)).map(({ id }) => id),
      [stop!.id],
    )
  })

  test('a bridge arms them on the chain where the token arrives', async () => {
    const person = await users.newPerson()
    const body = { ...buy, chain_id_out: arbitrum, token_out: 'WETH', stop_loss: legs.stop_loss }
    const done = await bought(person, body)
    const [hook] = await users.outstanding(person)
    assert.deepEqual(
      [hook?.chain_id, hook?.amount, hook?.id],
      [arbitrum, done.result.amount_out, done.result.hook_ids![0]],
    )
  })

  test('it cancels the hooks on the token that it sells and no others, once it has completed', async () => {
    const person = await users.holder('60')
    const units = await users.held(person)
    const hooks = await users.leave(person, { stop_losses: [{ price_usd: '0.5' }, { price_usd: '0.4' }] })
    const ether = await bought(person, { ...buy, token_out: 'WETH', stop_loss: { price_percentage: '0.5' } })
    const order = await person.call<{ result: { order: { limit_order_id: string } } }>(
      'POST /v1/limit-orders?wait=true',
      {
        body: {
          chain_id_in: base,
          token_in: 'AERO',
          token_out: 'USDC',
          trigger_token_address: 'AERO',
          amount: '1000000000000000000',
          price_usd_trigger: '9',
          condition: 'gte',
        },
      },
    )
    const sale = { chain_id_in: base, token_in: 'AERO', token_out: 'USDC', amount: String(units / 2n) }
    const left = await bought(person, sale)
    assert.deepEqual(left.cancelled_hook_ids, [])
    assert.equal((await users.outstanding(person)).length, 4)
    const done = await bought(person, {
      ...sale,
      amount: String(units / 4n),
      cancel_conditional_orders: true,
    })
    const ids = hooks.map(({ id }) => id).sort()
    assert.deepEqual(done.cancelled_hook_ids.toSorted(), ids)
    assert.deepEqual(done.result.cancelled_hook_ids?.toSorted(), ids)
    assert.deepEqual(
      (await users.outstanding(person)).map(({ id }) => id).sort(),
      [ether.result.hook_ids![0]!, order.body.result.order.limit_order_id].sort(),
    )
    assert.deepEqual((await users.events(person, 'hook.cancelled')).map(({ data }) => data.id).sort(), ids)
  })

  test('a leg that could not be armed is refused by its name, live and in a dry run, before anything moves', async () => {
    const person = await users.newPerson()
    const stop = { stop_loss: { price_percentage: '0.1' } }
    const cases: [body: object, type: string, where: RegExp][] = [
      [
        { ...buy, stop_loss: { price_percentage: '1' } },
        'fraction_expected',
        /^body\.stop_loss\.price_percentage$/,
      ],
      [
        { ...buy, take_profit: [{ price_percentage: '0.1' }, { price_percentage: '11' }] },
        'fraction_expected',
        /^body\.take_profit\.1\.price_percentage$/,
      ],
      [{ ...buy, stop_loss: [{}] }, 'exactly_one_of', /^body\.stop_loss\.0\./],
      [{ ...buy, stop_loss: { price_usd: '1.5' } }, 'less_than', /^body\.stop_loss\.price_usd$/],
      [{ ...buy, take_profit: { price_usd: '1.1' } }, 'greater_than', /^body\.take_profit\.price_usd$/],
      [
        { ...buy, chain_id_out: solana, token_out: 'USDC', ...stop },
        'unsupported_asset',
        /^body\.stop_loss$/,
      ],
      [
        { chain_id_in: base, token_in: 'DAI', token_out: 'USDC', amount_usd: '5', ...stop },
        'unsupported_asset',
        /^body\.stop_loss$/,
      ],
    ]
    await users.world.fund(base, person.evm, 'DAI', '10')
    for (const [body, type, where] of cases)
      for (const dryrun of [true, false]) {
        const [found, at] = await refusalOf(person, { ...body, dryrun })
        assert.deepEqual([found, where.test(at!)], [type, true], `${JSON.stringify(body)}: ${found} at ${at}`)
      }
    assert.equal(await swapCount(person), 0)
  })

  test('together with open orders they stay within the limit, however many requests come at once', async () => {
    const person = await users.holder('100')
    const ten = Array.from({ length: 10 }, (_, n) => ({ price_usd: String(0.1 + n / 100) }))
    for (let n = 0; n < 19; n++) await users.leave(person, { stop_losses: ten, oco: false })
    const small = { ...buy, amount: '2000000' }
    const four = { stop_loss: ten.slice(0, 2), take_profit: [{ price_usd: '7' }, { price_usd: '8' }] }
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        n % 2 === 0
          ? swapOf(person, { ...small, ...four })
          : person.call<Refusal>('POST /v1/hooks', {
              body: { chain_id: base, token_address: 'AERO', stop_losses: ten.slice(0, 4), oco: false },
            }),
      ),
    )
    const statuses = replies.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 200).length, 2, JSON.stringify(replies))
    for (const { status, body } of replies)
      if (status !== 200) assert.equal((body as { code?: string }).code, 'conflict')
    assert.equal((await users.outstanding(person)).length, 198)
    const [code, detail] = await refusalOf(person, { ...small, ...four, dryrun: true })
    assert.equal(code, 'conflict')
    assert.match(detail!, /`stop_loss\.0`/)
    await person.call('DELETE /wallet/outstanding-orders', { body: { all: true } })
  })
})
