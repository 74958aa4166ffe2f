import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '#kernel/contract/fault.ts'
import { externalAccount, type Move } from '#kernel/task/task.ts'
import { movesToJson, toLedgerError } from './ledger.ts'

const asset = '8453:0xabc'
const hold: Move = {
  move: 'hold',
  key: 'k',
  debit: { owner: 'u', asset, subAccount: 'wallet' },
  credit: externalAccount(asset),
  amountUnits: 25_000_000n,
  reason: 'spend',
  token: { symbol: 'USDC', decimals: 6, address: '0xAbC' },
}
const raised = (figures: object) => ({ code: 'PT001', detail: JSON.stringify(figures) })

test('a ledger error states the amounts in the token of the hold, as decimals', () => {
  const error = raised({ asset, required: '25000000', available: '1500000' })
  const { code, message, extras } = toLedgerError(error, [hold]) as Fault
  assert.deepEqual(
    [code, message],
    ['insufficient_balance', 'The request needs 25 USDC, but only 1.5 USDC is available'],
  )
  assert.deepEqual(extras, {
    symbol: 'USDC',
    token: '0xAbC',
    decimals: 6,
    required: '25',
    available: '1.5',
  })
})

test('other errors of the ledger are unchanged', () => {
  const bug = new Error('bug')
  assert.equal(toLedgerError(bug, [hold]), bug)
})

test('the database receives amounts as text, and nothing of the token', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(movesToJson([hold]))), [
    {
      move: 'hold',
      key: 'k',
      debit: hold.debit,
      credit: hold.credit,
      amountUnits: '25000000',
      reason: 'spend',
    },
  ])
})
