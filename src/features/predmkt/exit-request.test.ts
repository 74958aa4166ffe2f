import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { exitTermsOf } from './exit-request.ts'
import type { OrderInput } from './order-request.ts'

const market = { tickMicros: 10_000n } as PredictionMarket
const entryMicros = 420_000n
const exitsOf = (more: Partial<OrderInput>) =>
  exitTermsOf({ outcome_id: '1', side: 'BUY', ...more } as OrderInput, market, entryMicros)
const refuses = (more: Partial<OrderInput>, field: string, type: string): void =>
  assert.throws(
    () => exitsOf(more),
    (fault: unknown) =>
      fault instanceof Fault &&
      fault.issues.some((issue) => issue.path.join() === field && issue.type === type),
  )

test('a take-profit is above what the purchase pays for a share, and a stop-loss below', () => {
  for (const price of ['0.01', '0.41', '0.42'])
    refuses({ take_profit_price: price }, 'take_profit_price', 'greater_than')
  for (const price of ['0.42', '0.43', '0.99'])
    refuses({ stop_loss_price: price }, 'stop_loss_price', 'less_than')
  assert.deepEqual(
    exitsOf({ take_profit_price: '0.43', stop_loss_price: '0.41' }).map(({ leg, price }) => [leg, price]),
    [
      ['tp', '430000'],
      ['sl', '410000'],
    ],
  )
})
