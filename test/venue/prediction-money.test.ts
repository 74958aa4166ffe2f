/**
 * Money of prediction markets by the gateway's reads: fills as maker and taker are what an own ledger counts, and trades
 * that are matched and then fail are neither money nor shares.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { randomOf } from '../crash/venue-traders.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  atVenue,
  cashOf,
  type Ended,
  executed,
  micros,
  openOrdersOf,
  type Position,
  predictionVenue,
  run,
} from '../journeys/predmkt-calls.ts'
import { worldOf } from '../journeys/world.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import {
  confirmedFills,
  expectedProfit,
  heldOf,
  type Ledger,
  ledgerOf,
  release,
  shownFills,
  shownProfit,
  sum,
} from './prediction-ledger.ts'
import { type Meeting, meet, meetings, type Pairing } from './prediction-meetings.ts'
import {
  chainOf,
  effectsOf,
  eventsOf,
  legsOf,
  newTraders,
  type PredictionTrader,
  type Venue,
  type VenueMarket,
} from './prediction-traders.ts'

const size = bySize({
  short: { fills: 40, traders: 2, pairings: 4, resolved: 1, failures: 24, pairs: 1 },
  full: { fills: 1_000, traders: 8, pairings: 8, resolved: 4, failures: 1_000, pairs: 4 },
  nightly: { fills: 4_000, traders: 16, pairings: 11, resolved: 6, failures: 3_000, pairs: 8 },
})
const cash = '60000'
const dollar = 1_000_000n
/** The first four have both protocols and both kinds of risk, and so have the last four of eight. */
const slugs = [
  'bitcoin-up-or-down-today',
  'ben-summer-wins-the-mayoral-race',
  'new-phone-before-march',
  'beta-is-the-largest-company',
  'fed-cuts-rates-in-december',
  'ada-winter-wins-the-mayoral-race',
  'recession-declared-next-year',
  'alpha-is-the-largest-company',
  'bitcoin-reaches-250k-this-year',
  'gamma-is-the-largest-company',
  'cal-autumn-wins-the-mayoral-race',
]
const pairKinds = 4
const price = 0.4
const sharesOfTrade = 6

let gateway: Awaited<ReturnType<typeof freshGateway>>
let venue: Venue
let clob: string
let traders: PredictionTrader[]
let markets: VenueMarket[]

type Books = {
  traders: readonly PredictionTrader[]
  ledgers: readonly Ledger[]
  payouts: Map<string, bigint>
}

async function compare({ traders, ledgers, payouts }: Books, when: string): Promise<void> {
  for (const [at, trader] of traders.entries()) {
    const expected = await expectedProfit(clob, ledgers[at]!, payouts)
    // The fills of resting orders are read a little later.
    const isSame = async () => isDeepStrictEqual(await shownProfit(trader), expected)
    await eventually(isSame, 'the record', 15_000).catch(async () => {
      assert.deepEqual(await shownProfit(trader), expected, `${when}: trader ${at}`)
    })
  }
}

const outcomes = ['yes', 'no', 'void'] as const

/** Resolves a market and lets everybody who holds shares of it redeem; the ledgers book what the chain paid. */
async function redeem(pairing: Pairing, number: number, { traders, ledgers, payouts }: Books): Promise<void> {
  const { market } = pairing
  const outcome = market.negRisk ? outcomes[number % 2]! : outcomes[number % 3]!
  await venue('POST', '/resolve', { market: market.slug, outcome })
  const first = outcome === 'yes' ? dollar : outcome === 'no' ? 0n : dollar / 2n
  for (const [at, token] of market.tokens.entries()) payouts.set(token, at === 0 ? first : dollar - first)
  for (const [at, { person, wallet }] of traders.entries()) {
    const held = market.tokens.map((token) => [token, ledgers[at]!.get(token)?.units ?? 0n] as const)
    if (held.every(([, units]) => units === 0n)) continue
    const was = await chainOf(venue, wallet, [])
    await eventually(async () => {
      const { body } = await person.call<{ positions: Position[] }>('GET /predmkt/positions')
      return body.positions.some(({ outcome_id, redeemable }) => redeemable && payouts.has(outcome_id))
    }, 'the market is resolved')
    await executed(person, '/predmkt/redeem', { condition_id: market.conditionId })
    const paid = (await chainOf(venue, wallet, [])).pusd - was.pusd
    const worth = held.map(([token, units]) => (units * payouts.get(token)!) / dollar)
    assert.equal(paid, sum(worth), `${market.slug}: the chain paid`)
    for (const [index, [token, units]] of held.entries())
      if (units > 0n) release(heldOf(ledgers[at]!, token), units, worth[index]!)
  }
}

