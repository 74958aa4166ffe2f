/** What happened after a backup is on the chains alone: after a restore nothing moves twice, and an operator adopts it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { venueControl } from '../harness/venue-gateway.ts'
import { purchased } from './recharge-calls.ts'
import { createRestorable, worldUrl } from './restored.ts'
import { personWithApp } from './signed-in.ts'
import { balancesOf, personOf } from './swap-users.ts'
import { createFundedPerson, type Person, type Positions, type TaskBody } from './users.ts'
import { arbitrum, base, polygon, solana, worldOf } from './world.ts'

type Done = TaskBody & { result: { credits?: number } }
type Order = { limit_order_id: string; status: string; task_id: string | null }
type Hook = { id: string; status: string }

const friend = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const usdc = { token_in: 'USDC', token_out: 'USDC' }
/** Signed when the backup is made, and sent after it. */
const underWay = {
  'swap-under-way': { chain_id_in: base, token_in: 'USDC', token_out: 'ETH', amount: '21000000' },
  'sale-under-way': { ...usdc, chain_id_in: solana, chain_id_out: base, amount: '11000000' },
}
/** By their keys: requests of the time that is lost. */
const lost: Record<string, { path: string; body: object }> = {
  'swap-after': {
    path: '/v1/swap',
    body: { ...usdc, chain_id_in: base, chain_id_out: arbitrum, amount: '20000000' },
  },
  'sale-after': {
    path: '/v1/swap',
    body: { ...usdc, chain_id_in: solana, chain_id_out: base, amount: '10000000' },
  },
  'deposit-after': { path: '/v1/earn/deposit', body: { amount_usdc: '12' } },
  'recharge-after': { path: '/credits/onchain-recharge', body: { pack_id: '5', chain_id: base } },
  'recharge-in-sol': { path: '/credits/onchain-recharge', body: { pack_id: '10', chain_id: solana } },
  'transfer-after': {
    path: '/v1/wallets/transfer',
    body: { chain_id: base, token: 'USDC', amount: '5000000', recipient: friend },
  },
}
/** Its payment is returned by hand before it is repeated. */
const returned = { path: '/credits/onchain-recharge', body: { pack_id: '20', chain_id: base } }
const order = {
  chain_id_in: base,
  chain_id_out: solana,
  token_in: 'USDC',
  token_out: 'SOL',
  amount_usd: '25',
  price_usd_trigger: '170',
  condition: 'lte',
}
const bonk = { chain_id: 'solana', token_address: 'BONK' }

