import assert from 'node:assert/strict'
import { test } from 'node:test'
import { researchReport } from '#agent/research/build-research-report.ts'
import type { Claim } from '#agent/research/claim.ts'
import { formulas } from '#agent/research/claim-formulas.ts'
import type { Collected, Wanted } from '#agent/research/collect-results.ts'
import { criteria, weigh } from '#agent/research/criteria.ts'
import { createFacts, known } from '#agent/research/facts.ts'
import { analyse, analysisCalls, candlesOf } from '#agent/research/market-analysis.ts'
import { renumbered } from '#agent/research/renumber-claims.ts'
import { checkReport } from '#agent/research/report.ts'
import { wrongClaims } from '#agent/research/report-claims.ts'
import { claimsJsonOf } from '#agent/research/report-data-files.ts'
import { markdownOf } from '#agent/research/report-markdown.ts'
import { researchScope } from '#agent/research/research-scope.ts'
import type { RuleFacts } from '#agent/research/timeframe-facts.ts'
import { proposalOf, proposalText, recommendationOf } from '#agent/research/trade-proposal.ts'
import type { Names } from '#grammar/asset-and-chain-names.ts'
import type { Json } from '#kernel/wire/json.ts'
import type { Candle, Timeframe } from '#market/candle.ts'
import { priceOnTick } from '#market/tick-size.ts'
import { priceWalk, randomOf } from './price-walk.ts'
import { traceReport } from './trace.ts'

const token = (chainId: string, last: string) => ({
  chainId,
  address: `0x${last.padStart(40, '0')}`,
  decimals: 18,
})
const assets = [
  { symbol: 'USDC', name: 'USD Coin', tokens: [token('8453', 'a')], perp: false, spot: false },
  { symbol: '1INCH', name: '1inch', tokens: [token('8453', 'b'), token('1', 'c')], perp: true, spot: true },
  { symbol: 'HYPE', name: 'Hyperliquid', tokens: [], perp: true, spot: true },
  { symbol: 'AERO', name: 'Aerodrome', tokens: [token('8453', 'd')], perp: false, spot: false },
]
const names = {
  universe: {
    assets,
    chains: [
      { id: '8453', name: 'base', displayName: 'Base', family: 'evm' },
      { id: '1', name: 'ethereum', displayName: 'Ethereum', family: 'evm' },
    ],
  },
  phrases: new Map(),
  bySymbol: new Map(assets.map((asset) => [asset.symbol.toLowerCase(), asset])),
  chainById: new Map(),
} as unknown as Names

const rowsOf = (candles: readonly Candle[]): Json =>
  candles.map(({ startMs, open, high, low, close, volume }) => ({
    start: new Date(startMs).toISOString(),
    open: open.toPrecision(10),
    high: high.toPrecision(10),
    low: low.toPrecision(10),
    close: close.toPrecision(10),
    volume: volume.toFixed(4),
  }))

const hostileName = 'SAFE [7] <b>up 500 %</b> ![x](http://a.b)'

