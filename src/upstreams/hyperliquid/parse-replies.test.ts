import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLedgerUpdate, parseOrders } from './parse-replies.ts'
import { parseInfo } from './wire.ts'

const me = '0x1111111111111111111111111111111111111111'
const other = '0x2222222222222222222222222222222222222222'

const isOutgoing = (delta: { type: string } & Record<string, unknown>): boolean =>
  parseLedgerUpdate({ time: 1, hash: '0x0', delta }, me).isOutgoing

test('a transfer to another account is outgoing in every form, also where the amount cannot be parsed', () => {
  const sent = { user: me, destination: other, token: 'USDC', amount: '5.0', usdc: '5.0', fee: '1.0' }
  for (const type of ['spotTransfer', 'internalTransfer', 'send', 'subAccountTransfer', 'somethingNew'])
    assert.equal(isOutgoing({ type, ...sent }), true, type)
  assert.equal(
    isOutgoing({ type: 'send', user: me.toUpperCase().replace('0X', '0x'), destination: other }),
    true,
  )
  for (const type of ['withdraw', 'vaultDeposit', 'vaultCreate'])
    assert.equal(isOutgoing({ type, usdc: '5.0', vault: other }), true, type)
  assert.equal(isOutgoing({ type: 'cStakingTransfer', token: 'HYPE', amount: '1', isDeposit: true }), true)
})

test('an incoming transfer, or one within the account, is not outgoing', () => {
  const received = { user: other, destination: me, token: 'USDC', amount: '5.0', fee: '1.0' }
  for (const type of ['spotTransfer', 'send', 'somethingNew'])
    assert.equal(isOutgoing({ type, ...received }), false, type)
  assert.equal(isOutgoing({ type: 'send', user: me, destination: me, destinationDex: 'xyz' }), false)
  assert.equal(isOutgoing({ type: 'vaultWithdraw', user: me, vault: other }), false)
  assert.equal(isOutgoing({ type: 'accountClassTransfer', usdc: '5.0', toPerp: true }), false)
  assert.equal(isOutgoing({ type: 'cStakingTransfer', token: 'HYPE', amount: '1', isDeposit: false }), false)
  assert.equal(isOutgoing({ type: 'deposit', usdc: '5.0' }), false)
})

test('an open order without a list of children is still an order', () => {
  const order = {
    coin: 'BTC',
    side: 'B',
    limitPx: '29792.0',
    sz: '5.0',
    oid: 91490942,
    timestamp: 1681247412573,
    triggerCondition: 'N/A',
    isTrigger: false,
    triggerPx: '0.0',
    isPositionTpsl: false,
    reduceOnly: false,
    orderType: 'Limit',
    origSz: '5.0',
  }
  const read = parseInfo('frontendOpenOrders', JSON.stringify([order])).flatMap(parseOrders)
  assert.deepEqual(
    read.map(({ orderId, size }) => [orderId, size]),
    [[91490942, '5']],
  )
})