test('orders that fired, and requests, all after the backup, move nothing again after its restore', async () => {
  await using restorable = await createRestorable({
    COOLING_SECONDS: '2',
    ORDER_QUOTES_PER_MINUTE: '6000',
    RELAY_API_KEY: 'any',
  })
  let world = await worldOf(worldUrl(restorable.gateway()))
  const { person, app } = await personWithApp(restorable.gateway())
  for (const [chainId, address, token, amount] of [
    [base, app.evm, 'USDC', '500'],
    [base, app.evm, 'native', '0.1'],
    [solana, app.solana, 'USDC', '200'],
    [solana, app.solana, 'native', '1'],
  ] as const)
    await world.fund(chainId, address, token, amount)
  const send = (who: Person, path: string, body: object, key: string) =>
    who.call<Done>(`POST ${path}?wait=true&timeout=60`, { body, key })
  const executed = async (...given: Parameters<typeof send>) => {
    const { body: done } = await send(...given)
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
    return done
  }
  await person.call('POST /v1/recipients', {
    body: { label: 'Friend', agents: 'allowed', chain_id: base, address: friend },
  })
  const armed = await executed(app, '/v1/limit-orders', order, 'armed-before')
  const { limit_order_id: orderId } = (armed.result as unknown as { order: Order }).order
  await executed(
    app,
    '/v1/swap',
    { chain_id_in: solana, token_in: 'USDC', token_out: 'BONK', amount: '40000000' },
    'bought-before',
  )
  const left = await app.call<{ hooks: Hook[] }>('POST /v1/hooks', {
    body: {
      ...bonk,
      stop_losses: [{ price_percentage: '0.1' }],
      take_profits: [{ price_percentage: '0.5' }],
    },
  })
  assert.equal(left.status, 200, JSON.stringify(left.body))
  const orderOf = async (who: Person) => {
    const { body } = await who.call<Order & { order?: Order }>(`GET /v1/limit-orders/${orderId}`)
    return body.order ?? body
  }
  const openOrders = async (who: Person) =>
    (await who.call<{ outstanding_orders: Hook[] }>('GET /wallet/outstanding-orders')).body.outstanding_orders
  const effective = async () => {
    const { recipients } = (await app.call<{ recipients: { status: string }[] }>('GET /v1/recipients')).body
    return recipients.every(({ status }) => status === 'effective') || undefined
  }
  await eventually(effective, 'the recipient is effective', 20_000)

  // A request without a key that waits for its person when the backup is made.
  const { body: asked } = await app.call<TaskBody>('POST /v1/swap', {
    body: {
      ...usdc,
      chain_id_in: solana,
      chain_id_out: base,
      amount: '12000000',
      max_price_impact_bps: 2_501,
    },
  })
  const approve = async () => {
    const [waiting] = (await person.call<{ approvals: { approval_id: string }[] }>('GET /v1/approvals')).body
      .approvals
    assert.match((await person.decide(waiting!.approval_id)) ?? 'it does not wait', /^Approved/)
  }
  await world.fault(`evm:${base}`, { status: 503, methods: ['eth_sendRawTransaction'] })
  await world.fault('solana', { status: 503, methods: ['sendTransaction'] })
  const begun = new Map<string, string>()
  for (const [key, body] of Object.entries(underWay)) {
    const { body: task } = await app.call<TaskBody>('POST /v1/swap', { body, key })
    begun.set(key, task.task_id)
  }
  await restorable.backUp()
  await world.heal()

  const first = new Map<string, Done>()
  for (const [key, id] of begun) {
    const done = await app.ended(id, 60_000)
    assert.equal(done.outcome, 'executed', `${key} ${JSON.stringify(done)}`)
    first.set(key, done)
  }
  for (const [key, { path, body }] of Object.entries(lost))
    first.set(key, await executed(app, path, body, key))
  await approve()
  const approved = await app.ended(asked.task_id, 60_000)
  assert.equal(approved.outcome, 'executed', JSON.stringify(approved))
  const settled = await executed(app, returned.path, returned.body, 'returned-after')
  await world.price({ symbol: 'SOL', price_usd: '160' })
  await world.price({ symbol: 'BONK', price_usd: '0.0000165' })
  await eventually(
    async () =>
      ((await orderOf(app)).status === 'executed' && (await openOrders(app)).length === 0) || undefined,
    'the order and the stop were executed',
    60_000,
  )
  const moneyOf = async (who: Person) => ({
    wallets: await balancesOf(world, who),
    friend: await world.usdcOf(friend),
    credits: await purchased(who),
  })
  const held = await moneyOf(app)
  assert.equal(held.credits, 2_350)

  await restorable.restore()
  world = await worldOf(worldUrl(restorable.gateway()))
  const restored = await personOf(restorable.gateway().url, app)
  assert.equal(await purchased(restored), 0)
  assert.equal((await openOrders(restored)).length, 3, 'the order, the stop and the profit are armed again')
  const refused = await send(restored, '/v1/swap', lost['swap-after']!.body, 'swap-after')
  const { code, outcome } = refused.body
  assert.deepEqual([refused.status, code, outcome], [503, 'unavailable', 'unknown'], 'the chain has the swap')
  // Two chains whose nodes are silent: an operator goes on without one, and the other is compared once it answers.
  await world.fault(`evm:${polygon}`, { status: 503 })
  await world.fault('evm:1', { status: 503 })
  const found = await restorable.goOn({ silent: ['1', polygon] })
  await restorable.operator.act('its node is gone', 'time', 'resume', '--chain', polygon, '--unseen')
  await restorable.heldChains(['1'])
  await world.heal()
  await restorable.heldChains([])
  // Beside the requests under keys: the one that waited, the order, the stop and the payment. The nonce of the swap under
  // way was known; the sale under way is listed too, unless its block has the second of the backup.
  const listed = Object.keys(lost).length + 4
  assert.ok(found.length === listed || found.length === listed + 1, JSON.stringify(found))
  const adopted = (await restored.call<{ items: Done[] }>('GET /v1/tasks?kind=adopted')).body.items
  for (const key of ['deposit-after', 'recharge-after', 'transfer-after']) {
    const { result, balance_changes: changes } = first.get(key)!
    const same = adopted.find((each) => each.result.tx_hash === result.tx_hash)
    assert.deepEqual(sorted(same?.balance_changes), sorted(changes), key)
  }
  const { positions } = (await restored.call<Positions>('GET /v1/earn/positions')).body
  assert.deepEqual(
    positions.map(({ shares, external_delta_shares: delta }) => [shares, delta]),
    [['0', first.get('deposit-after')!.result.shares_delta]],
    'the first deposit of the user has a position that a sync fills',
  )
  await executed(restored, '/v1/earn/sync', {}, 'synced')

  await eventually(
    async () => (await orderOf(restored)).status === 'executed' || undefined,
    'the task of the order has found what it executed',
    60_000,
  )
  await eventually(
    async () => (await openOrders(restored)).length === 0 || undefined,
    'what fired has ended, and the other of its pair with it',
    60_000,
  )
  for (const [key, id] of begun) {
    const done = await restored.ended(id, 60_000)
    assert.equal(
      (await send(restored, '/v1/swap', underWay[key as keyof typeof underWay], key)).body.task_id,
      id,
    )
    assert.deepEqual(shown(done), shown(first.get(key)!), key)
  }
  await approve()
  const approvedAgain = await restored.ended(asked.task_id, 60_000)
  assert.deepEqual(shown(approvedAgain as Done), shown(approved as Done), JSON.stringify(approvedAgain))
  for (const [key, { path, body }] of Object.entries(lost)) {
    const again = await executed(restored, path, body, key)
    assert.deepEqual(shown(again), shown(first.get(key)!), key)
    assert.equal((await send(restored, path, body, key)).body.task_id, again.task_id, key)
  }
  const synced = (await restored.call<Positions>('GET /v1/earn/positions')).body.positions
  assert.deepEqual(
    synced.map(({ shares, external_delta_shares: delta }) => [shares, delta]),
    [[first.get('deposit-after')!.result.shares_delta, '0']],
    'the repeat of the deposit books nothing that the sync has booked',
  )
  const remaining = { ...held, credits: 950 }
  assert.deepEqual(await moneyOf(restored), remaining, 'nothing moved twice, and every credit is booked once')
  // What is not repeated is a stray payment; once it was returned, its repeat gives no credits.
  const { operator } = restorable
  type Stray = { chain_id: string; tx_hash: string; log_index: number; reason: string }
  const [stray] = await eventually(
    async () => {
      const strays = await operator.rows<Stray>('credit-payments', 'list')
      return strays.length > 0 ? strays : undefined
    },
    'the payment is listed',
    90_000,
  )
  assert.deepEqual([stray!.tx_hash, stray!.reason], [settled.result.tx_hash, 'unknown_task'])
  const name = [stray!.chain_id, stray!.tx_hash, String(stray!.log_index)]
  await operator.act('sent back', 'credit-payments', 'resolve', ...name)
  const refunded = (await send(restored, returned.path, returned.body, 'returned-after')).body
  assert.deepEqual([refunded.status, refunded.outcome], ['failed', 'partial'], JSON.stringify(refunded))
  assert.match(refunded.error!.message, /an operator has settled it: sent back/)
  assert.deepEqual(await moneyOf(restored), remaining)
  const { items } = (await restored.call<{ items: TaskBody[] }>('GET /v1/tasks?kind=adopted')).body
  assert.deepEqual(items, [], 'the repeats have taken the places of what was adopted of them')
  const next = await executed(restored, '/v1/swap', underWay['swap-under-way'], 'new')
  assert.notEqual(next.result.tx_hash, first.get('swap-under-way')!.result.tx_hash)
})

