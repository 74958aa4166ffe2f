/**
 * What the prediction market did after a backup: after a restore a request under its key buys nothing twice, and the
 * operator adopts the orders that the venue shows.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import {
  type Ended,
  executed,
  marketBy,
  micros,
  openOrdersOf,
  positionOf,
  predictionVenue,
  sellable,
  setUp,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import { createRestorable, worldUrl } from './restored.ts'
import { personOf } from './swap-users.ts'
import { createFundedPerson, type Person } from './users.ts'
import { polygon, worldOf } from './world.ts'

const slugs = ['bitcoin-up-or-down-today', 'beta-is-the-largest-company']
const price = 0.5
const text = (units: bigint): string => String(Number(units) / 1e6)

test('orders at the prediction market after the backup are found, and none of them is placed twice', async () => {
  await using restorable = await createRestorable()
  const control = () => worldUrl(restorable.gateway())
  const venue = <B = object>(method: string, path: string, body?: object): Promise<B> =>
    predictionVenue(control())<B>(method, path, body)
  const executed = async (who: Person, path: string, body: object, key?: string): Promise<Ended> => {
    const { body: task } = await who.call<Ended>(`POST ${path}?wait=true&timeout=60`, {
      body,
      ...(key && { key }),
    })
    assert.ok(task.task_id, JSON.stringify(task))
    const ended = (await who.ended(task.task_id)) as unknown as Ended
    assert.equal(ended.outcome, 'executed', JSON.stringify(ended))
    return ended
  }
  const pinPrices = async () => {
    for (const slug of slugs) await venue('POST', '/price', { market: slug, price })
  }

  // The search reads the account of this person first, and the venue will not know the key any more.
  const keyless = await createFundedPerson(restorable.gateway().url)
  await setUp(keyless)
  const { safe_address: keylessWallet } = await statusOf(keyless)
  const before = await createFundedPerson(restorable.gateway().url)
  await setUp(before)
  const world = await worldOf(control())
  await world.fund(polygon, before.evm, 'USDC', '500')
  await executed(before, '/predmkt/fund-safe', { amount_usd: '500' })
  await pinPrices()
  const markets = await Promise.all(slugs.map((slug) => marketBy(before, slug)))
  const requests = markets.flatMap(({ slug, outcomes }) => {
    const outcome = { outcome_id: outcomes[0]!.outcome_id, side: 'BUY' }
    return [
      { key: `bought-${slug}`, body: { ...outcome, order_type: 'FOK', amount_usd: '20' } },
      { key: `rests-${slug}`, body: { ...outcome, price: '0.05', size: '10' } },
    ]
  })
  const known = requests.map((each) => ({ ...each, key: `before-${each.key}` }))
  for (const { key, body } of known) await executed(before, '/predmkt/order', body, key)
  const wallet = (await statusOf(before)).safe_address
  // These are accepted before the backup, and signed after it.
  await venue('POST', '/faults', { effect: 'status', status: 500, endpoint: 'clob', type: '/tick-size' })
  const waiting: Ended[] = []
  for (const key of ['waits', undefined]) {
    const { body: request } = requests[0]!
    const { body: task } = await before.call<Ended>('POST /predmkt/order', {
      body: request,
      ...(key && { key }),
    })
    assert.ok(task.task_id, JSON.stringify(task))
    waiting.push(task)
  }
  for (const { task_id: id } of waiting)
    await eventually(
      async () => (await before.call<Ended>(`GET /v1/tasks/${id}`)).body.state === 'waiting' || undefined,
      'the task has found nothing of before, and waits',
    )
  await restorable.backUp()
  // Their amounts are others than those that they would sign after the restore.
  await venue('POST', '/price', { market: slugs[0], price: 0.54 })
  await venue('DELETE', '/faults')
  const signedLater: string[] = []
  for (const { task_id: id } of waiting) {
    const ended = (await before.ended(id)) as unknown as Ended
    assert.equal(ended.outcome, 'executed', JSON.stringify(ended))
    signedLater.push(ended.result.order_id!)
  }
  await pinPrices()

  const placed = new Map<string, Ended>()
  for (const { key, body } of requests) placed.set(key, await executed(before, '/predmkt/order', body, key))
  // Nobody repeats these.
  for (const [index, { body }] of requests.entries())
    placed.set(`unkeyed-${index}`, await executed(before, '/predmkt/order', body))
  const truthOf = async () => {
    const { orders, trades } = await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)
    const tokens = markets.map(({ outcomes }) => outcomes[0]!.outcome_id)
    const held = await venue('GET', `/balances?wallet=${wallet}&tokens=${tokens.join()}`)
    return { orders: orders.map(({ id, status }) => [id, status]), trades: trades.map(({ id }) => id), held }
  }
  const truth = await truthOf()
  await venue('POST', '/lose-keys', { owner: keyless.evm })

  await restorable.restore()
  await pinPrices()
  const person = await personOf(restorable.gateway().url, before)
  const unlisted = async () =>
    (
      await restorable.operator.rows<{ scope: string; detail: { unlisted_prediction_accounts?: string[] } }>(
        'time',
        'show',
      )
    ).find(({ scope }) => scope === 'all')?.detail.unlisted_prediction_accounts
  await eventually(
    async () => (await unlisted())?.join() === keylessWallet || undefined,
    'the account is named',
  )
  const found = await restorable.goOn()
  assert.deepEqual(
    found.flatMap((each) => each.venue?.order_id ?? []).toSorted(),
    [...signedLater, ...[...placed.values()].map(({ result }) => result.order_id!)].toSorted(),
    'the orders of the time that was lost, and no other',
  )
  const adopted = async () =>
    (
      await person.call<{ items: { result: { order_id: string } }[] }>('GET /v1/tasks?kind=adopted&limit=100')
    ).body.items.map(({ result }) => result.order_id)
  assert.equal((await adopted()).length, placed.size)

  for (const [index, { task_id: id }] of waiting.entries()) {
    const ended = (await person.ended(id)) as unknown as Ended
    assert.deepEqual(
      [ended.outcome, ended.result?.order_id],
      ['executed', signedLater[index]],
      JSON.stringify(ended),
    )
  }
  for (const { key, body } of requests) {
    const again = await executed(person, '/predmkt/order', body, key)
    assert.equal(again.result.order_id, placed.get(key)!.result.order_id, key)
    for (const field of ['settled_shares', 'avg_price', 'order_status'])
      assert.deepEqual(again.result[field], placed.get(key)!.result[field], `${key}: ${field}`)
  }
  assert.deepEqual(await truthOf(), truth, 'nothing was placed again')
  assert.deepEqual(
    (await adopted()).toSorted(),
    [...placed]
      .flatMap(([key, { result }]) => (key.startsWith('unkeyed') ? [result.order_id!] : []))
      .toSorted(),
    'the repeats have taken the place of their adopted tasks',
  )

  // The positions, the orders that rest and the cash are those of the venue.
  const { held } = truth as { held: { pusd: string; shares: Record<string, string> } }
  for (const { outcomes } of markets) {
    const { outcome_id: id } = outcomes[0]!
    await eventually(
      async () =>
        micros((await positionOf(person, id))?.size ?? '0') === micros(held.shares[id]!) || undefined,
      'the shares are on record',
    )
  }
  const resting = (await openOrdersOf(person)).filter(({ status }) => status === 'live')
  assert.equal(resting.length, 6)
  const locked = resting.length * 500_000
  assert.equal(
    micros((await statusOf(person)).spendable_cash_usd),
    micros(held.pusd) - BigInt(locked),
    'what rests is not free',
  )
  const next = await executed(person, '/predmkt/order', requests[0]!.body, 'new')
  assert.ok(![...placed.values()].some(({ result }) => result.order_id === next.result.order_id))
})

test('withdrawals and redemptions after the backup are found, and none of them is made twice', async () => {
  await using restorable = await createRestorable()
  const control = () => worldUrl(restorable.gateway())
  const venue = <B = object>(method: string, path: string, body?: object): Promise<B> =>
    predictionVenue(control())<B>(method, path, body)
  const accepted = async (who: Person, { path, body, key }: (typeof requests)[number]): Promise<Ended> => {
    const reply = await who.call<Ended>(`POST ${path}`, { body, key })
    assert.ok(reply.body.task_id, JSON.stringify(reply.body))
    return reply.body
  }
  const endOf = async (who: Person, { task_id: id }: Ended): Promise<Ended> => {
    const ended = (await who.ended(id)) as unknown as Ended
    assert.equal(ended.outcome, 'executed', JSON.stringify(ended))
    return ended
  }

  const before = await createFundedPerson(restorable.gateway().url)
  await setUp(before)
  const world = await worldOf(control())
  await world.fund(polygon, before.evm, 'USDC', '200')
  const funded = await before.call<Ended>('POST /predmkt/fund-safe', {
    body: { amount_usd: '200' },
    key: 'fund',
  })
  await endOf(before, funded.body)
  const markets = await Promise.all(slugs.map((slug) => marketBy(before, slug)))
  for (const { slug, outcomes, condition_id } of markets) {
    await venue('POST', '/price', { market: slug, price })
    const terms = { outcome_id: outcomes[0]!.outcome_id, side: 'BUY', order_type: 'FOK', amount_usd: '20' }
    const order = await before.call<Ended>('POST /predmkt/order', { body: terms, key: `buy-${slug}` })
    await endOf(before, order.body)
    await venue('POST', '/resolve', { market: condition_id, outcome: 'yes' })
  }
  const withdrawal = (key: string, amount: string, token: string) => ({
    key,
    path: '/predmkt/withdraw',
    body: { amount_usdc: amount, token },
  })
  const redemption = (key: string, index: number) => ({
    key,
    path: '/predmkt/redeem',
    body: { condition_id: markets[index]!.condition_id },
  })
  /** The first three are accepted before the backup, and signed after it. */
  const requests = [
    withdrawal('waits-usdc', '7', 'usdc'),
    withdrawal('waits-pusd', '6', 'pusd'),
    redemption('waits-redeem', 0),
    withdrawal('after-usdc', '8', 'usdc'),
    withdrawal('after-pusd', '9', 'pusd'),
    redemption('after-redeem', 1),
  ]
  const [waiting, later] = [requests.slice(0, 3), requests.slice(3)]
  const lost = withdrawal('lost', '5', 'pusd')
  const type = '/v1/account/transactions/params'
  await venue('POST', '/faults', { effect: 'status', status: 500, endpoint: 'relayer', type })
  const tasks = new Map<string, Ended>()
  for (const request of waiting) tasks.set(request.key, await accepted(before, request))
  await restorable.backUp()
  await venue('DELETE', '/faults')
  const ends = new Map<string, Ended>()
  for (const { key } of waiting) ends.set(key, await endOf(before, tasks.get(key)!))
  for (const request of [...later, lost])
    ends.set(request.key, await endOf(before, await accepted(before, request)))
  const wallet = (await statusOf(before)).safe_address
  const truthOf = () =>
    Promise.all(
      [wallet, before.evm].map((owner) =>
        venue(
          'GET',
          `/balances?wallet=${owner}&tokens=${markets.map(({ outcomes }) => outcomes[0]!.outcome_id).join()}`,
        ),
      ),
    )
  const truth = await truthOf()

  await restorable.restore()
  const person = await personOf(restorable.gateway().url, before)
  // Money is on hold: these run once it goes on, and were executed before anybody cancelled them.
  for (const key of ['waits-pusd', 'waits-redeem']) {
    const asked = await person.call(`POST /v1/tasks/${tasks.get(key)!.task_id}/cancel`, { body: {} })
    assert.ok(asked.status < 300, JSON.stringify(asked.body))
  }
  await restorable.goOn()
  const found = new Map<string, Ended>()
  for (const { key } of waiting) found.set(key, await endOf(person, tasks.get(key)!))
  for (const request of later) found.set(request.key, await endOf(person, await accepted(person, request)))
  for (const { key } of requests) {
    const [first, again] = [ends.get(key)!.result, found.get(key)!.result]
    assert.equal(again.tx_hash?.toLowerCase(), first.tx_hash?.toLowerCase(), key)
    for (const field of ['amount', 'payout_usd'])
      assert.deepEqual(again[field], first[field], `${key}: ${field}`)
    const [row] = (again.redeemed ?? []) as { by: string }[]
    if (row) assert.equal(row.by, 'us', key)
  }
  assert.deepEqual(await truthOf(), truth, 'nothing has moved again')

  const other = await endOf(person, await accepted(person, { ...lost, key: 'another' }))
  const again = await endOf(person, await accepted(person, lost))
  assert.equal(again.result.tx_hash?.toLowerCase(), ends.get('lost')!.result.tx_hash?.toLowerCase())
  assert.notEqual(other.result.tx_hash?.toLowerCase(), again.result.tx_hash?.toLowerCase())
})

