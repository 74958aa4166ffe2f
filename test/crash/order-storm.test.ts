/** Orders that a walking price reaches while instances are killed: each sells once or is cancelled, never both. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import { eventually } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { poolOf } from '../journeys/pools.ts'
import { createFundedPerson, executed, solanaHeld } from '../journeys/swap-users.ts'
import type { Person } from '../journeys/users.ts'
import { base, solana, worldOf } from '../journeys/world.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { createCrashApp } from './crash-app.ts'
import { createGatewayPool } from './gateway-pool.ts'
import { randomOf } from './venue-traders.ts'

const users = bySize({ short: 2, full: 6, nightly: 50 })
/** Half of them on Base, half on Solana. */
const ordersPerUser = bySize({ short: 8, full: 20, nightly: 20 })
const killMs = { min: 1_500, max: 4_000 }
/** On a busy machine an instance may die before it has done anything. */
const killsMax = bySize({ short: 8, full: 16, nightly: 1_000 })
/** Time in which the price stays at each step of its walk. */
const stepMs = bySize({ short: 1_000, full: 2_000, nightly: 8_000 })
const endMsMax = bySize({ short: 90_000, full: 180_000, nightly: 1_200_000 })
const cancelPauseMs = bySize({ short: 3_000, full: 2_000, nightly: 2_000 })
const cancelsMax = (users * ordersPerUser) / 3
const peopleAtOnce = 5

const startPrice = 1.2
/** Up through every profit and down through every stop; the last price of either way stays until all have sold. */
const walk = [1.3, 1.42, 1.36, 1.5, 1.15, 1.02, 1.08, 0.9]
const profits = [1.25, 1.45]
const stops = [0.95, 1.14]
/** Of the balance of its time. */
const soldPart = '0.02'

type Hook = { id: string }
type Sale = { order_id: string; chain_id: string; amount_in: string; amount_out: string; tx_hash: string }
type Refund = { order_id: string; chain_id: string; cost: string }
type Cancelled = { cancelled: string[] }

