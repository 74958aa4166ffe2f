import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  compareBalances,
  describeDifferences,
  deviationOf,
  fillRow,
  isOutgoingTransfer,
  ledgerUpdateRows,
  observedBalances,
} from './expected-balances.ts'

const map = (entries: Record<string, string>) => new Map(Object.entries(entries))
const update = {
  amountUsd: '5',
  feeUsd: null,
  nonce: 1,
  toPerp: null,
  hash: '0x1',
  isOutgoing: false,
  atMs: 7,
}

test('equal balances have no difference, whatever form zero has', () => {
  const expected = map({ 'position:BTC': '0', cash: '10', 'spot:USDC': '1.5' })
  assert.deepEqual(
    compareBalances(expected, map({ cash: '10', 'spot:USDC': '1.5', 'spot:PURR': '0' }), 3),
    [],
  )
})

test('one unit of a position or of a token is a difference, and cash may differ by its rounding only', () => {
  const expected = map({ 'position:BTC': '0.1', 'spot:PURR': '1', cash: '100' })
  const actual = map({ 'position:BTC': '0.10001', 'spot:PURR': '0.99999999', cash: '100.000002' })
  const found = compareBalances(expected, actual, 1)
  assert.deepEqual(
    found.map(({ balanceKey }) => balanceKey),
    ['cash', 'position:BTC', 'spot:PURR'],
  )
  assert.deepEqual(found.map(deviationOf), ['0.000002', '0.00001', '-0.00000001'])
  assert.deepEqual(
    compareBalances(expected, actual, 2).map(({ balanceKey }) => balanceKey),
    ['position:BTC', 'spot:PURR'],
  )
  assert.equal(
    describeDifferences(found.slice(1, 2)),
    "the position in BTC is 0.10001 at the venue and 0.1 in the gateway's record",
  )
})

test('the smallest printed unit of a position or a token is a difference, however long the record', () => {
  const least = '0.00000001'
  for (const place of ['position:BTC', 'spot:PURR'])
    assert.deepEqual(
      compareBalances(map({ [place]: '1' }), map({ [place]: `1${least.slice(1)}` }), 9).length,
      1,
    )
})

test('a fill adds the bought asset and subtracts the sold one', () => {
  const fill = { tradeId: 1, orderId: 2, cloid: null, symbol: 'BTC', size: '2', price: '3', feeUsd: '0' }
  const rowOf = ({ isBuy }: { isBuy: boolean }) =>
    fillRow(
      { ...fill, isBuy, feeToken: 'USDC', cause: 'order', atMs: 7 } as Parameters<typeof fillRow>[0],
      new Map(),
    )
  assert.deepEqual([rowOf({ isBuy: true }).signed_size, rowOf({ isBuy: false }).signed_size], ['2', '-2'])
})

test('with one balance for both sides only positions are compared', () => {
  const position = { symbol: 'ETH', signedSize: '-2' } as Parameters<
    typeof observedBalances
  >[0]['positions'][number]
  const account = { positions: [position], cashUsd: '9' }
  const tokens = [{ coin: 'USDC', total: '3' }]
  assert.deepEqual([...observedBalances(account, tokens, { balances: false })], [['position:ETH', '-2']])
  assert.deepEqual(
    [...observedBalances(account, tokens, { balances: true })],
    [
      ['position:ETH', '-2'],
      ['spot:USDC', '3'],
      ['cash', '9'],
    ],
  )
})

test('a transfer changes two balances, and an unknown update none', () => {
  const moves = [
    { balance: 'perp', amount: '5' },
    { balance: 'USDC', amount: '-5' },
  ]
  const rows = ledgerUpdateRows({ ...update, type: 'accountClassTransfer', moves })
  assert.deepEqual(
    rows.map(({ balance_key, amount }) => [balance_key, amount]),
    [
      ['cash', '5'],
      ['spot:USDC', '-5'],
    ],
  )
  assert.equal(new Set(rows.map(({ key }) => key)).size, 2)
  assert.deepEqual(
    ledgerUpdateRows({ ...update, type: 'vaultDeposit', moves: null }).map(({ balance_key, kind }) => [
      balance_key,
      kind,
    ]),
    [[null, 'vaultDeposit']],
  )
  assert.equal(isOutgoingTransfer({ ...update, type: 'accountClassTransfer', moves }), false)
  assert.equal(
    isOutgoingTransfer({ ...update, type: 'withdraw', moves: [{ balance: 'perp', amount: '-6' }] }),
    true,
  )
  assert.equal(isOutgoingTransfer({ ...update, type: 'send', moves: null, isOutgoing: true }), true)
  assert.equal(
    isOutgoingTransfer({ ...update, type: 'deposit', moves: [{ balance: 'perp', amount: '5' }] }),
    false,
  )
})
