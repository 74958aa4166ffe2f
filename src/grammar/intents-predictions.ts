import type { Line } from './answer-lines.ts'
import * as lines from './answer-lines.ts'
import { any, list } from './feature-rules.ts'
import { framesOf, type SlotRule } from './intent-frame.ts'
import * as rules from './slots-of-several-intents.ts'
import { formula, slot, step, value } from './step-builders.ts'

const found = step('found', 'predmkt_markets', { search_text: slot('question'), limit: value(10) })
/** Where no market has all words of a question, those with its longest word are read. */
const again = step(
  'again',
  'predmkt_markets',
  { search_text: formula('longest_word'), limit: value(10) },
  { guard: 'nothing_found' },
)
const held = step('held', 'predmkt_positions')
const status = step('status', 'predmkt_setup_status')
const resting = step('resting', 'predmkt_open_orders')
const restingLine = (none?: string): Line => ({
  step: 'resting',
  rows: '/orders',
  text: 'Order: {side|text} {original_size|size} of {outcome|text} in "{title|text}"[ at {price|price}], {status|text}.',
  ...(none !== undefined && { none }),
})
const question: SlotRule = { name: 'question', question: 'Which market do you mean?' }
export const predictionReadFrames = framesOf({ domain: 'predictions', effect: 'read' }, [
  {
    intent: 'prediction_markets',
    summary: 'Prediction markets with their odds',
    when: [any('PREDMKT')],
    cues: { PREDMKT: 6 },
    not: any(
      'PREDHELD PREDMKT+HAVE PREDMKT+POSITION PREDMKT+PNL PREDMKT+ORDERS PREDCASH PREDACCOUNT SETUP EXPLAIN HELP',
    ),
    readers: ['question'],
    plan: [found, again],
    answer: lines.predictionMarkets,
    examples: ['what can i bet on', 'prediction markets about the election'],
  },
  {
    intent: 'prediction_positions',
    summary: 'Your shares and open orders at the prediction market',
    when: [any('PREDHELD PREDMKT+HAVE PREDMKT+POSITION PREDMKT+PNL')],
    not: any('SELL CANCEL REDEEM @do PREDCASH PREDACCOUNT'),
    cues: { PREDMKT: 6, PREDHELD: 6, POSITION: 2, HAVE: 1, PNL: 1 },
    readers: [],
    plan: [held, resting],
    answer: [
      {
        step: 'held',
        rows: '/positions',
        text: '{size|size} of {outcome|text} in "{title|text}"[, worth {value_usd|usd}][, cost {cost_usd|usd}][, unrealised {unrealized_usd|usd}].',
        none: 'You have no shares at the prediction market.',
      },
      restingLine(),
    ],
    examples: ['my bets', 'my polymarket positions'],
  },
  {
    intent: 'prediction_orders',
    summary: 'Your open orders at the prediction market',
    when: [any('PREDMKT+ORDERS')],
    cues: { PREDMKT: 6, ORDERS: 4 },
    not: any('CANCEL @do'),
    readers: [],
    plan: [resting],
    answer: [restingLine('No order of yours waits at the prediction market.')],
    examples: ['my open orders at polymarket'],
  },
  {
    intent: 'prediction_account',
    summary: 'Your cash at the prediction market, and whether trading there is set up',
    when: [any('PREDCASH PREDACCOUNT+HAVE')],
    cues: { PREDCASH: 8, PREDACCOUNT: 6, HAVE: 2 },
    not: any('@amount SETUP ORDERS POSITION @do EXPLAIN'),
    readers: [],
    plan: [status],
    answer: [
      {
        text: 'Cash at the prediction market: {/spendable_cash_usd|usd}[, {/locked_usd|usd} in orders]. Set up: {/setup_complete|text}.',
      },
    ],
    examples: ['my polymarket balance'],
  },
])

