/** kill -9 at the boundaries of a swap that leaves hooks, and of a hook that fires: armed once, sold once. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { eventually, type Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { poolOf } from '../journeys/pools.ts'
import { createFundedPerson, type SwapBody, solanaHeld } from '../journeys/swap-users.ts'
import type { Person } from '../journeys/users.ts'
import { base, solana, type World, worldOf } from '../journeys/world.ts'
import { isNightly, isShort } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { killAtSample } from './failpoints.ts'
import { createLeaseMover } from './market-lease.ts'

const taskPointPattern =
  /^(db:(task_accept|task_step|task_reserve|user_event_append|update nonce_sequence|select task|begin|commit|select effect|update cost_basis|insert cost_basis|insert trigger_order|update trigger_order|trigger_fire_crossed|select trigger_order)|net:(base|solana|relay):)/
const pointsMax = isNightly ? Number.POSITIVE_INFINITY : 8
const env = {
  LIFI_URL: 'off',
  LEASE_MS: '500',
  SPONSOR_USER_DAY: '5',
  SOLANA_SPONSOR_USER_DAY: '1',
  POLICY_DAY_USD_MAX: '10000000',
}
const [high, low] = [1.2, 1.0]
const claimWithinMs = 6_000

type Answer = SwapBody & {
  result: SwapBody['result'] & { hook_ids?: string[]; cancelled_hook_ids?: string[] }
}

let app: CrashApp
let survivor: Gateway
let world: World
let pool: ReturnType<typeof poolOf>
let person: Person
const others = new Set<Gateway>()

const launch = async (failpoint: Record<string, string>) => {
  const gateway = await app.gateway({ ...env, ORDER_QUOTES_PER_MINUTE: '6000', ...failpoint })
  others.add(gateway)
  return gateway
}
before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway({ ...env, ORDER_QUOTES_PER_MINUTE: '6000' })
  world = await worldOf(app.control)
  pool = poolOf(world, 'AERO')
  await pool.move(high)
  person = await createFundedPerson(survivor.url)
})
after(async () => {
  survivor?.child.kill('SIGCONT')
  await Promise.all([...others].map((gateway) => gateway.kill()))
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

const swap = (body: object, key: string, at = survivor.url) =>
  person.call<Answer>('POST /v1/swap?wait=true&timeout=60', { body, key, at })

/** A short run kills one swap and one hook. */
const testInFull = isShort ? () => undefined : test

test('a swap that is killed at any point arms its hooks once, and cancels those on what it sold', async (t) => {
  const buy = { chain_id_in: base, token_in: 'USDC', token_out: 'AERO', amount: '20000000' }
  const sell = {
    chain_id_in: base,
    token_in: 'AERO',
    token_out: 'WETH',
    amount: '5000000000000000000',
    stop_loss: [
      { price_percentage: '0.5', sell_percentage: '0.5' },
      { price_percentage: '0.6', sell_percentage: '0.5' },
    ],
    take_profit: { price_percentage: '5' },
    cancel_conditional_orders: true,
  }
  const armed = new Set<string>()
  let runs = 0
  const run = async (at: string, victim: Gateway, arm: () => void): Promise<boolean> => {
    const { body: bought } = await swap({ ...buy, stop_loss: { price_percentage: '0.9' } }, `buy-${runs}`)
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    arm()
    const first = await swap(sell, `sell-${runs}`, victim.url).catch(() => undefined)
    const died = victim.child.signalCode === 'SIGKILL' || first === undefined
    const { body: done } = await swap(sell, `sell-${runs}`)
    runs += 1
    assert.equal(done.outcome, 'executed', `${at}: ${JSON.stringify(done)}`)
    assert.deepEqual(done.result.cancelled_hook_ids, bought.result.hook_ids, at)
    for (const id of done.result.hook_ids!) armed.add(id)
    assert.equal(armed.size, 3 * runs, at)
    const { rows } = await app.admin.query<{ id: string; status: string }>(
      `select id, status from trigger_order where input ->> 'symbol' = 'WETH' and status = 'armed'`,
    )
    assert.deepEqual(new Set(rows.map(({ id }) => id)), armed, at)
    return died
  }
  const needed = [/task_step:after/, /insert trigger_order:after/]
  const suite = 'points of a swap with hooks'
  const reached = await killAtSample({
    suite,
    pattern: taskPointPattern,
    needed,
    shortPoint: 'db:insert trigger_order:after',
    max: pointsMax,
    launch,
    run,
  })
  assert.equal(await ledgerDrift(app.admin), 0)
  t.diagnostic(`${reached}, ${runs} swaps with ${armed.size} hooks armed once`)
})

type Left = { id: string; units: string }
type Place = {
  /** Of the purchase that the order sells. */
  chainId: string
  /** Of the task that sells. */
  kind: 'hook_execute' | 'limit_order_execute'
  symbol: string
  market: string
  high: number
  low: number
  move(dollars: number): Promise<unknown>
  held(): Promise<bigint>
  needed: readonly RegExp[]
}

