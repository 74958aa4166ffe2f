import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProbeStep, ProbeTrade, TokenProbe } from '#upstreams/evm/token-probe.ts'
import { assessTrade } from './assess-trade.ts'

const step = (quotedUnits: bigint, gotUnits: bigint): ProbeStep => ({
  done: true,
  quotedUnits,
  gotUnits,
  reason: '',
})
const failed: ProbeStep = { done: false, quotedUnits: 10_000n, gotUnits: 0n, reason: 'sales are stopped' }
const even = step(10_000n, 10_000n)
const fairTrade: ProbeTrade = { buy: even, transfer: even, sell: even, liquidityUnits: 10n ** 12n }
const probe = (
  trade: Partial<ProbeTrade> | TokenProbe['trade'],
  more: Partial<TokenProbe> = {},
): TokenProbe => ({
  block: 1n,
  hasCode: true,
  isUpgradeable: false,
  isMinimalProxy: false,
  owner: null,
  trade: 'type' in trade ? trade : { type: 'traded', trade: { ...fairTrade, ...trade } },
  ...more,
})
const judged = (each: TokenProbe) => {
  const { verdict, isHoneypot, reasons } = assessTrade(each)
  return [verdict, isHoneypot, reasons.map(({ code, level }) => `${code}:${level}`).join()]
}

test('a trade without losses is safe', () => {
  assert.deepEqual(judged(probe({})), ['safe', false, ''])
})

test('taxes below a tenth are shown, from there on they are risky, and from a half on a trap', () => {
  assert.deepEqual(judged(probe({ sell: step(10_000n, 9_900n) })), ['safe', false, 'sell_tax:low'])
  assert.deepEqual(judged(probe({ buy: step(10_000n, 9_001n) })), ['safe', false, 'buy_tax:medium'])
  assert.deepEqual(judged(probe({ buy: step(10_000n, 9_000n) })), ['risky', false, 'buy_tax:high'])
  assert.deepEqual(judged(probe({ transfer: step(100n, 90n) })), ['risky', false, 'transfer_tax:high'])
  assert.deepEqual(judged(probe({ sell: step(10_000n, 5_000n) })), ['risky', true, 'sell_tax:honeypot'])
  assert.deepEqual(judged(probe({ sell: step(10_000n, 0n) })), ['risky', true, 'sell_tax:honeypot'])
})

test('what cannot be sold is a honeypot, and what cannot be bought or transferred is risky', () => {
  assert.deepEqual(judged(probe({ sell: failed })), ['risky', true, 'sell_failed:honeypot'])
  assert.deepEqual(judged(probe({ sell: step(0n, 0n) })), ['risky', true, 'sell_failed:honeypot'])
  assert.deepEqual(judged(probe({ buy: failed })), ['risky', null, 'buy_failed:high'])
  assert.deepEqual(judged(probe({ buy: step(10_000n, 0n) })), ['risky', null, 'buy_failed:high'])
  assert.deepEqual(judged(probe({ transfer: failed })), ['risky', false, 'transfer_failed:high'])
})

test('without a simulated trade nothing is safe', () => {
  assert.deepEqual(judged(probe({ type: 'no_pool' })), ['unknown', null, 'no_pool:unknown'])
  assert.deepEqual(judged(probe({ type: 'not_simulated', reason: 'no override' })), [
    'unknown',
    null,
    'not_simulated:unknown',
  ])
  assert.deepEqual(judged(probe({}, { hasCode: false })), ['risky', null, 'no_code:high'])
})

test('code that can be replaced is risky, whatever its trade shows; an owner is only shown', () => {
  assert.deepEqual(judged(probe({}, { isUpgradeable: true })), ['risky', false, 'upgradeable:high'])
  assert.deepEqual(judged(probe({ type: 'no_pool' }, { isUpgradeable: true }))[0], 'risky')
  assert.deepEqual(judged(probe({}, { owner: '0x1', isMinimalProxy: true })), [
    'safe',
    false,
    'minimal_proxy:low,owner_not_renounced:medium',
  ])
})

test('a pool below five thousand dollars is thin', () => {
  assert.deepEqual(judged(probe({ liquidityUnits: 4_999_999_999n })), ['risky', false, 'thin_liquidity:high'])
  assert.deepEqual(judged(probe({ liquidityUnits: 5_000_000_000n })), ['safe', false, ''])
  assert.deepEqual(judged(probe({ liquidityUnits: null })), ['safe', false, 'liquidity_unknown:medium'])
})
