import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OutcomeOrderAction, PredictionAction } from '#kernel/money/prediction-actions.ts'
import type { DecodedCall, PredictionIntent } from '#kernel/task/signer.ts'
import { assertPredictionIntent, type SigningPredictionVenue } from './prediction-rules.ts'

const own = '0x1111111111111111111111111111111111111111'
const wallet = '0x2222222222222222222222222222222222222222'
const safe = '0x3333333333333333333333333333333333333333'
const stranger = '0x4444444444444444444444444444444444444444'
const cash = '0x5555555555555555555555555555555555555555'
const exchange = '0x6666666666666666666666666666666666666666'
const shares = '0x7777777777777777777777777777777777777777'
const zero = `0x${'0'.repeat(64)}`
const now = new Date('2026-11-30T12:00:00Z')

const venue: SigningPredictionVenue = {
  venue: 'polymarket',
  chainId: '137',
  walletsOf: (owner) =>
    owner === own
      ? [
          { kind: 'deposit_wallet', wallet },
          { kind: 'safe', wallet: safe },
        ]
      : [],
  cashToken: cash,
  exchanges: ['standard', 'v3'],
  spenders: [exchange],
  ramps: [],
  shareTokens: [shares],
  redeemers: [exchange],
  builder: zero,
  maxMicros: 1_000_000_000n,
  operations: {
    approve: ['setup'],
    withdraw: ['withdraw'],
    redeem: ['redeem'],
    fund: [],
    migrate: ['migrate'],
  },
}

const order: OutcomeOrderAction = {
  type: 'order',
  exchange: 'standard',
  salt: 1n,
  walletKind: 'deposit_wallet',
  wallet,
  owner: own,
  outcomeId: '123',
  side: 'buy',
  makerUnits: 20_000_000n,
  takerUnits: 50_000_000n,
  timestampMs: now.getTime(),
  metadata: zero,
  builder: zero,
}

type Given = { action?: PredictionAction; read?: DecodedCall | undefined } & Partial<
  Pick<PredictionIntent, 'operation' | 'usdMicros' | 'exit' | 'chainId' | 'account'>
>
function check({ action = order, read, ...given }: Given) {
  const intent: PredictionIntent = {
    type: 'prediction_action',
    venue: 'polymarket',
    chainId: '137',
    userId: 'u',
    taskId: 't',
    operation: 'order',
    tokens: [],
    recipients: [],
    usdMicros: 20_000_000n,
    exit: false,
    account: own,
    ...given,
    action,
  }
  return assertPredictionIntent({ intent, own, venue, now, readCall: () => read })
}
const refuses = (given: Given, rule: string) =>
  assert.throws(
    () => check(given),
    (fault: { extras: { rule: string } }) => fault.extras.rule === `signer_${rule}`,
  )

test('an order within its declared value is signed', () => {
  assert.equal(check({}), order)
  assert.equal(
    check({ action: { ...order, side: 'sell', makerUnits: 50n, takerUnits: 20n }, exit: true }).type,
    'order',
  )
})

test('an order is refused that spends more than declared, or for another wallet, exchange, builder or time', () => {
  refuses({ usdMicros: 19_999_999n }, 'notional')
  refuses({ exit: true }, 'exit')
  refuses({ action: { ...order, wallet: stranger } }, 'account')
  refuses({ action: { ...order, wallet: safe } }, 'account')
  refuses({ action: { ...order, owner: stranger } }, 'signer')
  refuses({ action: { ...order, exchange: 'unknown' } }, 'contract')
  refuses({ action: { ...order, builder: `0x${'1'.repeat(64)}` } }, 'builder')
  refuses({ action: { ...order, metadata: `0x${'1'.repeat(64)}` } }, 'metadata')
  refuses({ action: { ...order, salt: 2n ** 53n } }, 'nonce')
  refuses({ action: { ...order, timestampMs: now.getTime() - 2 * 86_400_000 } }, 'time')
  refuses({ action: { ...order, makerUnits: 51_000_000n }, usdMicros: 60_000_000n }, 'price')
  refuses(
    {
      action: { ...order, makerUnits: 2_000_000_000n, takerUnits: 3_000_000_000n },
      usdMicros: 3_000_000_000n,
    },
    'cap',
  )
  refuses({ chainId: '1' }, 'venue')
  refuses({ account: stranger }, 'account')
})

const batch: PredictionAction = {
  type: 'wallet_batch',
  owner: own,
  wallet,
  nonce: 0n,
  deadlineSeconds: now.getTime() / 1_000 + 600,
  calls: [{ to: cash, value: 0n, data: '0x' }],
}
const sent = (to: string, amountUnits = 5n): DecodedCall => ({
  name: 'transfer',
  token: cash,
  to,
  amountUnits,
})

test('the calls of a wallet do only what their operation is for', () => {
  const approval: DecodedCall = { name: 'approve', token: cash, spender: exchange, amountUnits: 1n }
  assert.equal(check({ action: batch, read: approval, operation: 'setup' }), batch)
  refuses({ action: batch, read: approval, operation: 'withdraw' }, 'approval')
  refuses({ action: batch, read: { ...approval, spender: stranger }, operation: 'setup' }, 'approval')
  assert.equal(check({ action: batch, read: sent(own), operation: 'withdraw', exit: true }), batch)
  refuses({ action: batch, read: sent(stranger), operation: 'withdraw' }, 'recipient')
  refuses({ action: batch, read: sent(own), operation: 'setup' }, 'recipient')
  refuses({ action: batch, read: sent(own, 1_000_000_001n), operation: 'withdraw' }, 'cap')
  const redemption: DecodedCall = { name: 'redeem_shares', contract: exchange }
  assert.equal(check({ action: batch, read: redemption, operation: 'redeem' }), batch)
  refuses({ action: batch, read: { ...redemption, contract: stranger }, operation: 'redeem' }, 'contract')
  refuses({ action: batch, read: undefined, operation: 'setup' }, 'selector')
})

test('a Safe moves cash and shares to the deposit wallet of its owner alone', () => {
  const moving: PredictionAction = { type: 'safe_batch', owner: own, safe, nonce: 0n, calls: batch.calls }
  const shareMove = (to: string): DecodedCall => ({ name: 'move_shares', token: shares, from: safe, to })
  assert.equal(check({ action: moving, read: sent(wallet), operation: 'migrate' }), moving)
  assert.equal(check({ action: moving, read: shareMove(wallet), operation: 'migrate' }), moving)
  refuses({ action: moving, read: shareMove(stranger), operation: 'migrate' }, 'recipient')
  refuses({ action: moving, read: sent(stranger), operation: 'migrate' }, 'recipient')
  refuses({ action: moving, read: shareMove(wallet), operation: 'setup' }, 'recipient')
})

test('a batch is refused for another wallet, with value, or with a deadline beyond the hour', () => {
  const approval: DecodedCall = { name: 'approve', token: cash, spender: exchange, amountUnits: 1n }
  const given = { read: approval, operation: 'setup' }
  refuses({ ...given, action: { ...batch, wallet: stranger } }, 'account')
  refuses({ ...given, action: { ...batch, calls: [{ to: cash, value: 1n, data: '0x' }] } }, 'value')
  refuses({ ...given, action: { ...batch, calls: [] } }, 'calls')
  refuses({ ...given, action: { ...batch, deadlineSeconds: now.getTime() / 1_000 + 3_601 } }, 'deadline')
})
