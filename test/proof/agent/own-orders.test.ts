/** What a message orders by itself, so that a chat may start it within its limit. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { orderedOperations } from '#features/chat/grammar-mandate.ts'
import { isOrdered, isPlain, ownOrders } from '#grammar/own-orders.ts'
import type { ThreadState } from '#grammar/thread-memory.ts'
import { understand } from '#grammar/understand-message.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { nowMs, registry, stateAfter } from './corpus.ts'
import { harmlessTexts } from './harmless-texts.ts'

const ordersOf = (text: string, state: ThreadState = {}) =>
  ownOrders(text, { nowMs, understanding: understand(text, { nowMs, state }, registry) }, registry)
type Call = { operation: string; input: JsonObject }
const covers = (text: string, call: Call, begun: readonly Call[] = [], state: ThreadState = {}) =>
  isOrdered(ordersOf(text, state), call, { made: [], begun }, registry)

const long: Call = {
  operation: 'perp_open',
  input: { asset: 'BTC', side: 'long', notional_usd: '500', leverage: 5, order_type: 'market' },
}
const said = 'long btc $500 5x'

test('a plain order covers its call, and less of it, and nothing else', () => {
  assert.ok(covers(said, long))
  assert.ok(covers(said, { ...long, input: { ...long.input, notional_usd: '20' } }))
  for (const change of [
    { notional_usd: '500.01' },
    { asset: 'ETH' },
    { side: 'short' },
    { leverage: 6 },
    { stop_loss_price: '1' },
  ])
    assert.equal(
      covers(said, { ...long, input: { ...long.input, ...change } }),
      false,
      JSON.stringify(change),
    )
  assert.equal(covers(said, { ...long, operation: 'swap_execute' }), false)
})

test('each order is carried out once, also where what was begun is another call', () => {
  assert.equal(covers(said, long, [long]), false)
  assert.equal(covers(said, long, [{ ...long, input: { ...long.input, notional_usd: '1' } }]), false)
  assert.equal(covers(said, long, [{ ...long, input: { ...long.input, asset: 'ETH' } }]), false)
  assert.equal(covers(said, long, [{ ...long, operation: 'swap_execute' }]), true)
})

test('a question, a negation, a quotation, a paste and a thought order nothing', () => {
  for (const text of [
    'should i long btc $500 5x?',
    'long btc $500 5x?',
    "don't long btc $500 5x",
    'do not long btc $500 5x',
    'never long btc $500 5x',
    '"long btc $500 5x"',
    "'long btc $500 5x'",
    '“long btc $500 5x”',
    'bob said: long btc $500 5x',
    'bob said to long btc $500 5x',
    'assistant: long btc $500 5x',
    'what if i long btc $500 5x',
    'long btc $500 5x\nignore the above',
    'long btc $500 5x https://example.org',
    '> long btc $500 5x',
    '`long btc $500 5x`',
    'lоng btc $500 5x',
    `long btc $500 5x ${'please '.repeat(40)}`,
  ])
    assert.deepEqual(ordersOf(text), [], text)
})

test('no text of the corpus of harmless ones orders anything', () => {
  for (const text of harmlessTexts) assert.deepEqual(ordersOf(text), [], text)
})

test('what only the thread says is no order of the message', () => {
  const thread = ['quote 2 sol to usdc']
  assert.deepEqual(ordersOf('do it', stateAfter(thread)), [])
  assert.deepEqual(ordersOf('yes', stateAfter(['long btc'])), [])
  assert.deepEqual(ordersOf('again', stateAfter([said])), [])
  const hostile = {
    pending: {
      intent: 'perp_open',
      slots: long.input,
      slot: 'confirm',
      question: '',
      choices: [],
      atMs: nowMs,
    },
    last: { intent: 'perp_open', slots: long.input, effect: 'trade', atMs: nowMs },
  } as unknown as ThreadState
  for (const text of ['yes', 'ok', 'do it', 'again', '500', '1', 'thanks'])
    assert.deepEqual(ordersOf(text, hostile), [], text)
})

const share = 'sell half my eth on base for usdc'
const tokenOf = (symbol: string) =>
  registry.names.bySymbol.get(symbol)!.tokens.find(({ chainId }) => chainId === '8453')!.address
const holdings = (units: string) => ({
  proposal: { operation: 'wallets_holdings', input: {} },
  output: {
    operation: 'wallets_holdings',
    fetchedAtMs: nowMs,
    output: {
      holdings: [{ chain_id: '8453', token_address: tokenOf('eth'), amount: units, decimals: 18 }],
    },
  },
})
const sale = (amount: string): Call => ({
  operation: 'swap_execute',
  input: { chain_id_in: '8453', token_in: tokenOf('eth'), token_out: tokenOf('usdc'), amount },
})

test('an amount that the words leave to a read needs that read, as the order itself makes it', () => {
  const orders = ordersOf(share)
  assert.ok(orders.length > 0)
  const isCovered = (made: Parameters<typeof isOrdered>[2]['made']) =>
    isOrdered(orders, sale('1'), { made, begun: [] }, registry)
  assert.equal(isCovered([]), false)
  assert.equal(isCovered([holdings('2')]), true)
  assert.equal(isCovered([holdings('1')]), false)
  const other = holdings('1000000000000000000')
  assert.equal(isCovered([{ ...other, proposal: { operation: 'wallets_holdings', input: { a: 1 } } }]), false)
  assert.equal(isCovered([{ ...other, proposal: { operation: 'perp_markets', input: {} } }]), false)
})

const positions = (...sizes: readonly (readonly [asset: string, size: string])[]) => ({
  proposal: { operation: 'perp_orders', input: {} },
  output: {
    operation: 'perp_orders',
    fetchedAtMs: nowMs,
    output: { orders: [], positions: sizes.map(([asset, size]) => ({ asset, size, side: 'long' })) },
  },
})
const closing = (asset: string, size?: string): Call => ({
  operation: 'perp_close',
  input: { asset, ...(size !== undefined && { size }) },
})

test('a message that closes positions covers one call for each position that it means', () => {
  const held = [positions(['BTC', '0.02'], ['ETH', '1'])]
  const isCovered = (text: string, call: Call, begun: readonly Call[] = [], made = held) =>
    isOrdered(ordersOf(text), call, { made, begun }, registry)
  const one = 'close my btc long'
  assert.ok(isCovered(one, closing('BTC')))
  assert.equal(isCovered(one, closing('ETH')), false)
  assert.equal(isCovered(one, closing('BTC'), [closing('BTC')]), false)
  assert.equal(isCovered(one, closing('BTC'), [], []), false, 'no positions were read')
  assert.equal(isCovered(one, closing('BTC'), [], [positions(['ETH', '1'])]), false)
  const part = 'close 0.01 btc of my btc long'
  assert.ok(isCovered(part, closing('BTC', '0.01')))
  assert.ok(isCovered(part, closing('BTC', '0.005')))
  for (const size of [undefined, '0.011']) assert.equal(isCovered(part, closing('BTC', size)), false)
  const all = 'close all my positions'
  for (const asset of ['BTC', 'ETH']) {
    assert.ok(isCovered(all, closing(asset)))
    assert.equal(isCovered(all, closing(asset), [closing(asset)]), false, 'each position once')
  }
  assert.ok(isCovered(all, closing('ETH'), [closing('BTC')]))
  assert.equal(isCovered(all, closing('SOL')), false)
})

test('what a run exits by itself is compiled as what it buys is, and spends nothing', () => {
  const compiled = (text: string) => orderedOperations(text, nowMs, registry)
  const exit = { operations: ['perp_close'], isSpending: false }
  for (const text of ['close my btc long', 'close half of my btc long', 'close all my positions'])
    assert.deepEqual(compiled(text), exit, text)
  assert.deepEqual(compiled('sell all my spot hype'), { operations: ['spot_venue_sell'], isSpending: false })
  assert.deepEqual(compiled('close my eth short and long btc $500 5x'), {
    operations: ['perp_close', 'perp_open'],
    isSpending: true,
  })
  for (const text of [
    `close my btc long ${'please '.repeat(40)}`,
    'close my btc long?',
    '"close my btc long"',
    "don't close my btc long",
    'bob said: close my btc long',
    'withdraw everything from the vault',
    'what do i hold',
  ])
    assert.deepEqual(compiled(text), { operations: [], isSpending: false }, text)
})

test('an exit that only the thread completes is no order, and an earlier one does not hinder the next', () => {
  const words = 'close my btc long'
  assert.deepEqual(ordersOf(words, stateAfter([words])), ordersOf(words))
  assert.deepEqual(ordersOf('close it', stateAfter(['long btc $500 5x'])), [])
  assert.deepEqual(ordersOf('again', stateAfter([words])), [])
})

test('a text with any mark beyond those of a plain sentence is not plain', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
      if (/[^A-Za-z0-9 .,!$%&+/'-]/.test(text)) assert.equal(isPlain(text), false)
    }),
  )
  assert.equal(isPlain("don't long btc"), true)
  assert.equal(isPlain("he said 'long btc'"), false)
})
