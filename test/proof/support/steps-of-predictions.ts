/** The steps of prediction markets: from nothing to shares, and the cash back. Nobody resolves a market of a shared world. */
import assert from 'node:assert/strict'
import type { Step } from './door-step.ts'

type Json = Record<string, unknown>

/** Its trades have no fee and no delay. */
const slug = 'fed-cuts-rates-in-december'

const wait = { wait: true, timeout: 60 }
const ended = ({ status, outcome, error }: Json): void =>
  assert.deepEqual([status, outcome, error], ['completed', 'executed', null])
const outcomeOf = ({ outcome_id }: Json): Json => ({ outcome_id })
const amount = '5'

export const predicting: Step[] = [
  { name: 'predmkt_meta' },
  {
    name: 'predmkt_markets',
    input: { search_text: 'Fed cut rates', limit: 5 },
    keep({ markets }, known) {
      const [market] = markets as (Json & { outcomes: Json[] })[]
      assert.equal(market?.slug, slug)
      Object.assign(known, {
        condition_id: market.condition_id,
        outcome_id: market.outcomes[0]?.outcome_id,
      })
    },
  },
  { name: 'predmkt_event', input: { id: slug } },
  { name: 'predmkt_book', input: outcomeOf },
  {
    name: 'predmkt_prices',
    input: (known) => ({ ...outcomeOf(known), interval: '1d', resolution_minutes: 1_440 }),
  },
  {
    name: 'predmkt_quote',
    input: (known) => ({ ...outcomeOf(known), side: 'BUY', amount_usd: amount }),
    keep: ({ complete }) => assert.equal(complete, true),
  },
  { name: 'predmkt_setup', input: wait, fault: 'disclaimer_required' },
  { name: 'predmkt_acknowledge_disclaimer' },
  { name: 'predmkt_open_orders' },
  { name: 'predmkt_setup', input: wait, keep: ended },
  { name: 'predmkt_setup_v2', input: wait, keep: ended },
  { name: 'predmkt_setup_status' },
  { name: 'predmkt_fund', input: { amount_usd: '30', ...wait }, keep: ended },
  {
    name: 'predmkt_order',
    input: (known) => ({
      ...outcomeOf(known),
      side: 'BUY',
      order_type: 'FOK',
      amount_usd: amount,
      ...wait,
    }),
    keep: ended,
  },
  {
    name: 'predmkt_order',
    input: (known) => ({ ...outcomeOf(known), side: 'BUY', price: '0.05', size: '10', ...wait }),
    keep(result, known) {
      ended(result)
      known.prediction_order_id = (result.result as Json).order_id
    },
  },
  { name: 'predmkt_open_orders' },
  {
    name: 'predmkt_cancel',
    input: ({ prediction_order_id }) => ({ order_id: prediction_order_id, ...wait }),
    keep: ended,
  },
  { name: 'predmkt_positions' },
  { name: 'predmkt_activity', input: { limit: 10 } },
  {
    name: 'predmkt_redeem',
    input: ({ condition_id }) => ({ condition_id, ...wait }),
    fault: 'not_resolved',
  },
  { name: 'predmkt_withdraw', input: { amount_usdc: '5', ...wait }, keep: ended },
]
