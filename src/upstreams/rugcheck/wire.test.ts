import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assessReply } from './wire.ts'

const report = {
  mint: 'M',
  rugged: false,
  mintAuthority: null,
  freezeAuthority: null,
  totalMarketLiquidity: 1_000_000,
  risks: [],
  score_normalised: 1,
}
const judged = (changes: object, status = 200) => {
  const { verdict, reasons } = assessReply({ status, body: { ...report, ...changes } }, 'M')
  return [verdict, reasons.map(({ code, level }) => `${code}:${level}`).join()]
}

test('a complete report without risks is safe', () => {
  assert.deepEqual(judged({}), ['safe', ''])
  assert.deepEqual(judged({ risks: null }), ['safe', ''])
})

test('no absent or malformed field counts as harmless', () => {
  for (const name of ['rugged', 'mintAuthority', 'freezeAuthority', 'totalMarketLiquidity', 'risks'])
    for (const value of [undefined, {}, 7n])
      assert.equal(judged({ [name]: value })[0], 'unknown', `${name}: ${String(value)}`)
})

test('what the service calls dangerous is risky', () => {
  assert.deepEqual(judged({ rugged: true }), ['risky', 'rugged:very_high'])
  assert.deepEqual(judged({ mintAuthority: 'k' }), ['risky', 'mint_authority:high'])
  assert.deepEqual(judged({ freezeAuthority: 'k' }), ['risky', 'freeze_authority:high'])
  assert.deepEqual(judged({ totalMarketLiquidity: 4_999 }), ['risky', 'thin_liquidity:high'])
  assert.deepEqual(judged({ risks: [{ name: 'a', level: 'danger' }] }), ['risky', 'provider_risk:high'])
  assert.deepEqual(judged({ risks: [{ name: 'a', level: 'warn' }] }), ['safe', 'provider_risk:medium'])
  assert.deepEqual(judged({ risks: [{ name: 'a', level: 'new word' }] }), ['risky', 'provider_risk:high'])
})

test('foreign text is bounded and shows nothing but itself', () => {
  const name = `safe\u202e\u0000\n${'x'.repeat(500)}`
  const { reasons } = assessReply(
    { status: 200, body: { ...report, risks: [{ name, level: 'danger' }] } },
    'M',
  )
  assert.match(reasons[0]!.message, /^rugcheck: safex{100,}$/)
  assert.ok(reasons[0]!.message.length < 200)
})

test('a report about another mint, and a body that is no report, are refused', () => {
  assert.throws(() => judged({ mint: 'N' }), { code: 'unavailable' })
  assert.throws(() => assessReply({ status: 200, body: null }, 'M'), { code: 'unavailable' })
  assert.throws(() => judged({}, 401), { code: 'unavailable' })
  assert.equal(judged({}, 400)[0], 'unknown')
})
