/** Hooks and limit orders on Solana, whose users have no SOL, while the prices of the world move. */
import assert from 'node:assert/strict'
import { afterEach, before, describe, test } from 'node:test'
import { dataFolder, eventually, launch } from '../harness/gateway.ts'
import {
  firesWithinMs,
  type Hook,
  type Order,
  type OrderUsers,
  orderUsers,
  type Refusal,
} from './order-users.ts'
import { assertMeasured, balancesOf, executed, type SwapBody, solanaHeld } from './swap-users.ts'
import type { Person } from './users.ts'
import { base, solana } from './world.ts'

/** The gateway may remember a price for some seconds: those of a test differ by less than a route may lose. */
const prices = { BONK: '0.00002', JUP: '0.8', SOL: '180' }
const bonk = { chain_id: 'solana', token_address: 'BONK' }
const buyBonk = { chain_id_in: solana, token_in: 'USDC', token_out: 'BONK', amount: '40000000' }
type Armed = SwapBody & {
  result: SwapBody['result'] & { hook_ids: string[]; cancelled_hook_ids: string[] }
}

describe('orders on Solana', () => {
  let users: OrderUsers
  before(async () => {
    users = await orderUsers()
  })
  const display = (symbol: keyof typeof prices, dollars: string) =>
    users.world.price({ symbol, price_usd: dollars })
  afterEach(async () => {
    await users.world.heal()
    for (const symbol of ['BONK', 'JUP', 'SOL'] as const) await display(symbol, prices[symbol])
  })
  const held = (person: Person, symbol: string) => solanaHeld(users.world, person.solana, symbol)
  const order = async (person: Person, body: object) => {
    const reply = await person.call<{ status: string; result: { order: Order } }>(
      'POST /v1/limit-orders?wait=true',
      { body },
    )
    assert.equal(reply.body.status, 'completed', JSON.stringify(reply.body))
    return reply.body.result.order.limit_order_id
  }
  const orderOf = async (person: Person, id: string) =>
    (await person.call<Order>(`GET /v1/limit-orders/${id}`)).body
  type Holding = { symbol: string; outstanding_orders: string[]; avg_entry_price_usd: string | null }
  const holdingOf = async (person: Person, symbol: string) => {
    const { body } = await person.call<{ holdings: Holding[] }>(
      'GET /v1/holdings?chain_type=solana&event=wallet-refresh',
    )
    return body.holdings.find((each) => each.symbol === symbol)!
  }

  test('a stop-loss counted from the entry sells once, for a user without SOL, and ends its take-profit', async () => {
    const person = await users.newPerson()
    const before = await balancesOf(users.world, person)
    const bought = await executed(person, buyBonk)
    assert.equal(await held(person, 'SOL'), 0n)
    const [stop, profit] = await users.leave(person, {
      ...bonk,
      stop_losses: [{ price_percentage: '0.1' }],
      take_profits: [{ price_percentage: '0.5' }],
    })
    const paid = 40 / (Number(bought.result.amount_out) / 1e5)
    assert.ok(Math.abs(Number(stop!.reference_price_usd) / paid - 1) < 1e-9, JSON.stringify(stop))
    assert.ok(Math.abs(Number(stop!.trigger_price_usd) / (paid * 0.9) - 1) < 1e-6, JSON.stringify(stop))
    const shown = await holdingOf(person, 'BONK')
    assert.deepEqual(shown.outstanding_orders.toSorted(), [stop!.id, profit!.id].sort())
    assert.ok(Math.abs(Number(shown.avg_entry_price_usd) / paid - 1) < 1e-5, JSON.stringify(shown))
    await display('BONK', '0.0000165')
    const sold = (await users.firedTask(person, 'hook_execute')) as unknown as SwapBody
    assert.deepEqual([sold.status, sold.outcome], ['completed', 'executed'], JSON.stringify(sold))
    assert.equal(sold.result.amount_in, bought.result.amount_out)
    await assertMeasured(users.world, person, before, [bought, sold])
    assert.deepEqual([await held(person, 'BONK'), await held(person, 'SOL')], [0n, 0n])
    assert.deepEqual(await users.outstanding(person), [])
    assert.equal((await users.tasksOfKind(person, 'hook_execute')).length, 1)
    const reported = (await users.events(person, 'hook.')).map(({ type, data }) => [type, data.id])
    assert.deepEqual(
      reported.sort(),
      [
        ['hook.created', profit!.id],
        ['hook.created', stop!.id],
        ['hook.triggered', stop!.id],
        ['hook.cancelled', profit!.id],
        ['hook.filled', stop!.id],
      ].sort(),
    )
  })

  test('limit orders buy on Solana, also from another chain and to it, and one that was cancelled does not', async () => {
    const person = await users.newPerson()
    const before = await balancesOf(users.world, person)
    const jup = { token_in: 'USDC', token_out: 'JUP', amount: '30000000', condition: 'lte' }
    const inside = await order(person, { ...jup, chain_id_in: solana, price_usd_trigger: '0.7' })
    const bridged = await order(person, {
      ...jup,
      chain_id_in: base,
      chain_id_out: solana,
      price_usd_trigger: '0.7',
    })
    const cancelled = await order(person, { ...jup, chain_id_in: solana, price_usd_trigger: '0.72' })
    const home = await order(person, {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'JUP',
      token_out: 'USDC',
      trigger_token_chain: solana,
      trigger_token_address: 'JUP',
      amount: '50000000',
      condition: 'gte',
      price_usd_trigger: '0.95',
    })
    const elsewhere = await order(person, {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'WETH',
      trigger_token_chain: solana,
      trigger_token_address: 'JUP',
      amount: '25000000',
      condition: 'gte',
      price_usd_trigger: '0.95',
    })
    const waiting = await users.outstanding(person)
    assert.deepEqual(waiting.map(({ id }) => id).sort(), [inside, bridged, cancelled, home, elsewhere].sort())
    assert.deepEqual(
      (await holdingOf(person, 'USDC')).outstanding_orders.toSorted(),
      [inside, cancelled].sort(),
    )
    assert.deepEqual((await holdingOf(person, 'JUP')).outstanding_orders, [home])
    assert.equal((await person.call(`DELETE /v1/limit-orders/${cancelled}`)).status, 200)
    const done = (id: string) =>
      eventually(
        async () => {
          const now = await orderOf(person, id)
          return now.status === 'executed' ? now : undefined
        },
        'the order has executed',
        firesWithinMs,
      )
    await display('JUP', '0.65')
    const bought = [await done(inside), await done(bridged)]
    for (const each of bought) assert.ok(Number(each.avg_price_usd) <= 0.7, JSON.stringify(each))
    await display('JUP', '1.05')
    const sold = await done(home)
    assert.ok(Number(sold.avg_price_usd) >= 0.95, JSON.stringify(sold))
    const all = [...bought, sold, await done(elsewhere)]
    const tasks = await Promise.all(all.map(({ task_id }) => person.task(task_id!)))
    await assertMeasured(users.world, person, before, tasks as unknown as SwapBody[])
    assert.equal((await orderOf(person, cancelled)).status, 'cancelled')
    assert.equal((await users.tasksOfKind(person, 'limit_order_execute')).length, all.length)
    assert.equal(await held(person, 'SOL'), 0n)
  })

  test('a swap leaves hooks on what it buys on Solana, and cancels those on what it sells there', async () => {
    const person = await users.newPerson()
    const stop = { stop_loss: { price_percentage: '0.1' } }
    const bought = (await executed(person, { ...buyBonk, ...stop })) as Armed
    const [left] = await users.outstanding(person)
    assert.deepEqual(
      [left?.id, left?.chain_id, left?.amount],
      [bought.result.hook_ids[0], solana, bought.result.amount_out],
    )
    const sale = { chain_id_in: solana, token_in: 'BONK', token_out: 'USDC', amount: '50000000000' }
    const sold = (await executed(person, { ...sale, cancel_conditional_orders: true })) as Armed
    assert.deepEqual(sold.result.cancelled_hook_ids, [left!.id])
    const bridge = { chain_id_in: base, chain_id_out: solana, token_in: 'USDC', token_out: 'BONK', ...stop }
    const bridged = (await executed(person, { ...bridge, amount: '20000000' })) as Armed
    const units = await held(person, 'BONK')
    await display('BONK', '0.0000165')
    const fired = (await users.firedTask(person, 'hook_execute')) as unknown as SwapBody
    assert.equal(fired.result.amount_in, bridged.result.amount_out, JSON.stringify(fired))
    // What was held before stays.
    assert.equal(await held(person, 'BONK'), units - BigInt(bridged.result.amount_out))
    assert.equal((await users.tasksOfKind(person, 'hook_execute')).length, 1)
  })

  test('a trailing stop follows SOL up, and sells it to the last lamport', async () => {
    const person = await users.newPerson()
    const buySol = { chain_id_in: solana, token_in: 'USDC', token_out: 'SOL', amount: '50000000' }
    const bought = await executed(person, buySol)
    const [trailing] = await users.leave(person, {
      chain_id: solana,
      token_address: 'SOL',
      trailing_percentage: '0.1',
    })
    assert.equal(trailing?.type, 'trailing')
    await display('SOL', '220')
    await eventually(
      async () => (Number((await users.outstanding(person))[0]?.trigger_price_usd) > 196 ? true : undefined),
      'the stop has followed',
      firesWithinMs,
    )
    await display('SOL', '190')
    const sold = (await users.firedTask(person, 'hook_execute')) as unknown as SwapBody
    assert.deepEqual([sold.outcome, sold.result.amount_in], ['executed', bought.result.amount_out])
    assert.equal(await held(person, 'SOL'), 0n)
  })

  test('a stop on nearly all SOL sells, and leaves what the account must hold', async () => {
    const person = await users.newPerson()
    const buySol = { chain_id_in: solana, token_in: 'USDC', token_out: 'SOL', amount: '50000000' }
    const bought = await executed(person, {
      ...buySol,
      stop_loss: { price_percentage: '0.1', sell_percentage: '0.999' },
    })
    await display('SOL', '155')
    const sold = (await users.firedTask(person, 'hook_execute')) as unknown as SwapBody
    assert.equal(sold.outcome, 'executed', JSON.stringify(sold))
    const left = BigInt(bought.result.amount_out) - BigInt(sold.result.amount_in)
    assert.deepEqual([left, await held(person, 'SOL')], [890_880n, 890_880n])
  })

  test('a stop sells under a kill switch, and however many other tokens were sent to the wallet', async () => {
    const person = await users.newPerson()
    // A wallet with too many token accounts: its node gives no list of them.
    await users.world.fault('solana', { status: 503, methods: ['getTokenAccountsByOwner'] })
    await users.leave(person, {
      chain_id: solana,
      token_address: 'JUP',
      stop_losses: [{ price_usd: '0.75' }],
    })
    assert.equal((await person.call('POST /v1/kill', { body: { on: true } })).status, 200)
    await display('JUP', '0.7')
    const sold = (await users.firedTask(person, 'hook_execute')) as unknown as SwapBody
    assert.deepEqual([sold.outcome, sold.result.amount_in], ['executed', '100000000'], JSON.stringify(sold))
  })

  test('what cannot work is refused by its field', async () => {
    const person = await users.newPerson()
    const refusalOf = async (route: string, body: object) => {
      const { status, body: reply } = await person.call<Refusal>(route, { body })
      return status === 422 ? [reply.detail[0]!.type, reply.detail[0]!.loc.join('.')] : [status, reply.code]
    }
    const hook = (body: object) => refusalOf('POST /v1/hooks', { ...bonk, reference: 'mark', ...body })
    const stop = { stop_losses: [{ price_percentage: '0.1' }] }
    const mint = users.world.manifest.tokens[solana]!.find(({ symbol }) => symbol === 'PLAIN')?.mint
    assert.ok(mint)
    assert.deepEqual(await hook(stop), [409, 'insufficient_balance'])
    assert.deepEqual(await hook({ ...stop, token_address: 'PYUSD', reference: 'entry' }), [
      409,
      'entry_unknown',
    ])
    const ofToken = ['unsupported_asset', 'body.token_address']
    assert.deepEqual(await hook({ ...stop, token_address: mint }), ofToken)
    assert.deepEqual(await hook({ ...stop, token_address: 'USDC' }), ofToken)
    assert.deepEqual(await hook({ stop_losses: [{ price_usd: '2' }], token_address: 'JUP' }), [
      'less_than',
      'body.stop_losses.0.price_usd',
    ])
    const limit = (body: object) =>
      refusalOf('POST /v1/limit-orders', {
        chain_id_in: solana,
        token_in: 'USDC',
        token_out: 'JUP',
        amount: '20000000',
        price_usd_trigger: '0.5',
        condition: 'lte',
        ...body,
      })
    assert.deepEqual(await limit({ amount: '20000000000' }), [409, 'insufficient_balance'])
    assert.deepEqual(await limit({ token_in: 'SOL', amount: '1000000000' }), [409, 'insufficient_balance'])
    assert.deepEqual(await limit({ token_in: mint }), ['unsupported_asset', 'body.token_in'])
    assert.deepEqual(await limit({ token_out: mint }), ['unsupported_asset', 'body.token_out'])
    assert.deepEqual(await limit({ trigger_token_address: mint }), [
      'unsupported_asset',
      'body.trigger_token_address',
    ])
    const hooks: Hook[] = await users.outstanding(person)
    assert.deepEqual(hooks, [])
  })

  test('where no provider sells on Solana an order there is refused by its chain', async () => {
    const person = await users.newPerson()
    using folder = dataFolder()
    const env = { ...users.world.env, DATA_DIR: folder.path, DATABASE_URL: users.gateway.databaseUrl }
    await using other = await launch({ env: { ...env, RELAY_URL: 'off' } })
    const refusalOf = async (route: string, body: object) => {
      const { body: reply } = await person.call<Refusal>(route, { body, at: other.url })
      return [reply.detail[0]?.type, reply.detail[0]?.loc?.join('.')]
    }
    const hook = { chain_id: solana, token_address: 'JUP', stop_losses: [{ price_usd: '0.1' }] }
    assert.deepEqual(await refusalOf('POST /v1/hooks', hook), ['unsupported_chain', 'body.chain_id'])
    const limit = { chain_id_in: base, chain_id_out: solana, token_in: 'USDC', token_out: 'JUP' }
    const at = { amount: '20000000', price_usd_trigger: '0.5', condition: 'lte' }
    assert.deepEqual(await refusalOf('POST /v1/limit-orders', { ...limit, ...at }), [
      'unsupported_chain',
      'body.chain_id_out',
    ])
  })
})
