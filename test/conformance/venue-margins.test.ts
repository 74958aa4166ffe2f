import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clearinghouseState } from '#world/hyperliquid/info-account.ts'
import { type Perp, perps, type Tier } from '#world/hyperliquid/markets.ts'
import type { Account } from '#world/hyperliquid/state.ts'
import { accountOf, stateOf, type Venue } from '#world/hyperliquid/venue.ts'
import { integer, next, type RandomState } from '#world/venue-core/random.ts'
import { type Machine, openMachine, take, traded, userAt } from './venue/machine.ts'

const user = userAt(0x77)

const randomPortfolio = (seed: number): { book: Machine; random: RandomState } => {
  const random = { at: seed * 7_919 }
  const book = openMachine(seed)
  const wealth = 10 ** (2.5 + next(random) * 4)
  book.run({ kind: 'credit', user, coin: 'perp', units: BigInt(Math.round(wealth)) * 100_000_000n })
  for (let i = 0; i <= integer(random, 4); i += 1) {
    const market = traded[integer(random, traded.length)] as Perp
    const leverage = 1 + integer(random, market.maxLeverage)
    book.act(user, {
      type: 'updateLeverage',
      asset: market.asset,
      isCross: !market.onlyIsolated && next(random) < 0.6,
      leverage,
    })
    take(book, user, market, next(random) < 0.5, wealth * leverage * (0.05 + next(random) * 0.4))
  }
  return { book, random }
}

/** The formulae in plain dollars, written down here a second time. */
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

const near = (said: string, wanted: number, what: string): void => {
  const tolerance = 2e-6 + Math.abs(wanted) * 1e-10
  assert.ok(Math.abs(Number(said) - wanted) <= tolerance, `${what}: ${said} is not ${wanted}`)
}

type Said = {
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
  const said = clearinghouseState(venue, user) as Said
  const { lines, value, maintenance, initial, withdrawable } = expected(venue)
  near(said.crossMarginSummary.accountValue, Math.max(0, value), 'account value')
  near(said.crossMarginSummary.totalMarginUsed, initial, 'initial margin')
  near(said.crossMaintenanceMarginUsed, maintenance, 'maintenance margin')
  near(said.withdrawable, withdrawable, 'withdrawable')
  for (const line of lines) {
    const shown = said.assetPositions.find(({ position }) => position.coin === line.market.coin)?.position
    assert.ok(shown)
    near(shown.positionValue, line.value, 'position value')
    const margin = line.cross ? line.value / line.leverage : line.raw + line.size * line.mark
    near(shown.marginUsed, Math.max(0, margin), 'margin used')
    near(shown.unrealizedPnl, line.size > 0 ? line.value - line.cost : line.cost - line.value, 'unrealized')
    const price = liquidationPriceOf(line, value, maintenance)
    if (Math.round(price * 1e8) <= 0) assert.equal(shown.liquidationPx, null)
    else near(String(shown.liquidationPx), price, 'liquidation price')
  }
  return lines.length
}

/** Who must be liquidated at these marks, by the formulae. Undefined when it is too close to say. */
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

const moveAndJudge = (book: Machine, market: Perp, usd: number): number => {
  const { venue } = book
  const known = accountOf(venue, user).ledger.length
  // The price lands on a tick, so it is tried on the venue's own grid first.
  const probe = openMachine(venue.state.seed)
  probe.run({ kind: 'price', coin: market.coin, usd, pin: true })
  const mark = stateOf(probe.venue, market.asset).mark / 1e8
  const judged = verdict(venue, new Map([[market.asset, mark]]))
  book.run({ kind: 'price', coin: market.coin, usd, pin: true })
  if (!judged) return 0
  const happened = liquidationsOf(venue, known)
  assert.equal(
    happened.some(({ leverageType }) => leverageType === 'Cross'),
    judged.cross,
    'cross liquidation',
  )
  assert.deepEqual(
    happened
      .filter(({ leverageType }) => leverageType === 'Isolated')
      .flatMap(({ liquidatedPositions }) => liquidatedPositions.map(({ coin }) => coin))
      .sort(),
    [...judged.isolated].sort(),
  )
  return happened.length
}

const checkFunding = (book: Machine): number => {
  const { venue } = book
  const before = accountOf(venue, user)
  const paidBefore = before.fundings.length
  const lines = linesOf(venue, before, new Map())
  book.run({ kind: 'funding' })
  const paid = accountOf(venue, user).fundings.slice(paidBefore)
  assert.equal(paid.length, lines.length)
  for (const { asset, usd, rate } of paid) {
    const line = lines.find(({ market }) => market.asset === asset) as Line
    const premium = Number(stateOf(venue, asset).rates.at(-1)?.premium) / 1e10
    const eighth = (premium + Math.max(-0.0005, Math.min(0.0005, 0.0001 - premium))) / 8
    assert.ok(Math.abs(Number(rate) / 1e10 - Math.max(-0.04, Math.min(0.04, eighth))) < 1e-10)
    const oracle = stateOf(venue, asset).oracle / 1e8
    near((Number(usd) / 1e8).toFixed(8), (-line.size * oracle * Number(rate)) / 1e10, 'funding')
  }
  return paid.length
}

test('1,000 random portfolios: margin, liquidation price, liquidation and funding follow the formulae', () => {
  let positions = 0
  let liquidations = 0
  let fundings = 0
  for (let seed = 1; seed <= 1_000; seed += 1) {
    const { book, random } = randomPortfolio(seed)
    positions += checkView(book.venue)
    fundings += checkFunding(book)
    for (let i = 0; i < 3; i += 1) {
      const held = [...accountOf(book.venue, user).positions.keys()]
      const market = perps[held[integer(random, held.length)] ?? 0] as Perp
      const factor = Math.exp((next(random) - 0.5) * 0.7)
      liquidations += moveAndJudge(book, market, (stateOf(book.venue, market.asset).oracle / 1e8) * factor)
      checkView(book.venue)
      book.balanced()
    }
    assert.ok(accountOf(book.venue, user).raw >= 0n || accountOf(book.venue, user).positions.size > 0)
  }
  assert.ok(positions > 1_500, `only ${positions} positions`)
  assert.ok(fundings > 1_500, `only ${fundings} funding payments`)
  assert.ok(liquidations > 300, `only ${liquidations} liquidations`)
})