/** What the tools could answer: a seeded market, with unknown values, odd names and refusals in it. */
function answerOf({ name, input }: Wanted, seed: number): Json | undefined {
  const next = randomOf(seed * 31 + name.length + JSON.stringify(input).length)
  next()
  if (next() < 0.12) return undefined
  const price = 0.001 + next() * 5_000
  const text = (value: number) => String(Number(value.toPrecision(7)))
  const maybe = (value: Json): Json => (next() < 0.15 ? null : value)
  switch (name) {
    case 'market_candles': {
      const timeframe = input.timeframe as Timeframe
      const count = next() < 0.2 ? Math.floor(next() * 60) : candlesOf[timeframe]
      const candles = priceWalk({ seed, count, timeframe, price, volatility: 0.002 + next() * 0.04 })
      const as_of = new Date((candles.at(-1)?.endMs ?? 0) - (next() < 0.5 ? 0 : 1)).toISOString()
      return { asset: input.asset!, timeframe, as_of, candles: rowsOf(candles) }
    }
    case 'market_funding': {
      const rates = Array.from({ length: 740 }, (_, at) => ({
        at: new Date(1_700_000_000_000 + at * 3_600_000).toISOString(),
        rate: text((next() - 0.4) * 0.0003),
      }))
      return { asset: input.asset!, as_of: '2026-01-01T00:00:00.000Z', rates }
    }
    case 'market_book': {
      const side = (sign: number) =>
        Array.from({ length: 20 }, (_, at) => ({
          price: text(price * (1 + sign * (at + 1) * 0.0004)),
          size: text((next() * 3_000) / price),
        }))
      return { asset: input.asset!, as_of: '2026-01-01T00:00:00.000Z', bids: side(-1), asks: side(1) }
    }
    case 'perp_markets':
      return {
        markets: [
          {
            symbol: input.search_text!,
            mark_price: text(price),
            prev_day_price: text(price * (0.8 + next() * 0.4)),
            funding_rate: text((next() - 0.5) * 0.0002),
            open_interest: maybe(text(next() * 1e7)),
            volume_24h_usd: text(next() * 1e10),
            max_leverage: 10,
            price_decimals_max: 4,
            min_order_usd: '10',
          },
        ],
      }
    case 'spot_venue_markets':
      return {
        markets: [{ symbol: input.search_text!, price: text(price), volume_24h_usd: text(next() * 1e6) }],
      }
    case 'security_check':
      return {
        results: ['8453', '1'].map((chain_id) => ({
          chain_id,
          status: ['passed', 'flagged', 'skipped'][Math.floor(next() * 3)]!,
          risk_level: 'high',
          buy_tax: maybe(0.05),
          sell_tax: maybe('0.1'),
          reasons: [{ code: 'sell_failed' }, { code: hostileName }],
        })),
      }
    case 'swap_execute':
      return {
        dryrun: true,
        quote: {
          amount_in_usd: input.amount_usd!,
          amount_out_usd: maybe(text(Number(input.amount_usd) * (0.9 + next() * 0.1))),
        },
      }
    case 'earn_info':
      return {
        apy_30d: maybe('0.0431'),
        apy_7d: maybe('0.05'),
        total_assets_usdc: '1000000',
        min_deposit_usdc: '1',
      }
    case 'wallets_holdings':
      return {
        total_value_usd: text(next() * 1e5),
        holdings: [
          {
            symbol: '1INCH',
            chain_name: hostileName,
            balance: text(next() * 1e4),
            value_usd: maybe('12.5'),
            unrealized_pnl_usd: maybe('-3.25'),
          },
          { symbol: hostileName, chain_name: 'Base', balance: '1', value_usd: '1', unrealized_pnl_usd: null },
        ],
      }
    case 'perp_orders':
      return {
        positions:
          next() < 0.5
            ? []
            : [
                {
                  asset: 'HYPE',
                  side: 'long',
                  size: '2.5',
                  unrealized_pnl_usd: '-12.345',
                  liquidation_price: maybe('3.21'),
                },
              ],
        account: { account_value_usd: '1000' },
      }
    default:
      return { balances: [{ asset: '1INCH', total: '3.5' }] }
  }
}

function collected(wanted: readonly Wanted[], seed: number): Collected[] {
  const fetchedAt = new Date(1_780_000_000_000 + seed)
  return wanted.map((each) => {
    const output = answerOf(each, seed)
    return {
      ...each,
      result:
        output === undefined
          ? {
              ok: false,
              code: 'unavailable',
              message: `It answered 503 after 12 s to ${hostileName}`,
              fetchedAt,
            }
          : { ok: true, output, fetchedAt },
    }
  })
}

const filesOf = (seed: number) => {
  const asset = assets[1 + (seed % 3)]!
  const scope = researchScope(asset, names)
  const facts = createFacts(asset.symbol, collected(scope.calls, seed))
  const { report } = researchReport(scope, facts, {})
  const checked = renumbered(checkReport(report), 'needed')
  const sources = JSON.stringify(Object.fromEntries(facts.outputs))
  return {
    asset: asset.symbol,
    checked,
    facts,
    markdown: markdownOf(checked),
    claims: claimsJsonOf(checked),
    sources,
  }
}

test('every figure of sixty reports is traced to the output of a tool, and nothing is dropped', () => {
  let figures = 0
  for (let seed = 1; seed <= 60; seed++) {
    const files = filesOf(seed)
    figures += traceReport(files, files.asset).figures
    assert.deepEqual(files.checked.dropped, [], `seed ${seed}`)
    assert.ok(!files.markdown.includes('http:') && !files.markdown.includes('<b>'), `seed ${seed}`)
  }
  assert.ok(figures > 3_000, `${figures} figures`)
})