test('an order that was refunded, and tasks that had not signed, end after a restore as they had ended', async () => {
  await using restorable = await createRestorable({
    HYPERLIQUID_WEIGHT_PER_MINUTE: '0',
    LIFI_URL: 'off',
    ORDER_QUOTES_PER_MINUTE: '6000',
    RELAY_API_KEY: 'any',
  })
  let world = await worldOf(worldUrl(restorable.gateway()))
  let venue = venueControl(worldUrl(restorable.gateway()))
  const person = await createFundedPerson(restorable.gateway().url)
  await world.fund(base, person.evm, 'USDC', '500')
  await world.fund(solana, person.solana, 'USDC', '200')
  await world.fund(solana, person.solana, 'native', '1')
  await world.price({ symbol: 'POL', price_usd: '2' })
  await venue('POST', '/settings', { walking: false })
  const setPrices = async (hype: number) => {
    for (const [coin, price] of Object.entries({ '@1': hype, BTC: 100_000, ETH: 3_500 }))
      await venue('POST', '/price', { coin, price })
  }
  await setPrices(40)
  const executed = async (path: string, body: object) => {
    const done = (await person.call<Done>(`POST /v1/${path}?wait=true&timeout=60`, { body })).body
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    return done
  }
  const listedAs = async (kind: string) =>
    (await person.call<{ items: TaskBody[] }>(`GET /v1/tasks?kind=${kind}`)).body.items
  const firedOf = (kind: string) =>
    eventually(async () => (await listedAs(kind))[0], `${kind} has fired`, 60_000)

  const armed = await executed('limit-orders', {
    ...order,
    chain_id_out: polygon,
    token_out: 'POL',
    amount_usd: '400',
    price_usd_trigger: '1',
  })
  const { limit_order_id: orderId } = (armed.result as unknown as { order: Order }).order
  const orderOf = async (who: Person) => {
    const { body } = await who.call<Order & { order?: Order }>(`GET /v1/limit-orders/${orderId}`)
    const { status, attempts, failure_reason, tx_hash } = (body.order ?? body) as Order & {
      attempts: number
      failure_reason: string | null
      tx_hash: string | null
    }
    return { status, attempts, failure_reason, tx_hash }
  }
  await person.call('POST /v1/perp/setup?wait=true', { body: {} })
  await executed('perp/fund', { amount_usd: '100' })
  await executed('spot_venue/buy', { asset: 'HYPE', size: '1', sl_price: '35' })
  await executed('swap', {
    chain_id_in: solana,
    token_in: 'USDC',
    token_out: 'BONK',
    amount: '40000000',
  })
  await person.call('POST /v1/hooks', { body: { ...bonk, stop_losses: [{ price_percentage: '0.1' }] } })

  // The first attempt of the order executes nothing, because its price moves back while it reads the wallet.
  await world.fault(`evm:${base}`, { status: 503, methods: ['eth_call'] })
  await world.price({ symbol: 'POL', price_usd: '0.5' })
  const { task_id: firstId } = await firedOf('limit_order_execute')
  await world.price({ symbol: 'POL', price_usd: '2' })
  await world.heal()
  assert.equal((await person.ended(firstId, 60_000)).outcome, 'not_executed')
  // Two exits have fired, and wait for what they sell with.
  await venue('POST', '/faults', {
    endpoint: 'info',
    type: 'spotClearinghouseState',
    effect: 'status',
    status: 503,
  })
  await venue('POST', '/price', { coin: '@1', price: 34 })
  const exit = await firedOf('spot_trigger')
  await world.fault('solana', { status: 503 })
  await world.price({ symbol: 'BONK', price_usd: '0.0000165' })
  const hook = await firedOf('hook_execute')
  await restorable.backUp()
  await world.heal()
  await venue('DELETE', '/faults', {})

  const ids = [exit.task_id, hook.task_id]
  const first = await Promise.all(ids.map((id) => person.ended(id, 60_000)))
  for (const done of first) assert.equal(done.outcome, 'executed', JSON.stringify(done))
  await world.solver('/force', { failReason: 'SLIPPAGE', count: 2 })
  await world.price({ symbol: 'POL', price_usd: '0.5' })
  const refundsOf = async (who: Person) => {
    const { items } = (await who.call<{ items: Done[] }>('GET /v1/tasks?kind=limit_order_execute')).body
    return items.filter(({ error }) => error?.code === 'refunded').map(shown)
  }
  await eventually(
    async () =>
      (await listedAs('limit_order_execute')).filter(({ transactions }) => transactions.length > 0).length ===
        2 || undefined,
    'the order fires again, and once more after its refund',
    60_000,
  )
  await world.price({ symbol: 'POL', price_usd: '2' })
  const refunded = await eventually(
    async () => {
      const shownOrder = await orderOf(person)
      return shownOrder.failure_reason === 'refunded' ? shownOrder : undefined
    },
    'the order is refunded',
    60_000,
  )
  assert.equal(refunded.status, 'active')
  const refunds = await refundsOf(person)
  assert.equal(refunds.length, 2)
  const held = await balancesOf(world, person)

  await restorable.restore()
  world = await worldOf(worldUrl(restorable.gateway()))
  venue = venueControl(worldUrl(restorable.gateway()))
  await venue('POST', '/settings', { walking: false })
  await setPrices(34)
  const restored = await personOf(restorable.gateway().url, person)
  await restorable.goOn()
  for (const [at, id] of ids.entries()) {
    const done = await restored.ended(id, 90_000)
    assert.deepEqual(shown(done as Done), shown(first[at] as Done), JSON.stringify(done))
  }
  await eventually(
    async () => (await orderOf(restored)).failure_reason === 'refunded' || undefined,
    'the task of the order has found its refund',
    90_000,
  )
  assert.deepEqual(await orderOf(restored), refunded)
  await eventually(
    async () => (await refundsOf(restored)).length === 2 || undefined,
    'the task of the earlier attempt has found its refund',
    60_000,
  )
  assert.deepEqual(await refundsOf(restored), refunds)
  assert.deepEqual(await balancesOf(world, restored), held)
})

const sorted = (changes: Done['balance_changes'] = []) =>
  changes.map(({ symbol, amount }) => `${amount} ${symbol}`).toSorted()

/** What was executed, beside ids and figures of the quote that the repeat asked for. */
const shown = ({ outcome, balance_changes, result, transactions }: Done) => ({
  outcome,
  balance_changes,
  hash: result.tx_hash,
  shares: result.shares_delta,
  credits: result.credits,
  transactions: transactions.map(({ tx_hash, status }) => ({ tx_hash, status })),
})
