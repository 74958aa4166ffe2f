import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import {
  chargeOf,
  disputeOf,
  eventOf,
  invoicesOf,
  pageOf,
  priceOf,
  readReply,
  sessionOf,
  subscriptionOf,
} from './wire.ts'

const recurring = { interval: 'month', interval_count: 1 }
const price = { id: 'price_1', unit_amount: 1_000, currency: 'usd', recurring, active: true }
const metadata = { portico_user: '00000000-0000-7000-8000-000000000001' }
const session = { id: 'cs_1', url: 'https://pay.example', status: 'open', subscription: 'sub_1' }
const subscription = {
  id: 'sub_1',
  object: 'subscription',
  customer: { id: 'cus_1' },
  metadata,
  status: 'active',
  items: { data: [{ id: 'si_1', price, current_period_end: 1_800_000_000 }] },
  cancel_at_period_end: false,
  created: 1_790_000_000,
  ended_at: 1_800_000_000,
}
const line = {
  amount: 1_000,
  quantity: 1,
  period: { end: 1_800_000_000 },
  pricing: { price_details: { price: 'price_1' } },
}
const invoice = {
  id: 'in_1',
  status: 'paid',
  billing_reason: 'subscription_create',
  currency: 'usd',
  total: 1_000,
  amount_paid: 1_000,
  hosted_invoice_url: 'https://pay.example/i',
  lines: { data: [line] },
  payments: { data: [{ status: 'paid', payment: { payment_intent: 'pi_1' } }] },
  created: 1_790_000_000,
  status_transitions: { paid_at: 1_790_000_001 },
}
const event = { id: 'evt_1', type: 'customer.subscription.updated', livemode: false }

const replies = [
  [priceOf, price],
  [sessionOf, session],
  [pageOf, session],
  [subscriptionOf, subscription],
  [invoicesOf, { data: [invoice] }],
  [chargeOf, { latest_charge: { amount_refunded: 250, disputed: true } }],
  [disputeOf, { data: [{ status: 'won' }] }],
  [eventOf, { ...event, data: { object: subscription } }],
  [eventOf, { ...event, data: { object: { ...invoice, object: 'invoice' } } }],
  [eventOf, { ...event, data: { object: { object: 'charge', payment_intent: 'pi_1' } } }],
] as [(fields: Record<string, unknown>) => unknown, object][]

const lies = [null, undefined, -1, 1.5, 1e18, 2 ** 53 - 1, 'x', '', [], {}, [null], true, { data: [] }]

type Node = Record<string, unknown>
/** Returns a copy for each place and each lie, with the lie at that place. */
function* liesIn(node: unknown): Generator<unknown> {
  if (typeof node !== 'object' || node === null) return
  for (const [name, value] of Object.entries(node)) {
    const copyWith = (other: unknown): unknown =>
      Array.isArray(node)
        ? node.map((each, index) => (String(index) === name ? other : each))
        : { ...(node as Node), [name]: other }
    for (const lie of lies) yield copyWith(lie)
    for (const below of liesIn(value)) yield copyWith(below)
  }
}

/** Dates that no database takes, and negative amounts where the records have none. */
function assertUsable(value: unknown, name = ''): void {
  if (value instanceof Date) assert.ok(value.toISOString().length === 24, name)
  else if (typeof value === 'bigint') assert.ok(name === 'totalCents' || value >= 0n, `${name}: ${value}`)
  else if (typeof value === 'object' && value !== null)
    for (const [below, each] of Object.entries(value)) assertUsable(each, below)
}

test('a lie in any field of a reply is read as something usable, or is a fault of the provider', () => {
  let refused = 0
  let read = 0
  for (const [reader, authentic] of replies) {
    assertUsable(readReply(JSON.stringify(authentic), reader))
    for (const changed of liesIn(authentic))
      try {
        assertUsable(readReply(JSON.stringify(changed), reader))
        read += 1
      } catch (error) {
        assert.ok(error instanceof Fault && error.code === 'upstream_changed', `${error}`)
        refused += 1
      }
  }
  assert.ok(refused > 100 && read > 100, `${refused} refused, ${read} read`)
})