export const predictionFrames = framesOf({ domain: 'predictions', effect: 'trade' }, [
  {
    intent: 'prediction_buy',
    summary: 'Buys shares of an outcome at the prediction market',
    when: [any('PREDMKT SHARES'), any('BET BUY PUT GIVE')],
    head: list('BET BUY PUT GIVE'),
    cues: { PREDMKT: 6, BET: 3, BUY: 1 },
    not: any('SELL LONG SHORT IF @times PREDACCOUNT @price'),
    readers: ['dollars', 'outcome', 'question'],
    slots: ['amount', 'outcome', 'question', 'market_id'],
    required: [rules.amount, question],
    plan: [
      found,
      again,
      step('buy', 'predmkt_order', {
        outcome_id: formula('bought_outcome'),
        side: value('BUY'),
        order_type: value('FOK'),
        amount_usd: formula('prediction_dollars'),
      }),
    ],
    answer: [...lines.predictionMarkets, lines.task('buy')],
    examples: ['bet 20 dollars on yes for a rate cut', 'buy $10 of no shares on the election'],
  },
  {
    intent: 'prediction_sell',
    isUnoffered: true,
    summary: 'Sells shares of an outcome at the prediction market',
    when: [any('PREDMKT PREDHELD SHARES'), any('SELL CLOSE')],
    head: list('SELL CLOSE'),
    cues: { PREDMKT: 6, PREDHELD: 2, SHARES: 5, SELL: 3, CLOSE: 2 },
    not: any('BUY LONG SHORT IF @times'),
    readers: ['outcome', 'share_amount', 'question'],
    slots: ['amount', 'outcome', 'question', 'market_id'],
    plan: [
      held,
      step('sell', 'predmkt_order', {
        outcome_id: formula('sold_outcome'),
        side: value('SELL'),
        order_type: value('FAK'),
        amount_shares: formula('sold_shares'),
      }),
    ],
    answer: [lines.task('sell')],
    examples: ['sell my yes shares on the election', 'sell half of my no shares'],
  },
  {
    intent: 'prediction_redeem',
    isUnoffered: true,
    effect: 'move',
    summary: 'Redeems the shares of resolved prediction markets',
    when: [any('PREDMKT PREDHELD'), any('REDEEM')],
    head: list('REDEEM WITHDRAW'),
    cues: { PREDMKT: 6, PREDHELD: 2, REDEEM: 6 },
    not: any('@times IF'),
    readers: ['everything'],
    plan: [step('redeem', 'predmkt_redeem', { all: value(true) })],
    answer: [lines.task('redeem')],
    examples: ['redeem my winnings', 'claim my bets'],
  },
  {
    intent: 'prediction_cancel',
    isUnoffered: true,
    effect: 'tighten',
    summary: 'Cancels your orders at the prediction market',
    when: [any('PREDMKT PREDHELD'), any('CANCEL')],
    head: list('CANCEL'),
    cues: { PREDMKT: 6, PREDHELD: 3, CANCEL: 3 },
    not: any('@times IF'),
    readers: ['everything'],
    slots: [],
    plan: [
      resting,
      step('cancel', 'predmkt_cancel', { cancel_all: value(true) }, { guard: 'has_prediction_orders' }),
    ],
    answer: [
      restingLine(
        'No order of yours waits at the prediction market, and shares are sold, not cancelled: "my bets" lists them.',
      ),
      lines.task('cancel'),
    ],
    examples: ['cancel my bets', 'cancel all my polymarket orders'],
  },
  {
    intent: 'prediction_fund',
    effect: 'move',
    summary: 'Moves dollars to the prediction market',
    when: [any('PREDMKT PREDACCOUNT'), any('FUND DEPOSIT MOVE PUT+PREDACCOUNT')],
    head: list('FUND DEPOSIT MOVE PUT'),
    cues: { PREDMKT: 6, PREDACCOUNT: 3, FUND: 3, DEPOSIT: 3, MOVE: 1 },
    not: any('WITHDRAW @times IF FROM+MOVE'),
    readers: ['dollars', 'chain'],
    slots: ['amount', 'chain'],
    required: [rules.amount],
    plan: [
      step('fund', 'predmkt_fund', {
        amount_usd: formula('prediction_dollars'),
        source_chain_id: slot('chain'),
      }),
    ],
    answer: [lines.task('fund')],
    examples: ['fund my polymarket account with 50 dollars'],
  },
  {
    intent: 'prediction_withdraw',
    isUnoffered: true,
    effect: 'move',
    summary: 'Moves cash from the prediction market to your wallet',
    when: [any('PREDMKT'), any('WITHDRAW')],
    head: list('WITHDRAW'),
    cues: { PREDMKT: 6, WITHDRAW: 3 },
    not: any('REDEEM @times IF'),
    readers: ['dollars', 'chain'],
    slots: ['amount', 'chain'],
    required: [rules.amount],
    plan: [
      status,
      step('withdraw', 'predmkt_withdraw', {
        amount_usdc: formula('prediction_cash'),
        destination_chain_id: slot('chain'),
      }),
    ],
    answer: [lines.task('withdraw')],
    examples: ['withdraw 20 dollars from polymarket'],
  },
  {
    intent: 'prediction_setup',
    isUnoffered: true,
    effect: 'move',
    summary: 'Sets trading at the prediction market up',
    when: [any('PREDMKT'), any('SETUP')],
    head: list('SETUP'),
    cues: { PREDMKT: 6, SETUP: 3 },
    not: any('PERP SPOT @times IF'),
    readers: [],
    plan: [step('setup', 'predmkt_setup')],
    answer: [lines.task('setup')],
    examples: ['set up polymarket'],
  },
])