test('sales after the backup belong to the purchase whose exit made them, or to none, and no exit sells twice', async () => {
  await using restorable = await createRestorable()
  const control = () => worldUrl(restorable.gateway())
  const venue = <B = object>(method: string, path: string, body?: object): Promise<B> =>
    predictionVenue(control())<B>(method, path, body)
  const slug = slugs[1]!
  const putPrice = (at: number) => venue('POST', '/price', { market: slug, price: at })
  const before = await createFundedPerson(restorable.gateway().url)
  await setUp(before)
  const world = await worldOf(control())
  await world.fund(polygon, before.evm, 'USDC', '100')
  await executed(before, '/predmkt/fund-safe', { amount_usd: '100' })
  await putPrice(0.4)
  const market = await marketBy(before, slug)
  const outcome = { outcome_id: market.outcomes[0]!.outcome_id }
  const buy = async (usd: string, stop: string) => {
    const terms = { ...outcome, side: 'BUY', order_type: 'FOK', amount_usd: usd, stop_loss_price: stop }
    return micros((await executed(before, '/predmkt/order', terms)).result.settled_shares!)
  }
  const early = await buy('8', '0.2')
  const late = await buy('12', '0.35')
  const watched = async (who: Person) =>
    (await openOrdersOf(who)).filter(({ status }) => status === 'watched').map(({ price: at }) => at)
  await eventually(async () => (await watched(before)).length === 2 || undefined, 'both stops are armed')
  const wallet = (await statusOf(before)).safe_address
  const sold = async () =>
    (await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)).orders
      .filter(({ side }) => side === 'SELL')
      .map(({ matched }) => micros(matched))
  await restorable.backUp()

  await putPrice(0.3)
  await eventually(async () => (await sold()).length === 1 || undefined, 'the later purchase was sold')
  await eventually(async () => (await watched(before)).join() === '0.2' || undefined, 'its stop has ended')
  const byHand = { ...outcome, side: 'SELL', order_type: 'FAK', amount_shares: '5' }
  const sale = await eventually(async () => {
    const { body } = await before.call<Ended & { code?: string }>('POST /predmkt/order', { body: byHand })
    return body.code === 'shares_not_settled' ? undefined : body
  }, 'the sale of the stop is settled')
  assert.ok(sale.task_id, JSON.stringify(sale))
  assert.equal((await before.ended(sale.task_id)).outcome, 'executed')
  const made = await sold()
  assert.deepEqual(made, [sellable(text(late)), micros('5')])

  await restorable.restore()
  await putPrice(0.3)
  const person = await personOf(restorable.gateway().url, before)
  assert.equal((await restorable.goOn()).length, 2)
  await eventually(async () => (await watched(person)).join() === '0.2' || undefined, 'one stop is left')
  assert.deepEqual(await sold(), made)
  await putPrice(0.15)
  await eventually(async () => (await sold()).length === 3 || undefined, 'the earlier purchase was sold')
  await eventually(async () => (await watched(person)).length === 0 || undefined, 'no stop is left')
  const rest = sellable(text(early - micros('5')))
  assert.deepEqual(await sold(), [...made, rest])
})
