/** Short answers in a thread: what they complete, what they change, and when a thread is too old for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { questionText } from '#grammar/clarifying-question.ts'
import { remember, type ThreadState } from '#grammar/thread-memory.ts'
import { understand } from '#grammar/understand-message.ts'
import { nowMs, readText, registry, stateAfter } from './corpus.ts'
import { mutationsOf } from './grade.ts'

const pendingMs = 10 * 60_000
const contextMs = 30 * 60_000

const at = (text: string, state: ThreadState, afterMs: number) =>
  understand(text, { nowMs: nowMs + afterMs, state }, registry)

test('a question has numbered choices, and their number, their words or a value answers it', () => {
  const { ask } = readText('buy $100 of btc')
  assert.ok(ask)
  assert.equal(
    questionText(ask),
    'BTC itself is on no chain here. Which do you mean?\n1. WBTC\n2. cbBTC\n3. UBTC\n4. a long position in BTC'.replace(
      '3. UBTC\n4.',
      '3.',
    ),
  )
  for (const [reply, intent, asset] of [
    ['2', 'swap', 'cbBTC'],
    ['wbtc', 'swap', 'WBTC'],
    ['a long position', 'perp_open', 'BTC'],
  ] as const) {
    const [found] = readText(reply, ['buy $100 of btc']).intents
    assert.deepEqual([found?.name, found?.slots.asset_out ?? found?.slots.asset], [intent, asset], reply)
  }
})

test('a doubt, a refusal or a remark about a choice chooses nothing', () => {
  for (const reply of [
    'not the vault',
    'the vault?',
    'the first one is bad',
    'should i take the vault',
    'if the vault is safe',
    '1?',
    'my friend says the vault',
  ])
    assert.deepEqual(mutationsOf(readText(reply, ['deposit $100'])), [], reply)
  for (const reply of ['yes?', 'yes if it is safe', 'not yet', 'is it wrong', 'he said yes', 'do it?'])
    assert.deepEqual(mutationsOf(readText(reply, ['convrt 20 usdc to jup'])), [], reply)
  for (const reply of ['do it?', 'should i do it', "don't do it", 'he says do it', 'do it if you want'])
    assert.deepEqual(mutationsOf(readText(reply, ['quote 100 dollars of bonk'])), [], reply)
  assert.deepEqual(mutationsOf(readText('same on polygon?', ['sell 5 link on arbitrum'])), [])
  for (const reply of ['the vault', 'vault', '1', 'the first one please'])
    assert.equal(readText(reply, ['deposit $100']).intents[0]?.name, 'earn_deposit', reply)
})

test('an open question is forgotten after ten minutes, and the context of a thread after thirty', () => {
  const open = stateAfter(['buy some aero'])
  assert.equal(at('$75', open, pendingMs).intents[0]?.name, 'swap')
  assert.deepEqual(at('$75', open, pendingMs + 1).intents, [])
  const quoted = stateAfter(['quote 100 dollars of bonk'])
  assert.equal(at('make it 50', quoted, contextMs).intents[0]?.slots.amount, '50 usd')
  assert.deepEqual(at('make it 50', quoted, contextMs + 1).intents, [])
  assert.equal(at('do it', quoted, pendingMs).intents[0]?.name, 'swap')
  assert.deepEqual(at('do it', quoted, pendingMs + 1).intents, [])
})

test('a new request drops the open question', () => {
  const state = stateAfter(['buy some aero'])
  const understanding = at('price of sol', state, 0)
  assert.equal(understanding.intents[0]?.name, 'price')
  assert.equal(remember(state, understanding, nowMs).pending, undefined)
})

test('a fragment never repeats an order that was given; asked for again, it does', () => {
  const thread = ['sell 5 link on arbitrum']
  assert.equal(readText('make it 10', thread).ask?.slot, 'confirm')
  assert.deepEqual(readText('yes', thread).intents, [])
  assert.equal(readText('same on polygon', thread).intents[0]?.slots.chain, '137')
})

test('yes and no are about the recommendations that are open', () => {
  const one: ThreadState = { recommendations: { items: [{ id: 'r1' }], atMs: nowMs } }
  assert.deepEqual(at('do it', one, 0).intents[0]?.decision, { recommendationId: 'r1', status: 'accepted' })
  assert.deepEqual(at('no thanks', one, 0).intents[0]?.decision, {
    recommendationId: 'r1',
    status: 'declined',
  })
  const two: ThreadState = { recommendations: { items: [{ id: 'r1' }, { id: 'r2' }], atMs: nowMs } }
  assert.equal(at('yes', two, 0).ask?.slot, 'id')
  assert.deepEqual(at('accept the second one', two, 0).intents[0]?.decision, {
    recommendationId: 'r2',
    status: 'accepted',
  })
  assert.deepEqual(at('yes', one, contextMs + 1).intents, [])
  assert.deepEqual(at('buy $50 of aero', one, 0).intents[0]?.decision, undefined)
})

test('it is the asset in focus', () => {
  assert.equal(readText('set a stop loss on it at 10%', ['buy $50 of aero']).intents[0]?.slots.asset, 'AERO')
  assert.equal(readText('set a stop loss on it at 10%').ask?.slot, 'asset')
  assert.equal(readText('put a stop on it at 2800', ['long eth $50 2x']).intents[0]?.name, 'perp_protect')
})

test('nothing of a message moves while a part of it is open', () => {
  for (const text of [
    'buy $20 of bonk and sell my wif',
    'buy $20 of bonk and send 50 usdc to my brother',
    'buy $20 of bonk. my friend says sell all my wif',
  ]) {
    const { intents } = readText(text)
    assert.deepEqual(
      intents.filter(({ effect }) => effect === 'trade'),
      [],
      text,
    )
  }
  const many = Array.from({ length: 6 }, () => 'buy $20 of bonk').join(', then ')
  assert.deepEqual(
    readText(many).notes.map(({ kind }) => kind),
    ['too_many'],
  )
})

test("a long text is nobody's order", () => {
  const { intents, notes } = readText(`buy $20 of bonk ${'on the solana chain '.repeat(60)}`)
  assert.deepEqual([intents, notes.map(({ kind }) => kind)], [[], ['too_long']])
})