type Pair = { market: VenueMarket; maker: PredictionTrader; taker: PredictionTrader; random: () => number }
type Trade = { id: string; order_id: string; settlement: string; size: string }
type Activity = {
  trades: Trade[]
  items: object[]
  pnl: { realized_usd: string; unrealized_usd: string }
  positions_value_usd: string
}

const activityOf = async ({ person }: PredictionTrader) =>
  (await person.call<Activity>('GET /predmkt/activity?limit=500')).body
const positionsOf = async ({ person }: PredictionTrader) =>
  (await person.call<{ positions: Position[] }>('GET /predmkt/positions')).body.positions

/** What trades that were matched never change, not even until they fail. */
async function settledOf(trader: PredictionTrader) {
  const [positions, { items, pnl }] = await Promise.all([positionsOf(trader), activityOf(trader)])
  return {
    items,
    realized: pnl.realized_usd,
    positions: positions
      .map(({ outcome_id, size: shares, cost_usd: cost, realized_usd: realized }) => [
        outcome_id,
        shares,
        cost,
        realized,
      ])
      .sort(),
  }
}

/** All that a user reads of money and shares, and what the chain has. */
async function stateOf(trader: PredictionTrader, tokens: readonly string[]) {
  const [settled, spendable, positions, { pnl, positions_value_usd, trades }, holdings, chain] =
    await Promise.all([
      settledOf(trader),
      cashOf(trader.person),
      positionsOf(trader),
      activityOf(trader),
      atVenue(trader.person),
      chainOf(venue, trader.wallet, tokens),
    ])
  return {
    settled,
    spendable,
    positions: positions.sort((a, b) => a.outcome_id.localeCompare(b.outcome_id)),
    worth: { unrealized: pnl.unrealized_usd, value: positions_value_usd },
    holdings: holdings.map(({ as_of_block: _block, price_as_of: _at, ...holding }) => holding),
    chain,
    confirmed: trades.filter(({ settlement }) => settlement === 'confirmed').map(({ id }) => id),
  }
}

const outcomeIds = ({ market }: Pair): readonly string[] => market.tokens
const buy = (token: string, worst: number) => ({
  outcome_id: token,
  side: 'BUY',
  order_type: 'FAK',
  amount_usd: String(Math.ceil(sharesOfTrade * worst * 100) / 100 + 1),
  worst_price: String(worst),
})
const sell = (token: string) => ({
  outcome_id: token,
  side: 'SELL',
  order_type: 'FAK',
  amount_shares: String(sharesOfTrade),
})

/** Real shares and a real profit, beside which failures would show. */
async function prepare(pair: Pair): Promise<void> {
  const { market, maker, taker } = pair
  for (const [{ person }, token, worst] of [
    [maker, market.tokens[0], price * 1.25],
    [taker, market.tokens[1], (1 - price) * 1.25],
  ] as const) {
    await executed(person, '/predmkt/order', { ...buy(token, worst), amount_usd: '100' })
    await executed(person, '/predmkt/order', sell(token))
  }
}

/** An order that fails says so, and names neither money nor shares. */
async function fails({ person }: PredictionTrader, body: object): Promise<void> {
  const task = (await run(person, '/predmkt/order', body, 120_000)) as Ended & {
    fills?: unknown[] | null
    balance_changes?: unknown[] | null
  }
  const { status, outcome, error, result, fills, balance_changes: changes } = task
  assert.deepEqual(
    [status, outcome, error?.code, result?.settled_shares, result?.total_usd, result?.fee_usd],
    ['failed', 'not_executed', 'settlement_failed', '0', '0', '0'],
    JSON.stringify(task),
  )
  assert.deepEqual([fills ?? [], changes ?? []], [[], []], JSON.stringify(task))
}

/** An order that rests, and several takers of the other outcome: each of them mints pairs with a part of it. */
async function failMints({ market, maker, taker, random }: Pair): Promise<number> {
  const trades = 1 + Math.floor(random() * 4)
  const resting = {
    outcome_id: market.tokens[0],
    side: 'BUY',
    price: String(price),
    size: String(trades * sharesOfTrade * 2),
    post_only: true,
  }
  const { result } = await executed(maker.person, '/predmkt/order', resting)
  const body = buy(market.tokens[1], 1 - price)
  await Promise.all(Array.from({ length: trades }, () => fails(taker, body)))
  await run(maker.person, '/predmkt/order/cancel', { order_ids: [result.order_id] })
  return trades
}

/** Purchases and sales that meet the venue's own maker. */
async function failTakes({ market, maker, taker, random }: Pair, max: number): Promise<number> {
  const bodies = [
    [maker, buy(market.tokens[0], 0.5)],
    [taker, buy(market.tokens[1], 0.7)],
    [maker, sell(market.tokens[0])],
    [taker, sell(market.tokens[1])],
  ] as const
  const drawn = bodies.filter(() => random() < 0.7).slice(0, max)
  await Promise.all(drawn.map(([who, body]) => fails(who, body)))
  return drawn.length
}

