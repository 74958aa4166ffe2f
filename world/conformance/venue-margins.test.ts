import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clearinghouseState } from '#world/hyperliquid/info-account.ts'
import { type Perp, perps, type Tier } from '#world/hyperliquid/markets.ts'
import type { Account } from '#world/hyperliquid/state.ts'
import { accountOf, stateOf, type Venue } from '#world/hyperliquid/venue.ts'
import { nextInteger, nextRandom, type RandomState } from '#world/venue-core/random.ts'
import { createInMemoryVenue, type InMemoryVenue, take, traded, userAt } from './venue/in-memory-venue.ts'

const user = userAt(0x77)

const randomPortfolio = (seed: number): { harness: InMemoryVenue; random: RandomState } => {
  const random = { at: seed * 7_919 }
  const harness = createInMemoryVenue(seed)
  const wealth = 10 ** (2.5 + nextRandom(random) * 4)
  harness.run({ kind: 'credit', user, coin: 'perp', units: BigInt(Math.round(wealth)) * 100_000_000n })
  for (let i = 0; i <= nextInteger(random, 4); i += 1) {
    const market = traded[nextInteger(random, traded.length)] as Perp
    const leverage = 1 + nextInteger(random, market.maxLeverage)
    harness.act(user, {
      type: 'updateLeverage',
      asset: market.asset,
      isCross: !market.onlyIsolated && nextRandom(random) < 0.6,
      leverage,
    })
    take(
      harness,
      user,
      market,
      nextRandom(random) < 0.5,
      wealth * leverage * (0.05 + nextRandom(random) * 0.4),
    )
  }
  return { harness, random }
}

/** The formulae in plain dollars, a second implementation. */
const maintenanceOf = (value: number, tiers: readonly Tier[]): number => {
  let deduction = 0
  let rate = 1 / (2 * (tiers[0] as Tier).maxLeverage)
  for (const { lowerBoundUsd, maxLeverage } of tiers.slice(1)) {
    if (value < lowerBoundUsd) break
    const steeper = 1 / (2 * maxLeverage)
    deduction += lowerBoundUsd * (steeper - rate)
    rate = steeper
  }
  return value * rate - deduction
}

type Line = {
  market: Perp
  size: number
  mark: number
  value: number
  leverage: number
  cross: boolean
  raw: number
  cost: number
}

const linesOf = (venue: Venue, account: Account, marks: ReadonlyMap<number, number>): Line[] =>
  [...account.positions.values()].map(({ asset, size, leverage, raw, cost }) => {
    const market = perps[asset] as Perp
    const mark = marks.get(asset) ?? stateOf(venue, asset).mark / 1e8
    const coins = size / 10 ** market.sizeDecimals
    return {
      market,
      size: coins,
      mark,
      value: Math.abs(coins) * mark,
      leverage: leverage.value,
      cross: leverage.cross,
      raw: Number(raw) / 1e8,
      cost: Number(cost) / 1e8,
    }
  })

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const expected = (venue: Venue, marks: ReadonlyMap<number, number> = new Map()) => {
  const account = accountOf(venue, user)
  const lines = linesOf(venue, account, marks)
  const cross = lines.filter((line) => line.cross)
  const raw = Number(account.raw) / 1e8
  const value = raw + sum(cross.map(({ size, mark }) => size * mark))
  const maintenance = sum(cross.map((line) => maintenanceOf(line.value, line.market.tiers)))
  const initial = sum(cross.map((line) => line.value / line.leverage))
  const open = sum(cross.map((line) => line.value))
  return {
    lines,
    raw,
    value,
    maintenance,
    initial,
    withdrawable: Math.max(0, value - Math.max(initial, open / 10)),
  }
}

const assertNear = (actual: string, expectedValue: number, what: string): void => {
  const tolerance = 2e-6 + Math.abs(expectedValue) * 1e-10
  assert.ok(
    Math.abs(Number(actual) - expectedValue) <= tolerance,
    `${what}: ${actual} is not ${expectedValue}`,
  )
}

type ClearinghouseView = {
  crossMarginSummary: { accountValue: string; totalMarginUsed: string; totalNtlPos: string }
  crossMaintenanceMarginUsed: string
  withdrawable: string
  assetPositions: {
    position: {
      coin: string
      szi: string
      marginUsed: string
      positionValue: string
      unrealizedPnl: string
      liquidationPx: string | null
    }
  }[]
}

const liquidationPriceOf = (line: Line, value: number, maintenance: number): number => {
  const { size, mark, market } = line
  const side = Math.sign(size)
  const available = line.cross
    ? value - maintenance
    : line.raw + size * mark - maintenanceOf(line.value, market.tiers)
  const tier = market.tiers.findLast(({ lowerBoundUsd }) => line.value >= lowerBoundUsd) as Tier
  return mark - (side * available) / Math.abs(size) / (1 - side / (2 * tier.maxLeverage))
}