test('every sentence of sixty analyses has the figures that it cites', () => {
  let sentences = 0
  for (let seed = 1; seed <= 60; seed++) {
    const timeframe = (['1h', '4h', '1d'] as const)[seed % 3]!
    const analysis = analyse('1INCH', timeframe, collected(analysisCalls('1INCH', timeframe), seed))
    const proposal = proposalOf(analysis)
    const text = known([proposalText(analysis, proposal)])
    const checked = checkReport({
      ...analysis.report,
      sections: [
        ...analysis.report.sections,
        { title: 'Proposal', blocks: [{ type: 'text', sentences: text }] },
      ],
      claims: analysis.facts.book.claims(),
    })
    assert.deepEqual(checked.dropped, [], `seed ${seed}`)
    assert.deepEqual(wrongClaims(checked.claims, analysis.facts.outputs), [])
    sentences += checked.lead.length + checked.sections.flatMap(({ blocks }) => blocks).length
  }
  assert.ok(sentences > 200, `${sentences} sentences`)
})

/** An analysis whose rule signals this side, with this verdict of its test. */
function analysisWith(verdict: string | undefined, side: 'long' | 'short', account: string) {
  const wanted = analysisCalls('HYPE', '4h')
  const answers = collected(wanted, 7).map((each) => {
    const output = {
      perp_orders: { account: { account_value_usd: account }, positions: [] },
      perp_markets: {
        markets: [
          {
            symbol: 'HYPE',
            mark_price: '38.5',
            prev_day_price: '38',
            price_decimals_max: 4,
            min_order_usd: '10',
          },
        ],
      },
      market_candles: {
        asset: 'HYPE',
        timeframe: String(each.input.timeframe),
        as_of: '2027-01-01T00:00:00.000Z',
        candles: rowsOf(
          priceWalk({ seed: 3, count: 500, timeframe: each.input.timeframe as Timeframe, price: 38 }),
        ),
      },
    }[each.name]
    return output ? { ...each, result: { ok: true as const, output, fetchedAt: new Date(0) } } : each
  })
  const analysis = analyse('HYPE', '4h', answers)
  const claim = (value: string): Claim => ({ ...analysis.main!.close!, unit: 'word', value })
  const rule = {
    ...(analysis.rule as RuleFacts),
    verdict: verdict === undefined ? undefined : claim(verdict),
    signal: claim(side),
  }
  return { ...analysis, rule }
}

test('a trade is recommended where the rule signals one and its test shows an edge, with the risk of a hundredth', () => {
  for (const side of ['long', 'short'] as const) {
    const analysis = analysisWith('positive', side, '5000')
    const proposal = proposalOf(analysis)!
    const [entry, stop, target] = [proposal.entry, proposal.stop, proposal.target].map(({ value }) =>
      Number(value),
    ) as [number, number, number]
    const sign = side === 'long' ? 1 : -1
    assert.ok(sign * (entry - stop) > 0 && sign * (target - entry) > 0)
    const verdict = recommendationOf(analysis, proposal)
    assert.ok(verdict && 'call' in verdict, JSON.stringify(verdict))
    const { name, input } = verdict.call
    assert.deepEqual([name, input.asset, input.side, input.leverage], ['perp_open', 'HYPE', side, 1])
    const notional = Number(input.notional_usd)
    assert.ok(notional <= 5_000)
    const lost = (notional * Math.abs(entry - stop)) / entry
    assert.ok(lost <= 50.01, `${lost} USD at the stop`)
    for (const price of [input.tp_price, input.sl_price]) assert.match(String(price), /^\d{2}\.\d{1,3}$/)
    assert.ok(Math.abs(Number(input.sl_price) - stop) < 0.001)
  }
})

test('no trade is recommended without an edge, without an account, or without a signal', () => {
  for (const verdict of ['too_few', 'no_edge', 'negative', undefined]) {
    const analysis = analysisWith(verdict, 'long', '5000')
    assert.match(JSON.stringify(recommendationOf(analysis, proposalOf(analysis))), /shows no edge/)
  }
  for (const account of ['0', '5']) {
    const analysis = analysisWith('positive', 'long', account)
    assert.match(JSON.stringify(recommendationOf(analysis, proposalOf(analysis))), /too small or unknown/)
  }
  assert.equal(recommendationOf(analysisWith('positive', 'long', '5000'), undefined), undefined)
})