test(`${users * ordersPerUser} orders fire once each or are cancelled while instances die`, async (t) => {
  const seed = proofSeed('order storm')
  const app = await createCrashApp()
  const pool = createGatewayPool(() =>
    app.gateway({
      LEASE_MS: '1000',
      SPONSOR_USER_DAY: '5',
      SOLANA_SPONSOR_USER_DAY: '1',
      POLICY_DAY_USD_MAX: '10000000',
      ORDER_QUOTES_PER_MINUTE: '6000',
    }),
  )
  t.after(async () => {
    await pool.close()
    await app[Symbol.asyncDispose]()
  })
  await pool.fillAll()
  const world = await worldOf(app.control)
  const market = poolOf(world, 'AERO')
  const moveAll = async (dollars: number) => {
    await market.move(dollars)
    await world.price({ symbol: 'JUP', price_usd: String(dollars) })
  }
  await moveAll(startPrice)
  const heldOf = ({ evm, solana: owner }: Person) => ({
    [base]: { tokens: () => world.balance(base, evm, market.token), dollars: () => world.usdcOf(evm) },
    [solana]: {
      tokens: () => solanaHeld(world, owner, 'JUP'),
      dollars: () => solanaHeld(world, owner, 'USDC'),
    },
  })
  const random = randomOf(seed)
  const { url } = pool.ready()[0]!

  const legsBetween = ([low, high]: number[], count: number) =>
    Array.from({ length: count }, () => ({
      price_usd: (low! + random() * (high! - low!)).toFixed(4),
      sell_percentage: soldPart,
    }))
  const armAll = async () => {
    const person = await createFundedPerson(url)
    const ids: string[] = []
    const held: { chainId: typeof base | typeof solana; tokens: bigint; dollars: bigint }[] = []
    for (const [chainId, token] of [
      [base, 'AERO'],
      [solana, 'JUP'],
    ] as const) {
      await executed(person, { chain_id_in: chainId, token_in: 'USDC', token_out: token, amount_usd: '1000' })
      const { status, body } = await person.call<{ hooks: Hook[] }>('POST /v1/hooks', {
        body: {
          chain_id: chainId,
          token_address: token,
          oco: false,
          take_profits: legsBetween(profits, ordersPerUser / 4),
          stop_losses: legsBetween(stops, ordersPerUser / 4),
        },
      })
      assert.equal(status, 200, JSON.stringify(body))
      ids.push(...body.hooks.map(({ id }) => id))
      const of = heldOf(person)[chainId]
      held.push({ chainId, tokens: await of.tokens(), dollars: await of.dollars() })
    }
    return { person, ids, held }
  }
  const people: Awaited<ReturnType<typeof armAll>>[] = []
  for (let n = 0; n < users; n += peopleAtOnce)
    people.push(...(await Promise.all(Array.from({ length: Math.min(peopleAtOnce, users - n) }, armAll))))

  const startedMs = performance.now()
  let isOver = false
  const killing = (async () => {
    while (!isOver && pool.kills() < killsMax) {
      await delay(killMs.min + random() * (killMs.max - killMs.min))
      if (!isOver) pool.killOne()
    }
  })()

  /** Repeats a cancel under its key until an instance has answered. */
  const cancel = async (person: Person, id: string, key: string): Promise<boolean> => {
    let last: unknown
    const answer = await eventually(
      async () => {
        const ready = pool.ready()
        const gateway = ready[Math.floor(random() * ready.length)]
        const reply =
          gateway &&
          (await person
            .call<Cancelled>('DELETE /wallet/outstanding-orders', {
              body: { outstanding_order_ids: [id] },
              key,
              at: gateway.url,
            })
            .catch((error: unknown) => {
              last = error
            }))
        if (reply) last = reply
        return reply?.status === 200 ? reply.body : undefined
      },
      `the cancel of ${id} is answered`,
      60_000,
    ).catch((cause: unknown) => {
      throw new Error(`the last answer: ${inspect(last)}`, { cause })
    })
    return answer.cancelled.includes(id)
  }
  const cancelled = new Set<string>()
  let cancels = 0
  const cancelling = (async () => {
    while (!isOver && cancels < cancelsMax) {
      const { person, ids } = people[Math.floor(random() * people.length)]!
      const id = ids[Math.floor(random() * ids.length)]!
      if (await cancel(person, id, `storm-${cancels++}`)) cancelled.add(id)
      await delay(cancelPauseMs * random())
    }
  })()

  const openCount = async (directions: string[]) => {
    const { rows } = await app.admin.query<{ count: number }>(
      `select count(*)::integer as count from trigger_order o left join task_queue q on q.task_id = o.task_id
       where o.kind = 'hook_execute' and o.direction = any($1)
         and (o.status in ('waiting', 'armed') or q.task_id is not null)`,
      [directions],
    )
    return rows[0]!.count
  }
  const walkThrough = async (prices: readonly number[], direction: string) => {
    for (const price of prices) {
      await moveAll(price)
      await delay(stepMs)
    }
    await eventually(
      async () => ((await openCount([direction])) === 0 ? true : undefined),
      `all ${direction} orders have sold or are cancelled`,
      endMsMax,
    )
  }
  try {
    await walkThrough(walk.slice(0, 4), 'gte')
    await walkThrough(walk.slice(4), 'lte')
  } finally {
    isOver = true
  }
  await Promise.all([killing, cancelling])
  const seconds = (performance.now() - startedMs) / 1_000
  await pool.fillAll()

  const { rows: orders } = await app.admin.query<{ id: string; status: string; attempts: number }>(
    `select id, status, attempts from trigger_order where kind = 'hook_execute'`,
  )
  const { rows: sales } = await app.admin.query<Sale>(
    `select data ->> 'trigger_order_id' as order_id, data -> 'origin' ->> 'chain_id' as chain_id, result ->> 'amount_in' as amount_in,
       result ->> 'amount_out' as amount_out, result ->> 'tx_hash' as tx_hash
     from task where kind = 'hook_execute' and status = 'completed'`,
  )
  // A deposit whose price had moved comes back, and its order fires again.
  const { rows: refunds } = await app.admin.query<Refund>(
    `select data ->> 'trigger_order_id' as order_id, data -> 'origin' ->> 'chain_id' as chain_id,
       ((result ->> 'amount_in')::numeric - (result -> 'refunded' ->> 'amount')::numeric)::text as cost
     from task where kind = 'hook_execute' and status = 'failed' and result -> 'refunded' ->> 'amount' is not null`,
  )
  assert.equal(orders.length, users * ordersPerUser)
  const soldIds = sales.map(({ order_id }) => order_id)
  assert.equal(new Set(soldIds).size, sales.length, 'an order has sold twice')
  assert.equal(new Set(sales.map(({ tx_hash }) => tx_hash)).size, sales.length)
  const sold = new Set(soldIds)
  for (const { id, status } of orders) {
    assert.ok(sold.has(id) !== (status === 'cancelled'), `${id} is ${status}, sold: ${sold.has(id)}`)
    assert.ok(!(sold.has(id) && cancelled.has(id)), `${id} was cancelled and has sold`)
  }
  const sum = (amounts: string[]) => amounts.reduce((total, each) => total + BigInt(each), 0n)
  for (const { person, ids, held } of people)
    for (const { chainId, tokens, dollars } of held) {
      const isOwn = ({ order_id, chain_id }: Pick<Sale, 'order_id' | 'chain_id'>) =>
        ids.includes(order_id) && chain_id === chainId
      const own = sales.filter(isOwn)
      const spent = [
        ...own.map(({ amount_in }) => amount_in),
        ...refunds.filter(isOwn).map(({ cost }) => cost),
      ]
      const of = heldOf(person)[chainId]
      assert.equal(await of.tokens(), tokens - sum(spent), chainId)
      assert.equal(await of.dollars(), dollars + sum(own.map(({ amount_out }) => amount_out)), chainId)
    }
  assert.equal(await ledgerDrift(app.admin), 0)
  assert.ok(cancelled.size > 0 && sales.length > orders.length / 3, `${sales.length} of ${orders.length}`)
  const repeated = orders.filter(({ attempts }) => attempts > 1).length
  t.diagnostic(
    `${orders.length} orders: ${sales.length} sold once, ${orders.length - sales.length} cancelled (${cancels} cancels), ${repeated} fired more than once before they sold, ${refunds.length} refunds; ${pool.kills()} kills in ${seconds.toFixed(0)} s`,
  )
})