test('a hook that is killed at any point between its price and its sale sells once', (t) =>
  killWhileFiring(t, {
    chainId: base,
    kind: 'hook_execute',
    symbol: 'AERO',
    market: `token:${base}:${pool.token.toLowerCase()}`,
    high,
    low,
    move: pool.move,
    held: () => world.balance(base, person.evm, pool.token),
    needed: [/task_step:after/, /net:base:after/, /update trigger_order:after/],
  }))

testInFull('a hook on Solana that is killed at any of these points sells once', (t) =>
  killWhileFiring(t, {
    chainId: solana,
    kind: 'hook_execute',
    symbol: 'JUP',
    market: `token:${solana}:${world.manifest.tokens[solana]!.find(({ symbol }) => symbol === 'JUP')!.mint}`,
    high: 0.8,
    low: 0.66,
    move: (dollars) => world.price({ symbol: 'JUP', price_usd: String(dollars) }),
    held: () => solanaHeld(world, person.solana, 'JUP'),
    needed: [/task_step:after/, /net:solana:after/, /update trigger_order:after/],
  }),
)

testInFull('a limit order that is killed at any point between its price and its sale sells once', (t) =>
  killWhileFiring(t, {
    chainId: base,
    kind: 'limit_order_execute',
    symbol: 'AERO',
    market: `token:${base}:${pool.token.toLowerCase()}`,
    high,
    low,
    move: pool.move,
    held: () => world.balance(base, person.evm, pool.token),
    needed: [/task_step:after/, /net:base:after/, /update trigger_order:after/],
  }),
)

/** An order that sells what a purchase brought, once the price has fallen. */
async function leaveOrder(
  { chainId, kind, symbol, high, low }: Place,
  { key, at }: { key: string; at: string },
): Promise<Left> {
  const isHook = kind === 'hook_execute'
  const { body: bought } = await swap(
    {
      chain_id_in: chainId,
      token_in: 'USDC',
      token_out: symbol,
      amount: '20000000',
      ...(isHook && { stop_loss: { price_percentage: '0.1' } }),
    },
    key,
  )
  const units = bought.result?.amount_out
  assert.ok(units, `${at}: ${JSON.stringify(bought)}`)
  if (isHook) return { id: bought.result.hook_ids![0]!, units }
  const { body: made } = await person.call<{ result: { order: { limit_order_id: string } } }>(
    'POST /v1/limit-orders?wait=true',
    {
      body: {
        chain_id_in: chainId,
        token_in: symbol,
        token_out: 'USDC',
        trigger_token_address: symbol,
        amount: units,
        price_usd_trigger: String((high + low) / 2),
        condition: 'lte',
      },
      key: `order-${key}`,
      at: survivor.url,
    },
  )
  assert.ok(made.result?.order, `${at}: ${JSON.stringify(made)}`)
  return { id: made.result.order.limit_order_id, units }
}

async function killWhileFiring(t: TestContext, place: Place): Promise<void> {
  const { kind, market, move, held, needed } = place
  const moveLeaseToOther = await createLeaseMover({ admin: app.admin, market, survivor, claimWithinMs })
  type Sale = { status: string; outcome: string; amount_in: string }
  const saleOf = async (id: string) =>
    (
      await app.admin.query<Sale>(
        `select t.status, t.outcome, t.result ->> 'amount_in' as amount_in from task t
         where t.kind = $2 and t.data ->> 'trigger_order_id' = $1 and t.outcome = 'executed'`,
        [id, kind],
      )
    ).rows
  let sales = 0
  const run = async (at: string, gateway: Gateway, arm: () => void): Promise<boolean> => {
    const { id, units } = await leaveOrder(place, { key: `fire-${kind}-${place.symbol}-${sales}`, at })
    const before = await held()
    await moveLeaseToOther()
    arm()
    await move(place.low)
    const hasDied = () => gateway.child.signalCode !== null
    await eventually(
      async () => (hasDied() || (await saleOf(id)).length > 0 ? true : undefined),
      `${at}: it dies or sells`,
      30_000,
    )
    const died = hasDied()
    survivor.child.kill('SIGCONT')
    const [sale] = await eventually(
      async () => {
        const found = await saleOf(id)
        return found.length > 0 ? found : undefined
      },
      `${at}: the sale has ended`,
      60_000,
    )
    await move(place.high)
    sales += 1
    assert.equal((await saleOf(id)).length, 1, at)
    assert.equal(sale!.amount_in, units, at)
    assert.equal(await held(), before - BigInt(sale!.amount_in), at)
    return died
  }
  const suite = `points of a ${kind} on ${place.symbol}`
  const reached = await killAtSample({
    suite,
    pattern: taskPointPattern,
    needed,
    shortPoint: 'db:task_step:after',
    max: pointsMax,
    launch,
    run,
  })
  assert.equal(await ledgerDrift(app.admin), 0)
  t.diagnostic(`${reached}, ${sales} orders that fired and sold once`)
}