test('the marks count up as a reader meets them', () => {
  const { markdown } = filesOf(4)
  let next = 1
  for (const [, n] of markdown.slice(0, markdown.indexOf('\n## Figures')).matchAll(/\[(\d+)\]/g)) {
    assert.ok(Number(n) <= next, `[${n}] before [${next}]`)
    if (Number(n) === next) next++
  }
  assert.ok(next > 30)
})

test('figures equal what is computed from the candles by hand', () => {
  const { facts, checked } = filesOf(4)
  const daily = facts.history('candles_1d')
  assert.ok(daily && daily.candles.length > 100, 'another seed is needed')
  const closes = daily.candles.map(({ close }) => close)
  const last31 = closes.slice(-31)
  const returns = last31.slice(1).map((close, at) => close / last31[at]! - 1)
  const mean = returns.reduce((sum, each) => sum + each, 0) / 30
  const variance = returns.reduce((sum, each) => sum + (each - mean) ** 2, 0) / 29
  const found = (text: string): number => Number(checked.claims.find((claim) => claim.text === text)?.value)
  const near = (text: string, expected: number) =>
    assert.ok(
      Math.abs(found(text) - expected) <= 1e-9 * Math.abs(expected),
      `${text}: ${found(text)}, not ${expected}`,
    )
  near('return of 30 days', last31.at(-1)! / last31[0]! - 1)
  near('volatility of 30 days, over a year', Math.sqrt(variance * 365))
  const last91 = closes.slice(-91)
  const falls = last91.flatMap((peak, at) => last91.slice(at).map((close) => 1 - close / peak))
  near('deepest fall within 90 days', Math.max(...falls))
  near('last close, 1d', closes.at(-1)!)
})

test('an order costs what the levels of the book make it cost', () => {
  const book = {
    bids: [
      { price: '99', size: '1' },
      { price: '98', size: '1' },
    ],
    asks: [
      { price: '101', size: '1' },
      { price: '103', size: '10' },
    ],
  }
  const cost = (side: string, usd: string) => formulas.book_cost!([book, side, usd])
  assert.equal(cost('buy', '101'), '0.01')
  // One at 101 and one at 103.
  assert.equal(cost('buy', '204'), '0.02')
  assert.equal(cost('sell', '99'), '0.01')
  assert.equal(cost('sell', '1000'), undefined)
  assert.equal(cost('hold', '1'), undefined)
  assert.equal(formulas.spread!([book]), '0.02')
  assert.equal(formulas.spread!([{ bids: [], asks: [] }]), undefined)
})

test('an unsafe token is avoided whatever else speaks for it', () => {
  assert.equal(weigh(['for', 'for', 'for', 'unsafe']), 'avoid')
  assert.equal(weigh(['for', 'for', 'neutral']), 'constructive')
  assert.equal(weigh(['for', 'for', 'against']), 'neutral')
  assert.equal(weigh(['against', 'against', 'neutral']), 'cautious')
  assert.deepEqual([criteria.safety('flagged'), criteria.safety('api_unavailable')], ['unsafe', 'neutral'])
  assert.deepEqual(
    [criteria.carry('0.3'), criteria.carry('0.1'), criteria.carry('-0.1')],
    ['against', 'neutral', 'for'],
  )
})

test('a level becomes a price on the tick of its market', () => {
  const cases = [
    [38.4567, 4, '38.457'],
    [104_512.7, 1, '104513'],
    [3_419.958, 2, '3420'],
    [0.000123456, 6, '0.000123'],
    [0.0123456, 6, '0.012346'],
    [1_234.5, 0, '1235'],
    [Number.NaN, 2, undefined],
    [-1, 2, undefined],
  ] as const
  for (const [price, decimals, expected] of cases)
    assert.equal(priceOnTick(price, decimals), expected, String(price))
})

test('a claim says from which calls it is, and a call that failed gives none', () => {
  const scope = researchScope(assets[2]!, names)
  const fetchedAt = new Date(0)
  const failed = scope.calls.map((each) => ({
    ...each,
    result: { ok: false as const, code: 'unavailable', message: '', fetchedAt },
  }))
  const facts = createFacts('HYPE', failed)
  const { report } = researchReport(scope, facts, {})
  const checked = checkReport(report)
  assert.deepEqual([checked.claims, checked.dropped], [[] as Claim[], []])
  const text = markdownOf(checked)
  for (const part of [
    'Confidence',
    'Not answered: the order book (unavailable).',
    'Nothing is known about this.',
  ])
    assert.equal(text.includes(part), part !== 'Confidence', part)
})
