/** Orders of many traders while every process is killed: the chain, the venue's record and the traders' own agree. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createReads } from '#world/polymarket/chain/reads.ts'
import { markets } from '#world/polymarket/markets.ts'
import { nextInteger } from '#world/venue-core/random.ts'
import { eventually } from '../../test/harness/gateway.ts'
import { bySize, isShort, proofSeed } from '../../test/proof/support/seed.ts'
import { actOnce, type Counts } from './prediction/storm-acts.ts'
import {
  assertConserved,
  countTrades,
  openSettlementLog,
  readBalances,
  walletsOf,
} from './prediction/storm-audit.ts'
import { openTrader, type StormTrader } from './prediction/storm-trader.ts'
import { killKinds, type StormWorld, startStormWorld } from './prediction/storm-world.ts'

const size = bySize({
  short: { orders: 300, kills: 2, traders: 4 },
  full: { orders: 3_000, kills: 10, traders: 12 },
  nightly: { orders: 20_000, kills: 50, traders: 24 },
})
/** The node keeps the events of some thousand blocks. */
const readEvery = 200
const patienceMs = 600_000
const bystander = `0x${'5'.repeat(40)}` as const

const settings = {
  failRate: 0.12,
  retryRate: 0.12,
  unbroadcastRate: 0.1,
  settleDelay: { rate: 0.5, minMs: 0, maxMs: 200 },
  confirmDelay: { rate: 0.5, minMs: 0, maxMs: 200 },
  ordersPerSecond: 1_000_000,
  cancelsPerSecond: 1_000_000,
  gtdMinMs: 0,
}

/** Settings end with the process. */
const setUp = async (world: StormWorld): Promise<void> => {
  await world.control('POST', '/realism', settings)
}

const linux = { skip: process.platform === 'linux' ? false : 'reads /proc' }

test(
  'orders, mints, merges and conversions add up to the unit after kills of every process',
  linux,
  async () => {
    const seed = proofSeed('prediction storm')
    const random = { at: seed }
    await using world = await startStormWorld(setUp)
    for (const { slug, fair } of markets)
      await world.control('POST', '/price', { market: slug, price: fair / 10_000 })
    const traders = await Promise.all(
      Array.from({ length: size.traders }, (_, number) => openTrader(world, seed, number)),
    )
    const before = await readBalances(world, walletsOf(traders))
    const log = openSettlementLog(world)

    const counts: Counts = {}
    let placed = 0
    let inFlight = 0
    let isOver = false
    let hasFailed = false
    const killAll = async (): Promise<void> => {
      for (let kill = 0; kill < size.kills; kill++) {
        const at = (size.orders / size.kills) * (kill + nextInteger(random, 90) / 100)
        await eventually(async () => placed >= at || undefined, `order ${at}`, patienceMs)
        if ((await world.openTrades()) > 0) inFlight += 1
        const kind = killKinds[kill % killKinds.length] as (typeof killKinds)[number]
        // Money that the market sends by itself is on its way at the kill, and asked for until it has come.
        const credit = world.control('POST', '/credit', { wallet: bystander, amount: '1' })
        await Promise.all([world.kill(kind), credit])
      }
    }
    const trade = async (trader: StormTrader): Promise<void> => {
      while (!hasFailed && (placed < size.orders || !isOver)) {
        const count = await actOnce(trader, counts)
        if (Math.floor((placed + count) / readEvery) > Math.floor(placed / readEvery)) void log.read()
        placed += count
      }
    }
    const killing = killAll().finally(() => {
      isOver = true
    })
    const all = [killing, ...traders.map(trade)]
    await Promise.all(all).catch(async (error: Error) => {
      hasFailed = true
      await Promise.allSettled(all)
      throw error
    })
    const { trades } = await assertConserved(world, { traders, before, log })
    const { pusd } = await createReads(world.rpc).dollars(bystander)
    assert.ok(pusd >= BigInt(size.kills) * 1_000_000n, `the bystander got ${pusd}`)

    const seen: Counts = { ...counts, ...countTrades(trades), lost: world.lost, inFlight }
    console.log(`prediction storm: ${placed} orders, ${JSON.stringify(seen)}`)
    const needed = ['minted', 'burned', 'swapped', 'v1', 'v1NegRisk', 'v2', 'v2NegRisk', 'failed', 'retried']
    const longer = ['split', 'merged', 'converted', 'acceptedUnheard', 'canceled', 'killed', 'delayed']
    for (const name of [...needed, 'lost', 'inFlight', ...(isShort ? [] : longer)])
      assert.ok((seen[name] ?? 0) > 0, `no ${name}, seed ${seed}`)
  },
)
