/**
 * What happened at the venue after a backup: after a restore nothing is sold or bought twice, the operator adopts what the
 * venue shows, and its accounts go on.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, http } from '../harness/gateway.ts'
import { venueControl } from '../harness/venue-gateway.ts'
import { createRestorable, type Found, worldUrl } from './restored.ts'
import { balancesOf, personOf } from './swap-users.ts'
import { createFundedPerson, type Person } from './users.ts'
import { arbitrum, worldOf } from './world.ts'

type Placed = {
  task_id: string
  status: string
  state: string
  outcome: string | null
  code?: string
  message: string
  result: Record<string, string> & { sl_oids: string[]; tp_oids: string[] }
}
type Receipt = { logs: { topics: string[]; logIndex: string }[] }
type Orders = { orders: { order_id: string; is_trigger: boolean }[]; positions?: { asset: string }[] }
type Fills = { fills: { order_id: string; task_id: string | null; leg: string | null }[] }
type Truth = {
  accounts: { rawUsd: string; spot: Record<string, { total: string }>; fills: { oid: number }[] }[]
}

const long = { asset: 'ETH', side: 'long', size: '0.1', leverage: 2 }
const rest = { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: 20 }

test('what the venue did after the backup is adopted, and nothing of it happens twice', async () => {
  await using restorable = await createRestorable({ HYPERLIQUID_WEIGHT_PER_MINUTE: '0' })
  let world = await worldOf(worldUrl(restorable.gateway()))
  let venue = venueControl(worldUrl(restorable.gateway()))
  const display = async (prices: Record<string, number>) => {
    await venue('POST', '/settings', { walking: false })
    for (const [coin, price] of Object.entries(prices)) await venue('POST', '/price', { coin, price })
  }
  const post = async (who: Person, path: string, body: object, key?: string) =>
    (await who.call<Placed>(`POST /v1/${path}?wait=true`, { body, ...(key && { key }) })).body
  const executed = async (...given: Parameters<typeof post>): Promise<Placed> => {
    const done = await post(...given)
    assert.equal(done.outcome, 'executed', `${given[1]} ${JSON.stringify(done)}`)
    return done
  }
  await display({ '@1': 40, BTC: 100_000, ETH: 3_500 })
  const before = await createFundedPerson(restorable.gateway().url)
  await post(before, 'perp/setup', {})
  await executed(before, 'perp/fund', { amount_usd: '3000' })
  const bought = await executed(before, 'spot_venue/buy', {
    asset: 'HYPE',
    size: '4',
    tp_price: '60',
    sl_price: '35',
  })
  const guarded = { asset: 'BTC', side: 'long', size: '0.01', leverage: 2, sl_price: '95000' }
  const opened = await executed(before, 'perp/open', guarded)
  await restorable.backUp()

  await display({ '@1': 34, BTC: 94_900 })
  const isOver = async (): Promise<true | undefined> => {
    const { items } = (await before.call<{ items: Placed[] }>('GET /v1/tasks?kind=spot_trigger')).body
    const { positions = [] } = (await before.call<Orders>('GET /v1/perp/orders')).body
    return (items[0]?.outcome === 'executed' && positions.length === 0) || undefined
  }
  await eventually(isOver, 'the exit and the stop have sold')
  const first = await executed(before, 'perp/open', long, 'long-after')
  const resting = await executed(before, 'spot_venue/buy', rest, 'rest-after')
  const funded = await executed(before, 'perp/fund', { amount_usd: '20' }, 'funded-after')
  const withdrawn = new Map<string, Placed>()
  for (const key of ['withdrawn-after', 'withdrawn-again'])
    withdrawn.set(key, await executed(before, 'perp/withdraw', { amount_usd: '50' }, key))
  const truthOf = async () => {
    const path = `/effects?user=${before.evm.toLowerCase()}`
    const { accounts } = await venue<Truth>('GET', path)
    return accounts.map(({ rawUsd, spot, fills }) => ({ rawUsd, spot, orders: fills.map(({ oid }) => oid) }))
  }
  const [truth, held] = [await truthOf(), await balancesOf(world, before)]

  await restorable.restore()
  const { url } = restorable.gateway()
  world = await worldOf(worldUrl(restorable.gateway()))
  venue = venueControl(worldUrl(restorable.gateway()))
  await display({ '@1': 34, BTC: 94_900, ETH: 3_500 })
  const person = await personOf(url, before)
  const [exit] = bought.result.sl_oids
  const armed = (await person.call<Orders>('GET /v1/spot_venue/orders')).body.orders
  assert.ok(
    armed.some(({ order_id: id }) => id === exit),
    'the exit is armed again',
  )
  const found = await restorable.goOn()
  const atVenue = found.flatMap((each) => (each.venue ? [each.venue] : []))
  const idsOf = (type: string) =>
    atVenue.filter((each) => each.type === type).map(({ order_id: id }: NonNullable<Found['venue']>) => id)
  assert.equal(idsOf('withdrawal').length, 2, JSON.stringify(found))
  const sale = atVenue.find(({ trigger_order_id: id }) => id === exit)
  assert.ok(sale, JSON.stringify(found))
  assert.deepEqual(
    idsOf('order').toSorted(),
    [sale.order_id, first.result.order_id, resting.result.order_id].toSorted(),
    'the orders of the time that was lost, and not the stop that the venue held',
  )
  assert.equal(found.filter(({ venue: facts }) => facts === null).length, 1, 'the funding')

  const triggers = async () =>
    (await person.call<Orders>('GET /v1/spot_venue/orders')).body.orders.filter(({ order_id: id }) =>
      [...bought.result.sl_oids, ...bought.result.tp_oids].includes(id),
    )
  assert.deepEqual(await triggers(), [], 'the exit that sold has ended, and its sibling with it')
  const longAgain = await executed(person, 'perp/open', long, 'long-after')
  assert.equal(longAgain.result.order_id, first.result.order_id)
  assert.deepEqual(longAgain.result.avg_price, first.result.avg_price)
  const restAgain = await executed(person, 'spot_venue/buy', rest, 'rest-after')
  assert.equal(restAgain.result.order_id, resting.result.order_id)
  const fundedAgain = await executed(person, 'perp/fund', { amount_usd: '20' }, 'funded-after')
  assert.equal(fundedAgain.result.tx_hash, funded.result.tx_hash)
  // Two withdrawals of one amount: the end of the first repeat says nothing of the second.
  const urls = world.manifest.urls.evm
  for (const [key, { result }] of withdrawn) {
    const { body } = await person.call<Placed>('POST /v1/perp/withdraw', { body: { amount_usd: '50' }, key })
    const stopped = await eventually(async () => {
      const now = (await person.task(body.task_id)) as unknown as Placed
      return now.state === 'review' ? now : undefined
    }, 'the withdrawal waits for an operator')
    assert.match(JSON.stringify(stopped), /has paid out a withdrawal of 50 USD/)
    const { amount, tx_hash: hash } = result
    const { logs } = (await world.rpc('eth_getTransactionReceipt', [hash], urls[arbitrum])) as Receipt
    const payout = logs.find(({ topics }) => topics[2]?.endsWith(before.evm.slice(2).toLowerCase()))!
    const evidence = ['--payment', `${hash}:${Number(payout.logIndex)}`, '--evidence', 'an explorer']
    const end = ['tasks', 'end', body.task_id, '--outcome', 'executed']
    assert.match(
      await restorable.operator.refusal(...end, '--amount-out', '48500000', ...evidence, '--why', 'x'),
      /has paid out 49000000/,
    )
    await restorable.operator.act('it was this one', ...end, '--amount-out', amount!, ...evidence)
    const ended = (await person.task(body.task_id)) as unknown as Placed
    assert.deepEqual(
      [ended.outcome, ended.result.tx_hash, ended.result.fee_usd],
      ['executed', hash, '1'],
      key,
    )
  }

  // The record of the account takes over what was adopted, and the account goes on.
  const ownersOf = async (section: string) =>
    new Map(
      (await person.call<Fills>(`GET /v1/${section}/fills`)).body.fills.map((each) => [
        each.order_id,
        each.task_id,
      ]),
    )
  const owners = await eventually(
    async () => {
      const all = new Map([...(await ownersOf('perp')), ...(await ownersOf('spot_venue'))])
      return all.has(String(sale.order_id)) && all.has(first.result.order_id!) ? all : undefined
    },
    'the fills are on record',
    60_000,
  )
  assert.equal(owners.get(first.result.order_id!), longAgain.task_id)
  assert.equal(owners.get(opened.result.sl_oids[0]!), opened.task_id)
  const { items } = (
    await person.call<{ items: { task_id: string; result: Record<string, string> }[] }>(
      'GET /v1/tasks?kind=adopted',
    )
  ).body
  assert.equal(
    owners.get(String(sale.order_id)),
    items.find(({ result }) => result.order_id === sale.order_id)?.task_id,
  )
  assert.equal(
    items.length,
    1,
    `the sale alone, since the end replaced the withdrawal: ${JSON.stringify(items)}`,
  )
  assert.deepEqual(await restorable.operator.rows('accounts', 'list'), [])
  assert.deepEqual([await truthOf(), await balancesOf(world, before)], [truth, held], 'nothing has moved')
  await executed(person, 'spot_venue/buy', { asset: 'HYPE', size: '1' }, 'new')
  assert.equal((await http(`${url}/health`)).status, 200)
})
