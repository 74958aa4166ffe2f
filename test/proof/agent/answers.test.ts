/** Answers of the grammar: each number has a path to what an operation answered. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, answerOf, untracedNumbers } from '#grammar/answer.ts'
import { frames } from '#grammar/frames.ts'
import { helpText } from '#grammar/help-texts.ts'
import { topics } from '#grammar/help-topics.ts'
import { type Outputs, valueAt } from '#grammar/step-outputs.ts'
import { noteTexts } from '#grammar/understanding.ts'
import { plainSchema, type Schema } from '#kernel/contract/decimal-fields.ts'
import { operationName } from '#kernel/contract/operation.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { contracts } from '../../../src/contracts.ts'
import { nowMs, readText, registry } from './corpus.ts'

const text = { type: 'string' }
const listOf = (...names: string[]) => ({
  type: 'array',
  items: { properties: Object.fromEntries(names.map((name) => [name, text])) },
})
/** What the reads of market data answer that are no operations. */
const innerReads = {
  market_candles: { asset: text, candles: listOf('start', 'open', 'high', 'low', 'close', 'volume') },
  market_book: { asset: text, bids: listOf('price', 'size'), asks: listOf('price', 'size') },
}
const entries = new Map<string, { output?: Schema }>([
  ...Object.entries(innerReads).map(
    ([name, properties]) => [name, { output: { properties } as Schema }] as const,
  ),
  ...contracts.flatMap(({ group, entries: own }) =>
    Object.entries(own).map(
      ([key, entry]) =>
        [
          operationName(group, key),
          'output' in entry ? { output: plainSchema(entry.output) as Schema } : {},
        ] as const,
    ),
  ),
])

/** The schema of a part of an output; undefined where the contract has no such part. */
function schemaAt(schema: Schema, parts: readonly string[]): Schema | undefined {
  const [part, ...rest] = parts
  if (part === undefined) return schema
  for (const union of [schema.anyOf, schema.oneOf, schema.allOf])
    if (Array.isArray(union))
      for (const arm of union) {
        const found = isRecord(arm) ? schemaAt(arm, parts) : undefined
        if (found) return found
      }
  if (isRecord(schema.items) && /^\d+$/.test(part)) return schemaAt(schema.items, rest)
  if (isRecord(schema.properties) && isRecord(schema.properties[part]))
    return schemaAt(schema.properties[part], rest)
  // A record of values by a name, or an object that may have further fields.
  return isRecord(schema.patternProperties) || schema.additionalProperties === true ? {} : undefined
}

const placeholder = /\{([^{}|]+)\|([a-z]+)\}/g
const pathsOf = (source: string): string[] => {
  const call = /^([a-z]+)\((.+)\)$/.exec(source)
  if (!call) return [source]
  // These figures are the words of the user.
  if (call[1] === 'said') return []
  const parts = (call[2] ?? '').split(',')
  return call[1] === 'units' ? parts.slice(0, 1) : parts
}

test('every figure of a template exists in the answer of its operation', () => {
  const missing: string[] = []
  for (const { intent, plan = [], answer = [] } of frames)
    for (const line of answer) {
      const step = plan.find(({ id }) => line.step === undefined || id === line.step)
      const entry = step && entries.get(step.operation)
      if (!step || !entry?.output) {
        missing.push(`${intent}: no step ${line.step}`)
        continue
      }
      const list = 'rows' in line ? line.rows : 'total' in line ? line.total : undefined
      const base = list === undefined ? [] : [...list.split('/').slice(1), '0']
      for (const hit of line.text.matchAll(placeholder))
        for (const path of pathsOf(hit[1] ?? '')) {
          const parts = path.startsWith('/') ? path.slice(1).split('/') : [...base, ...path.split('/')]
          if (!schemaAt(entry.output, parts)) missing.push(`${intent}, ${step.operation}: ${path}`)
        }
    }
  // What a message costs is published by the chat itself, and kinds of orders share one list.
  const later = [
    'chat_price, discovery_capabilities',
    'open_orders, outstanding_orders_list',
    'limit_orders_list',
  ]
  assert.deepEqual(
    missing.filter((each) => !later.some((known) => each.includes(known))),
    [],
  )
})

test('every intent that calls an operation has a template, and no text of it has a digit', () => {
  const without = frames.filter(({ plan, answer }) => plan && plan.length > 0 && answer === undefined)
  assert.deepEqual(
    without.map(({ intent }) => intent),
    [],
  )
  const texts = frames.flatMap(({ answer = [], talk = '' }) => [
    talk,
    ...answer.flatMap((line) => [
      line.text.replace(placeholder, ''),
      'none' in line ? (line.none ?? '') : '',
    ]),
  ])
  for (const text of [
    ...texts,
    ...Object.keys(topics).map(helpText),
    helpText(undefined),
    ...frames.map(({ refusal = '' }) => refusal),
    ...Object.values(noteTexts),
  ])
    assert.doesNotMatch(text.replace('/v1/', ''), /\d/, text)
})

const market = {
  symbol: 'ETH',
  mark_price: '3420.456',
  prev_day_price: '3300',
  funding_rate: '0.0000125',
  volume_24h_usd: '1234567.8',
  open_interest: '1000',
  max_leverage: 50,
}
const outputs = (
  id: string,
  operation: string,
  output: unknown,
  fetchedAtMs = nowMs,
  input = {},
): Outputs => ({ [id]: { operation, output, fetchedAtMs, input } })
const answerTo = (text: string, given: Outputs): Answer => {
  const [intent] = readText(text).intents
  assert.ok(intent, text)
  return answerOf(intent, given, { nowMs, names: registry.names })
}