const checkView = (venue: Venue): number => {
  const view = clearinghouseState(venue, user) as ClearinghouseView
  const { lines, value, maintenance, initial, withdrawable } = expected(venue)
  assertNear(view.crossMarginSummary.accountValue, Math.max(0, value), 'account value')
  assertNear(view.crossMarginSummary.totalMarginUsed, initial, 'initial margin')
  assertNear(view.crossMaintenanceMarginUsed, maintenance, 'maintenance margin')
  assertNear(view.withdrawable, withdrawable, 'withdrawable')
  for (const line of lines) {
    const shown = view.assetPositions.find(({ position }) => position.coin === line.market.coin)?.position
    assert.ok(shown)
    assertNear(shown.positionValue, line.value, 'position value')
    const margin = line.cross ? line.value / line.leverage : line.raw + line.size * line.mark
    assertNear(shown.marginUsed, Math.max(0, margin), 'margin used')
    assertNear(
      shown.unrealizedPnl,
      line.size > 0 ? line.value - line.cost : line.cost - line.value,
      'unrealized',
    )
    const price = liquidationPriceOf(line, value, maintenance)
    if (Math.round(price * 1e8) <= 0) assert.equal(shown.liquidationPx, null)
    else assertNear(String(shown.liquidationPx), price, 'liquidation price')
  }
  return lines.length
}

/** Accounts to liquidate at these marks, by the formulae. Undefined when the result is too close. */
const verdict = (
  venue: Venue,
  marks: ReadonlyMap<number, number>,
): { cross: boolean; isolated: string[] } | undefined => {
  const { lines, value, maintenance } = expected(venue, marks)
  const gaps = lines
    .filter((line) => !line.cross)
    .map((line) => ({
      line,
      gap: line.raw + line.size * line.mark - maintenanceOf(line.value, line.market.tiers),
    }))
  const crossOpen = lines.some((line) => line.cross)
  if (Math.abs(value - maintenance) < 1e-4 || gaps.some(({ gap }) => Math.abs(gap) < 1e-4)) return undefined
  return {
    cross: crossOpen && value < maintenance,
    isolated: gaps.filter(({ gap }) => gap < 0).map(({ line }) => line.market.coin),
  }
}

const liquidationsOf = (venue: Venue, from: number) =>
  accountOf(venue, user)
    .ledger.slice(from)
    .filter(({ delta }) => delta.type === 'liquidation')
    .map(({ delta }) => delta as unknown as { leverageType: string; liquidatedPositions: { coin: string }[] })

const moveAndCheck = (harness: InMemoryVenue, market: Perp, usd: number): number => {
  const { venue } = harness
  const known = accountOf(venue, user).ledger.length
  // The price is on a tick, so it is tried on the venue's own ticks first.
  const probe = createInMemoryVenue(venue.state.seed)
  probe.run({ kind: 'price', coin: market.coin, usd, pin: true })
  const mark = stateOf(probe.venue, market.asset).mark / 1e8
  const expectedOutcome = verdict(venue, new Map([[market.asset, mark]]))
  harness.run({ kind: 'price', coin: market.coin, usd, pin: true })
  if (!expectedOutcome) return 0
  const liquidated = liquidationsOf(venue, known)
  assert.equal(
    liquidated.some(({ leverageType }) => leverageType === 'Cross'),
    expectedOutcome.cross,
    'cross liquidation',
  )
  assert.deepEqual(
    liquidated
      .filter(({ leverageType }) => leverageType === 'Isolated')
      .flatMap(({ liquidatedPositions }) => liquidatedPositions.map(({ coin }) => coin))
      .sort(),
    [...expectedOutcome.isolated].sort(),
  )
  return liquidated.length
}

const checkFunding = (harness: InMemoryVenue): number => {
  const { venue } = harness
  const before = accountOf(venue, user)
  const paidBefore = before.fundings.length
  const lines = linesOf(venue, before, new Map())
  harness.run({ kind: 'funding' })
  const paid = accountOf(venue, user).fundings.slice(paidBefore)
  assert.equal(paid.length, lines.length)
  for (const { asset, usd, rate } of paid) {
    const line = lines.find(({ market }) => market.asset === asset) as Line
    const premium = Number(stateOf(venue, asset).rates.at(-1)?.premium) / 1e10
    const eighth = (premium + Math.max(-0.0005, Math.min(0.0005, 0.0001 - premium))) / 8
    assert.ok(Math.abs(Number(rate) / 1e10 - Math.max(-0.04, Math.min(0.04, eighth))) < 1e-10)
    const oracle = stateOf(venue, asset).oracle / 1e8
    assertNear((Number(usd) / 1e8).toFixed(8), (-line.size * oracle * Number(rate)) / 1e10, 'funding')
  }
  return paid.length
}

test('1,000 random portfolios: margin, liquidation price, liquidation and funding follow the formulae', () => {
  let positions = 0
  let liquidations = 0
  let fundings = 0
  for (let seed = 1; seed <= 1_000; seed += 1) {
    const { harness, random } = randomPortfolio(seed)
    positions += checkView(harness.venue)
    fundings += checkFunding(harness)
    for (let i = 0; i < 3; i += 1) {
      const held = [...accountOf(harness.venue, user).positions.keys()]
      const market = perps[held[nextInteger(random, held.length)] ?? 0] as Perp
      const factor = Math.exp((nextRandom(random) - 0.5) * 0.7)
      liquidations += moveAndCheck(
        harness,
        market,
        (stateOf(harness.venue, market.asset).oracle / 1e8) * factor,
      )
      checkView(harness.venue)
      harness.assertBalanced()
    }
    assert.ok(accountOf(harness.venue, user).raw >= 0n || accountOf(harness.venue, user).positions.size > 0)
  }
  assert.ok(positions > 1_500, `only ${positions} positions`)
  assert.ok(fundings > 1_500, `only ${fundings} funding payments`)
  assert.ok(liquidations > 300, `only ${liquidations} liquidations`)
})
