/** kill -9 at the boundaries of an exit held by the gateway: it fires once and sells once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearer, eventually, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { isNightly } from '../proof/support/seed.ts'
import { createCrashApp } from './crash-app.ts'
import { killAtSample } from './failpoints.ts'
import { createLeaseMover } from './market-lease.ts'
import { newTrader, taskPointPattern } from './venue-points.ts'
import { frozenAccounts, recordOf, type TaskReply, total, traded, units, venueOf } from './venue-record.ts'

const hypeToken = 2
const heldSize = '60'
const high = 40
const low = 29
const pointsMax = isNightly ? Number.POSITIVE_INFINITY : 8
const claimWithinMs = 4_000

test('an exit killed at any point while it fires sells exactly once', async (t) => {
  const app = await createCrashApp()
  const venue = venueOf(app.control)
  const env = { FAUCET_URL: 'off', LEASE_MS: '500' }
  const launched: Promise<Gateway>[] = []
  const launch = (failpoint: Record<string, string>) => {
    const gateway = app.gateway({ ...env, ...failpoint })
    gateway.catch(() => undefined)
    launched.push(gateway)
    return gateway
  }
  const survivor = await launch({})
  t.after(async () => {
    survivor.child.kill('SIGCONT')
    const all = await Promise.allSettled(launched)
    const others = all.flatMap((each) =>
      each.status === 'fulfilled' && each.value !== survivor ? [each.value] : [],
    )
    await Promise.all(others.map((gateway) => gateway.kill()))
    await survivor.stop()
    await app[Symbol.asyncDispose]()
  })
  const price = (usd: number) => venue('POST', '/price', { coin: '@1', price: usd })
  await venue('POST', '/settings', { walking: false })
  await price(high)

  const customer = await newTrader(survivor, venue)
  let keys = 0
  const executed = async (path: string, body: object): Promise<TaskReply> => {
    const { body: reply } = await http<TaskReply>(`${survivor.url}/v1/${path}?wait=true&timeout=20`, {
      method: 'POST',
      headers: { ...bearer(customer), 'idempotency-key': `trigger-${keys++}` },
      body,
      timeoutMs: 25_000,
    })
    assert.equal(reply.outcome, 'executed', `${path}: ${JSON.stringify(reply)}`)
    return reply
  }
  await executed('perp/setup', {})
  await executed('spot_venue/buy', { asset: 'HYPE', size: heldSize })

  const moveLeaseToOther = await createLeaseMover({
    admin: app.admin,
    market: 'hl:spot:HYPE',
    survivor,
    claimWithinMs,
  })
  type Sale = { status: string; outcome: string | null; error: unknown }
  const saleOf = async (exitId: string): Promise<Sale | undefined> =>
    (
      await app.admin.query<Sale>(
        `select task.status, task.outcome, task.error from trigger_order o join task on task.id = o.task_id
         where o.id = $1 and task.completed_at is not null`,
        [exitId],
      )
    ).rows[0]

  let sales = 0
  /** Returns whether the gateway died at its point; in either case the exit has sold once in the end. */
  const run = async (at: string, gateway: Gateway, arm: () => void): Promise<boolean> => {
    const { result } = await executed('spot_venue/tp-sl', { asset: 'HYPE', size: '1', sl_price: '30' })
    const exitId = result.sl_oids[0]!
    await moveLeaseToOther()
    arm()
    await price(low)
    const hasDied = () => gateway.child.signalCode !== null
    await eventually(async () => hasDied() || (await saleOf(exitId)), `${at}: it dies or sells`, 20_000)
    const died = hasDied()
    survivor.child.kill('SIGCONT')
    const sale = await eventually(() => saleOf(exitId), `${at}: the sale has ended`, 40_000)
    assert.deepEqual([sale.status, sale.outcome], ['completed', 'executed'], `${at}: ${JSON.stringify(sale)}`)
    await price(high)
    sales += 1
    const { orders, fills, spot } = await recordOf(venue, customer)
    assert.equal(orders.length, 1 + sales, `${at}: orders`)
    assert.equal(traded(fills), units(heldSize) - units('1') * BigInt(sales), `${at}: fills`)
    const buyFees = fills.filter(({ side }) => side === 'B').map(({ fee }) => units(fee))
    assert.equal(units(spot[hypeToken]!.total), traded(fills) - total(buyFees), `${at}: the holding`)
    return died
  }

  const reached = await killAtSample({
    suite: 'points of a trigger',
    pattern: taskPointPattern,
    needed: [/task_step:after/, /net:hyperliquid:after/, /update trigger_order:after/],
    shortPoint: 'db:update trigger_order:after',
    max: pointsMax,
    launch,
    run,
  })
  assert.equal(await ledgerDrift(app.admin), 0)
  assert.deepEqual(await frozenAccounts(app.admin), [])
  t.diagnostic(`${reached}, ${sales} exits that fired and sold once`)
})