/** Each span covers its text, and its pointers exist in the output of its step. */
function assertTraced(answer: Answer, given: Outputs): void {
  assert.deepEqual(untracedNumbers(answer), [], answer.text)
  for (const { step, pointers } of answer.spans)
    for (const pointer of pointers)
      assert.notEqual(valueAt(given[step]?.output, pointer), undefined, `${step} ${pointer}`)
}

test('a price has its unit, its change against the day before, and its age', () => {
  const given = outputs(
    'perp',
    'perp_markets',
    { markets: [{ ...market, symbol: 'BTC' }, market], total: 2 },
    nowMs - 40_000,
  )
  const answer = answerTo('price of eth', given)
  assert.equal(
    answer.text,
    'ETH: 3,420.46 USD, 3.65 % against the day before, funding 0.0013 % an hour.\nAs of 40 s ago (perp markets).',
  )
  assertTraced(answer, given)
  const price = answer.spans.find(({ start, end }) => answer.text.slice(start, end) === '3,420.46 USD')
  assert.deepEqual(price?.pointers, ['/markets/1/mark_price'])
})

test('what is unknown is said to be unknown, and is never a zero', () => {
  const holding = { chain_id: '8453', chain_name: 'Base', symbol: 'AERO', balance: '12.5', value_usd: null }
  const given = outputs('holdings', 'wallets_holdings', { holdings: [holding], total_value_usd: '0' })
  assert.match(answerTo('how much aero do i have', given).text, /^12\.5 AERO on Base\.$/)
  const empty = outputs('holdings', 'wallets_holdings', { holdings: [], total_value_usd: '0' })
  assert.match(answerTo('how much aero do i have', empty).text, /^Your wallets hold nothing of it\./)
})

test('the total of what is shown is no total of everything', () => {
  const holding = (chain_id: string, symbol: string, value_usd: string) => ({
    chain_id,
    chain_name: chain_id,
    symbol,
    balance: value_usd,
    value_usd,
  })
  const holdings = [
    holding('1', 'USDC', '100'),
    holding('8453', 'USDC', '20.5'),
    holding('8453', 'AERO', '7'),
  ]
  const given = outputs('holdings', 'wallets_holdings', { holdings, total_value_usd: '127.5' })
  const dollars = answerTo('how much usdc do i have', given)
  assert.match(dollars.text, /Together 120\.50 USD, as far as prices are known\.$/)
  assertTraced(dollars, given)
  assert.match(answerTo('what do i have', given).text, /Together 127\.50 USD/)
  assert.match(answerTo('my balances on base', given).text, /Together 27\.50 USD/)
  assert.doesNotMatch(answerTo('how much aero do i have', given).text, /Together/)
})

test('a profit that is not known is no profit of zero', () => {
  const holding = {
    chain_id: '8453',
    chain_name: 'Base',
    symbol: 'AERO',
    unrealized_pnl_usd: null,
    realized_pnl_usd: '3',
  }
  const given = outputs('holdings', 'wallets_holdings', { holdings: [holding] })
  assert.equal(
    answerTo('have i made money on aero', given).text,
    'AERO on Base: unrealised unknown, realised 3.00 USD.',
  )
})

test('a quote is counted in the tokens that it names', () => {
  const usdc = registry.names.bySymbol.get('usdc')?.tokens.find(({ chainId }) => chainId === '8453')
  const aero = registry.names.bySymbol.get('aero')?.tokens[0]
  const quote = {
    amount_in: '80000000',
    amount_out: '101500000000000000000',
    amount_out_min: '100000000000000000000',
    price_impact_bps: 12,
    provider: 'relay',
  }
  const given = outputs('preview', 'swap_execute', { dryrun: true, quote }, nowMs, {
    chain_id_in: '8453',
    token_in: usdc?.address ?? '',
    token_out: aero?.address ?? '',
  })
  const answer = answerTo('how much aero can i get with $80?', given)
  assert.equal(
    answer.text,
    'You would pay 80 USDC and get about 101.5 AERO, at least 100 AERO; price impact 0.12 %, by relay.',
  )
  assertTraced(answer, given)
})

test('names that strangers chose are text, and a failed read is named', () => {
  const holding = {
    chain_id: '1',
    chain_name: 'Ethereum',
    symbol: 'SAFE\u202e\u200b 999',
    balance: '1',
    value_usd: null,
  }
  const given = outputs('holdings', 'wallets_holdings', { holdings: [holding], total_value_usd: '1' })
  const answer = answerTo('what do i own', given)
  assert.doesNotMatch(answer.text, /[\u200b\u202e]/)
  assertTraced(answer, given)
  const failed: Outputs = {
    perp: {
      operation: 'perp_markets',
      output: null,
      fetchedAtMs: nowMs,
      fault: { code: 'unavailable', detail: 'The venue did not answer' },
    },
  }
  assert.equal(
    answerTo('price of eth', failed).text,
    'It could not be read (perp markets): The venue did not answer. Ask again in a moment; "are all systems up" says what answers now.',
  )
})

test('lists are cut, and what is left out is counted', () => {
  const markets = Array.from({ length: 40 }, (_, at) => ({
    ...market,
    symbol: `M${at}`,
    volume_24h_usd: String(at),
  }))
  const given = outputs('perp', 'perp_markets', { markets, total: 40 })
  const answer = answerTo('top 3 markets by volume', given)
  assert.deepEqual(
    answer.text.split('\n').map((line) => line.split(':')[0]),
    ['M39', 'M38', 'M37', 'And 37 more.'],
  )
  assertTraced(answer, given)
})

test('an intent of another agent names that agent', () => {
  assert.match(
    answerTo('draw hype on the 4h', {}).text,
    /^Charts and indicators are computed by another agent.* Choose MarketAnalyzerAgent /,
  )
})
