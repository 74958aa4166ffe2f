/** Plans of the grammar: what each operation is called with, from what was said and from what was read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mandateOf, permits, used } from '#grammar/mandate.ts'
import { operationsOf, planMistakes } from '#grammar/operation-registry.ts'
import { inputsOf, type StepInputs } from '#grammar/resolve-plan.ts'
import type { Outputs } from '#grammar/step-outputs.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { contracts } from '../../../src/contracts.ts'
import { nowMs, readText, registry } from './corpus.ts'

const { names } = registry
const tokenOf = (symbol: string, chainId: string): string =>
  names.bySymbol.get(symbol.toLowerCase())?.tokens.find((token) => token.chainId === chainId)?.address ?? ''
const output = (operation: string, value: JsonObject) => ({ operation, output: value, fetchedAtMs: nowMs })
const held = (...rows: readonly [symbol: string, chainId: string, amount: string][]) =>
  output('wallets_holdings', {
    holdings: rows.map(([symbol, chain_id, amount]) => ({
      symbol,
      chain_id,
      amount,
      token_address: tokenOf(symbol, chain_id),
    })),
  })

function stepInputs(text: string, step: string, outputs: Outputs = {}, earlier: Outputs = {}): StepInputs {
  const intent = readText(text).intents.find(({ steps }) => steps.some(({ id }) => id === step))
  const found = intent?.steps.find(({ id }) => id === step)
  assert.ok(intent && found, `${text} has no step ${step}`)
  return inputsOf(found, { slots: intent.slots, names, outputs, earlier })
}
const input = (text: string, step: string, outputs?: Outputs, earlier?: Outputs): JsonObject => {
  const found = stepInputs(text, step, outputs, earlier)
  assert.equal(found.state, 'ready', JSON.stringify(found))
  return (found.state === 'ready' ? found.inputs[0] : undefined) ?? {}
}
const problem = (text: string, step: string, outputs?: Outputs): string => {
  const found = stepInputs(text, step, outputs)
  if (found.state !== 'problem') return found.state
  return found.problem.problem === 'stop'
    ? found.problem.reason
    : `ask ${found.problem.slot}: ${found.problem.choices.map(({ label }) => label).join(', ')}`
}

test('every plan names operations and fields of the contracts', () => {
  assert.deepEqual(planMistakes(registry.operations), [])
  const [without] = [operationsOf(contracts.filter(({ group }) => group !== 'perp'))]
  assert.ok(planMistakes(without).some((mistake) => mistake.includes('there is no operation perp_open')))
})

test('a swap is previewed as a dry run and executed by its quote', () => {
  const preview = { preview: output('swap_execute', { quote: { quote_id: 'q1' } }) }
  const call = {
    chain_id_in: '8453',
    token_in: tokenOf('ETH', '8453'),
    token_out: tokenOf('USDC', '8453'),
    amount: '400000000000000000',
  }
  assert.deepEqual(input('turn 0.4 eth into usdc on base', 'preview'), { ...call, dryrun: true })
  assert.deepEqual(input('turn 0.4 eth into usdc on base', 'swap', preview), { ...call, quote_id: 'q1' })
})

test('the chain that was not said is the one where the wallet has the most', () => {
  const holdings = { holdings: held(['USDC', '8453', '20000000'], ['USDC', '42161', '90000000']) }
  assert.equal(input('buy $50 of eth', 'preview', holdings).chain_id_in, '42161')
  assert.equal(
    problem('buy $50 of eth', 'preview', { holdings: held() }),
    'Your wallets hold no USDC on a chain where this can be done',
  )
})

test('a share is counted from the balance and rounded down; on two chains it is asked', () => {
  assert.equal(
    input('dump a third of my wif', 'preview', { holdings: held(['WIF', '7565164', '100']) }).amount,
    '33',
  )
  assert.equal(
    problem('sell all my eth', 'preview', { holdings: held(['ETH', '1', '5'], ['ETH', '8453', '7']) }),
    'ask chain: Ethereum, Base',
  )
})

test('a number of what is bought becomes dollars at its price, rounded up to a cent', () => {
  const outputs = {
    holdings: held(['USDC', '8453', '1']),
    perp: output('perp_markets', { markets: [{ symbol: 'ETH', mark_price: '3420.111' }] }),
  }
  assert.equal(input('buy 0.1 eth on base', 'preview', outputs).amount_usd, '342.02')
})

test('a bracket in percent is counted from the price, on the side of the position', () => {
  const outputs = {
    perp: output('perp_markets', {
      markets: [{ symbol: 'AVAX', mark_price: '24.3', price_decimals_max: 4 }],
    }),
  }
  const long = input('long avax $40 10 times leverage sl 10% tp 20%', 'open', outputs)
  assert.deepEqual(
    [long.sl_price, long.tp_price, long.leverage, long.notional_usd],
    ['21.87', '29.16', 10, '40'],
  )
  const short = input('short avax $40 sl 10% tp 20%', 'open', outputs)
  assert.deepEqual([short.sl_price, short.tp_price], ['26.73', '19.44'])
})

const positions = (...assets: readonly string[]) => ({
  orders: output('perp_orders', {
    positions: assets.map((asset) => ({ asset, side: 'long', size: '1.2345', entry_price: '100' })),
    orders: [],
  }),
})

test('a share of a position is rounded down to its own decimals; all of it has no size', () => {
  assert.deepEqual(input('close half of my btc long', 'close', positions('BTC')), {
    asset: 'BTC',
    size: '0.6172',
    order_type: 'market',
  })
  assert.deepEqual(input('close my btc position', 'close', positions('BTC')), {
    asset: 'BTC',
    order_type: 'market',
  })
  assert.equal(
    problem('close my btc position', 'close', positions('ETH')),
    'There is no open position in BTC: ask "my positions" for those that are open.',
  )
})

test('a share of a round size has the decimals of the market, and is never nothing', () => {
  const round = (size: string) => ({
    orders: output('perp_orders', { positions: [{ asset: 'BTC', side: 'long', size }], orders: [] }),
    perp: output('perp_markets', { markets: [{ symbol: 'BTC', size_decimals: 5 }] }),
  })
  assert.equal(input('close half of my btc long', 'close', round('1')).size, '0.5')
  assert.equal(input('close 25% of my btc long', 'close', round('0.3')).size, '0.075')
  assert.match(
    problem('close half of my btc long', 'close', round('0.00001')),
    /smaller than the venue trades/,
  )
  const held = {
    spot: output('spot_venue_orders', { balances: [{ asset: 'HYPE', total: '17', hold: '0' }] }),
    markets: output('spot_venue_markets', { markets: [{ base: 'HYPE', size_decimals: 2 }] }),
  }
  assert.equal(input('sell half of my spot hype', 'sell', held).size, '8.5')
})

test('the only position needs no name, one of several is asked for, and all are closed where all are said', () => {
  assert.equal(input('close my position', 'close', positions('SOL')).asset, 'SOL')
  assert.equal(problem('close my position', 'close', positions('SOL', 'ETH')), 'ask asset: SOL, ETH')
  const all = stepInputs('close all my positions', 'close', positions('SOL', 'ETH'))
  assert.deepEqual(all.state === 'ready' && all.inputs.map(({ asset }) => asset), ['SOL', 'ETH'])
})

test('limits go down, and never up', () => {
  const policy = {
    policy: output('policy_show', {
      per_day_usd: '1000',
      per_transaction_usd: '200',
      approval_above_usd: null,
    }),
  }
  assert.deepEqual(input('lower my daily limit to 500 dollars', 'tighten', policy), { per_day_usd: '500' })
  assert.match(problem('set my daily cap to 2500', 'tighten', policy), /would raise the limit/)
  assert.deepEqual(input('ask for approval above $50', 'tighten', policy), { approval_above_usd: '50' })
})

test('orders of an asset are cancelled where they are; one of several is asked for', () => {
  const none = {
    outstanding: output('outstanding_orders_list', { outstanding_orders: [] }),
    orders: output('perp_orders', { orders: [] }),
  }
  const limit = {
    id: 'o1',
    order_kind: 'limit_order',
    token_in: tokenOf('USDC', '8453'),
    token_out: tokenOf('ETH', '8453'),
  }
  const one = {
    ...none,
    outstanding: output('outstanding_orders_list', {
      outstanding_orders: [limit, { ...limit, id: 'o2', token_out: tokenOf('LINK', '1') }],
    }),
  }
  assert.equal(problem('forget the eth order', 'cancel', none), 'skipped')
  assert.deepEqual(input('forget the eth order', 'cancel', one), { outstanding_order_ids: ['o1'] })
  assert.equal(problem('forget the eth order', 'cancel_perp', one), 'skipped')
  const two = { ...one, orders: output('perp_orders', { orders: [{ asset: 'ETH', order_id: '1' }] }) }
  assert.equal(problem('forget the eth order', 'cancel', two), 'ask all: all of them')
  assert.deepEqual(input('cancel all orders', 'cancel'), { all: true })
})

test('what a sale brought goes into the vault, to the cent', () => {
  const usdc = tokenOf('USDC', '7565164')
  const sold = {
    swap: output('swap_execute', {
      balance_changes: [{ chain_id: '7565164', token_address: usdc, amount: '123456789', decimals: 6 }],
    }),
  }
  assert.deepEqual(input('sell all my wif and put the usdc to work', 'deposit', {}, sold), {
    amount_usdc: '123.45',
  })
})

test('a token is checked on every chain on which its address may be', () => {
  const { tokens } = input('is 0x6982508145454Ce325dDbE47a25d4ec3d2311933 a scam?', 'security')
  assert.deepEqual(
    (tokens as JsonObject[]).map(({ chain_id }) => chain_id),
    ['1', '8453', '42161', '137'],
  )
})

const judge = (text: string, operation: string, call: JsonObject, outputs: Outputs = {}) =>
  permits(mandateOf(readText(text), registry), { operation, input: call }, { names, outputs })

const long = { asset: 'BTC', side: 'long', notional_usd: '500', leverage: 5, order_type: 'market' }

test('a proposal within the words of the user is allowed, also for less', () => {
  const said = 'long btc $500 5x'
  assert.equal(judge(said, 'perp_open', long).allowed, true)
  assert.equal(
    judge(said, 'perp_open', { ...long, notional_usd: '200', leverage: 2, wait: true }).allowed,
    true,
  )
})

test('a proposal that spells out what the contract fills in says nothing more', () => {
  const { order_type: _, ...short } = long
  assert.equal(judge('long btc $500 5x', 'perp_open', short).allowed, true)
  assert.equal(
    judge('long btc $500 5x', 'perp_open', { ...long, tif: 'gtc', reduce_only: false }).allowed,
    true,
  )
  assert.equal(judge('long btc $500 5x', 'perp_open', { ...long, order_type: 'limit' }).allowed, false)
})

test('a proposal beyond the words of the user is refused by the field that is beyond', () => {
  const said = 'long btc $500 5x'
  const beyond: [string, JsonObject][] = [
    ['asset', { ...long, asset: 'ETH' }],
    ['side', { ...long, side: 'short' }],
    ['notional_usd', { ...long, notional_usd: '500.01' }],
    ['leverage', { ...long, leverage: 6 }],
    ['sl_price', { ...long, sl_price: '1' }],
    ['size', { ...long, size: '100' }],
    ['notional_usd', { ...long, notional_usd: '-1' }],
    ['notional_usd', { ...long, notional_usd: '0' }],
    ['notional_usd', { asset: 'BTC', side: 'long', leverage: 5, order_type: 'market' }],
  ]
  for (const [field, call] of beyond) {
    const verdict = judge(said, 'perp_open', call)
    assert.equal(verdict.allowed, false, JSON.stringify(call))
    assert.match(verdict.allowed ? '' : verdict.reason, new RegExp(`^${field} `))
  }
  const protect = { ...long, sl_price: '95000' }
  assert.equal(judge('long btc $500 5x, stop 95000', 'perp_open', protect).allowed, true)
  assert.equal(judge('long btc $500 5x, stop 95000', 'perp_open', long).allowed, false)
})

test('tokens and chains are compared by what they are, not by how they are spelt', () => {
  const call = {
    chain_id_in: 'base',
    token_in: 'eth',
    token_out: tokenOf('USDC', '8453').toUpperCase().replace('0X', '0x'),
    amount: '400000000000000000',
  }
  const said = 'turn 0.4 eth into usdc on base'
  assert.equal(judge(said, 'swap_execute', call).allowed, true)
  assert.equal(
    judge(said, 'swap_execute', { ...call, recipient: '0x0000000000000000000000000000000000000666' }).allowed,
    false,
  )
  assert.equal(judge(said, 'swap_execute', { ...call, chain_id_in: 'arbitrum' }).allowed, false)
  assert.equal(judge(said, 'swap_execute', { ...call, amount: '400000000000000001' }).allowed, false)
})

test('nothing is allowed by a question, a quotation or a thought, and nothing twice', () => {
  for (const text of [
    'price of btc',
    'should i long btc $500 5x?',
    '"long btc $500 5x"',
    'what if i longed btc with $500 at 5x',
    "don't long btc $500 5x",
  ])
    assert.equal(judge(text, 'perp_open', long).allowed, false, text)
  const mandate = mandateOf(readText('long btc $500 5x'), registry)
  const verdict = permits(mandate, { operation: 'perp_open', input: long }, { names, outputs: {} })
  assert.ok(verdict.allowed)
  const rest = used(mandate, verdict.allowed ? verdict.at : 0)
  assert.deepEqual(permits(rest, { operation: 'perp_open', input: long }, { names, outputs: {} }), {
    allowed: false,
    reason: 'what was said is done already',
  })
  assert.equal(judge('long btc $500 5x', 'perp_close', { asset: 'BTC' }).allowed, false)
})

test('a bet is placed on the only market that was found, and of several the user chooses', () => {
  const market = (id: string, question: string, accepting_orders = true): JsonObject => ({
    condition_id: id,
    question,
    accepting_orders,
    outcomes: [
      { outcome: 'Yes', outcome_id: `${id}1` },
      { outcome: 'No', outcome_id: `${id}2` },
    ],
  })
  const found = (...markets: JsonObject[]) => ({ found: output('predmkt_markets', { markets }) })
  const text = 'bet 20 dollars on no for a rate cut'
  const order = { side: 'BUY', order_type: 'FOK', amount_usd: '20' }
  assert.deepEqual(input(text, 'found'), { search_text: 'rate cut', limit: 10 })
  const [open, closed] = [market('7', 'A rate cut in March?'), market('8', 'A rate cut in May?', false)]
  assert.deepEqual(input(text, 'buy', found(open, closed)), { ...order, outcome_id: '72' })
  const other = market('9', 'A rate cut in June?')
  assert.equal(
    problem(text, 'buy', found(open, other)),
    'ask market_id: A rate cut in March?, A rate cut in June?',
  )
  assert.match(problem(text, 'buy', found(closed)), /no market/)
})

test('shares are sold by the words of their market, all of them or a part', () => {
  const position = (outcome: string, title: string, size: string) => ({
    outcome,
    title,
    size,
    outcome_id: `${outcome} ${title}`,
  })
  const positions = [position('Yes', 'Who wins the election?', '12.5'), position('No', 'A rate cut?', '8')]
  const holding = { held: output('predmkt_positions', { positions }) }
  const order = { side: 'SELL', order_type: 'FAK' }
  assert.deepEqual(input('sell my yes shares on the election', 'sell', holding), {
    ...order,
    outcome_id: 'Yes Who wins the election?',
    amount_shares: '12.5',
  })
  assert.deepEqual(input('sell half of my no shares', 'sell', holding), {
    ...order,
    outcome_id: 'No A rate cut?',
    amount_shares: '4',
  })
  assert.equal(
    problem('sell my no shares on the election', 'sell', holding),
    'You have no such shares: "my bets" lists what you have',
  )
})