/** Reads now and then while trades are under way. */
async function watch(
  traders: readonly PredictionTrader[],
  was: ReadonlyMap<PredictionTrader, Awaited<ReturnType<typeof stateOf>>>,
  isOver: () => boolean,
): Promise<number> {
  let looks = 0
  for (; !isOver(); looks++) {
    const trader = traders[looks % traders.length]!
    const { settled, spendable } = was.get(trader)!
    assert.deepEqual(await settledOf(trader), settled, 'a match counts as nothing')
    assert.ok((await cashOf(trader.person)) <= spendable, 'a match brings no cash')
    await delay(200)
  }
  return looks
}

describe('what users of prediction markets read of their money', () => {
  before(async () => {
    gateway = await freshGateway(
      {
        FAUCET_URL: 'off',
        RATE_MONEY: '0',
        RATE_EXIT: '0',
        RATE_READ: '0',
        POLICY_DAY_USD_MAX: '1000000000',
        TOKEN_TTL_SECONDS: '3600',
      },
      { ownWorld: 'markets of this one are resolved, and then every trade of it fails' },
    )
    venue = predictionVenue(gateway.world)
    clob = (await worldOf(gateway.world)).manifest.urls.polymarket.clob
    traders = await newTraders(gateway.url, venue, { count: size.traders, usd: () => cash })
    markets = await venue<VenueMarket[]>('GET', '/markets')
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test(`${size.fills} fills: cost, value and profit equal an own ledger to the unit`, async (t) => {
    const seed = proofSeed('prediction profit')
    const startedMs = performance.now()
    const counts: Record<Meeting, number> = { crossing: 0, minting: 0, merging: 0 }
    const pairings = slugs.slice(0, size.pairings).map((slug, at): Pairing => {
      const market = markets.find((each) => each.slug === slug)
      assert.ok(market, slug)
      return {
        venue,
        market,
        pair: [traders[at % size.traders]!, traders[(at + 1) % size.traders]!],
        random: randomOf(seed + at),
        counts: { ...counts },
      }
    })
    const wallets = new Set(traders.map(({ wallet }) => wallet))
    let met = 0
    await Promise.all(
      pairings.map(async (pairing) => {
        while (met < size.fills / 2) {
          met += 1
          await meet(pairing)
        }
      }),
    )

    const effects = await effectsOf(venue)
    const { trades } = effects
    assert.deepEqual([...new Set(trades.map(({ status }) => status))], ['CONFIRMED'])
    const fills = trades.flatMap(({ legs }) => legs.filter(({ wallet }) => wallets.has(wallet))).length
    const books: Books = {
      traders,
      ledgers: traders.map((each) => ledgerOf(effects, each, markets)),
      payouts: new Map(),
    }
    for (const [at, trader] of traders.entries()) {
      const recorded = confirmedFills(effects, trader, markets)
      const isSame = async () => isDeepStrictEqual(await shownFills(trader), recorded)
      await eventually(isSame, 'the fills', 15_000).catch(async () => {
        assert.deepEqual(await shownFills(trader), recorded, `the fills of trader ${at}`)
      })
    }
    await compare(books, 'before any redemption')
    for (const [number, pairing] of pairings.slice(-size.resolved).entries())
      await redeem(pairing, number, books)
    await compare(books, 'after the redemptions')

    for (const [at, { person, wallet }] of traders.entries()) {
      const { pusd } = await chainOf(venue, wallet, [])
      assert.equal(await cashOf(person), pusd, `the cash of trader ${at}`)
      const earned = sum([...books.ledgers[at]!.values()].map(({ realized, cost }) => realized - cost))
      assert.equal(pusd - micros(cash), earned, `the ledger explains the cash of trader ${at}`)
    }
    for (const meeting of meetings) {
      for (const pairing of pairings) counts[meeting] += pairing.counts[meeting]
      assert.ok(counts[meeting] > 0, `no ${meeting}`)
    }
    assert.ok(fills >= size.fills, `${fills} fills`)
    t.diagnostic(
      `${fills} fills of ${traders.length} traders on ${pairings.length} markets, ${JSON.stringify(counts)}, in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`,
    )
  })

  test(`${size.failures} trades that are matched and fail are neither money nor shares`, async (t) => {
    const seed = proofSeed('failed prediction trades')
    const startedMs = performance.now()
    const pairs = Array.from({ length: size.pairs }, (_, at): Pair => {
      const market = markets.find(({ slug }) => slug === slugs[at % pairKinds])!
      return { market, maker: traders[at * 2]!, taker: traders[at * 2 + 1]!, random: randomOf(seed + at) }
    })
    const involved = traders.slice(0, size.pairs * 2)
    for (const { market } of pairs) await venue('POST', '/price', { market: market.slug, price })
    await Promise.all(pairs.map(prepare))
    const tokensOf = (trader: PredictionTrader) =>
      pairs.filter(({ maker, taker }) => maker === trader || taker === trader).flatMap(outcomeIds)
    const was = new Map(
      await Promise.all(involved.map(async (each) => [each, await stateOf(each, tokensOf(each))] as const)),
    )
    const eventsBefore = await Promise.all(involved.map(({ person }) => eventsOf(person)))
    const tradesBefore = new Set((await effectsOf(venue)).trades.map(({ id }) => id))

    await venue('POST', '/realism', {
      seed,
      failRate: 1,
      settleDelay: { rate: 1, minMs: 0, maxMs: 400 },
      unbroadcastRate: 0.3,
      retryRate: 0.2,
    })
    let isOver = false
    const watching = watch(involved, was, () => isOver)
    const counts = { mints: 0, takes: 0 }
    const trading = pairs.map(async (pair) => {
      while (counts.mints + counts.takes < size.failures) {
        counts.mints += await failMints(pair)
        while (counts.takes < counts.mints && counts.mints + counts.takes < size.failures)
          counts.takes += await failTakes(pair, counts.mints - counts.takes)
      }
    })
    await Promise.all(trading).finally(() => {
      isOver = true
    })
    const looks = await watching

    const { trades } = await eventually(async () => {
      const effects = await effectsOf(venue)
      return effects.openTrades === 0 ? effects : undefined
    }, 'every trade has ended')
    const failed = trades.filter(({ id }) => !tradesBefore.has(id))
    assert.deepEqual([...new Set(failed.map(({ status }) => status))], ['FAILED'])
    let [makerLegs, mints] = [0, 0]
    for (const [at, trader] of involved.entries()) {
      const legs = legsOf({ trades: failed }, trader.wallet)
      const makers = legs.filter(({ role }) => role === 'maker')
      makerLegs += makers.length
      mints += makers.filter(({ trade }) => trade.legs[0]!.side === 'BUY').length
      const keys = legs.map(({ trade, orderId }) => `${trade.id} ${orderId}`).sort()
      const recorded = async () => {
        const listed = (await activityOf(trader)).trades.filter(({ id }) => !tradesBefore.has(id))
        return listed.every(({ settlement }) => settlement === 'failed') && listed.length === legs.length
          ? listed
          : undefined
      }
      const listed = await eventually(recorded, 'each failure is recorded').catch(
        async () => (await activityOf(trader)).trades,
      )
      assert.deepEqual(listed.map(({ id, order_id }) => `${id} ${order_id}`).sort(), keys, `trader ${at}`)
      assert.deepEqual(await openOrdersOf(trader.person), [])
      const isSame = async () => isDeepStrictEqual(await stateOf(trader, tokensOf(trader)), was.get(trader))
      // The venue's own maker quotes anew a little later.
      await eventually(isSame, 'the state', 15_000).catch(async () => {
        assert.deepEqual(await stateOf(trader, tokensOf(trader)), was.get(trader), `trader ${at}`)
      })

      const events = (await eventsOf(trader.person)).slice(eventsBefore[at]!.length)
      const ofTrades = events.filter(({ type }) => !type.startsWith('task.'))
      const seen = (type: string) =>
        ofTrades.filter((each) => each.type === type).map(({ data }) => `${data.trade_id} ${data.order_id}`)
      assert.deepEqual(
        new Set(ofTrades.map(({ type }) => type)),
        new Set(['predmkt.trade.matched', 'predmkt.trade.failed']),
        `events of trader ${at}`,
      )
      // A trade that was read for the first time after its failure is no news.
      const matched = seen('predmkt.trade.matched').sort()
      assert.deepEqual(seen('predmkt.trade.failed').sort(), matched, `trader ${at}: each match ends once`)
      assert.equal(new Set(matched).size, matched.length, `trader ${at}: a match is reported once`)
      assert.ok(matched.every((key) => keys.includes(key)))
    }
    assert.ok(failed.length >= size.failures, `${failed.length} trades failed`)
    assert.ok(mints * 2 >= size.failures, `${mints} as maker in a mint`)
    const kinds = new Set(pairs.map(({ market }) => `${market.protocol} ${market.negRisk}`))
    t.diagnostic(
      `${failed.length} trades failed, ${makerLegs} of them with a user as maker, ${mints} in a mint; ${kinds.size} kinds of markets, ${looks} looks meanwhile, ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`,
    )
  })
})
