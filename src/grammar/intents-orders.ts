import * as lines from './answer-lines.ts'
import * as rows from './answer-row-filters.ts'
import { any, list } from './feature-rules.ts'
import { framesOf } from './intent-frame.ts'
import { choose } from './question-choices.ts'
import * as rules from './slots-of-several-intents.ts'
import { formula, onlyIf, slot, step } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

export const orderFrames = framesOf({ domain: 'conditional', effect: 'trade' }, [
  {
    intent: 'limit_order',
    summary: 'An order that swaps when a price is reached',
    when: [any('BUY SELL SWAP'), any('@price LIMIT'), any('@asset')],
    head: list('BUY SELL SWAP SET PUT OPEN'),
    cues: { LIMIT: 3, '@price': 3, IF: 1 },
    not: any(
      '@spotprefer @times PERP SPOT LONG SHORT POSITION STOP TARGET @spotonly @perponly CREDITS DAILY PERTX',
    ),
    readers: ['slippage', 'price', 'expiry', 'chains', 'order_side'],
    slots: ['side', 'asset', 'amount', 'price', 'condition', 'chain', 'expires', 'slippage'],
    required: [
      { name: 'side', question: 'Buy or sell?', choices: choose('side', { buy: 'buy', sell: 'sell' }) },
      { name: 'asset', question: 'Which token?' },
      rules.amount,
      { name: 'price', question: 'At which price in USD?' },
    ],
    plan: [
      onlyIf('needs_holdings', steps.holdings),
      step('order', 'limit_orders_create', {
        chain_id_in: formula('chain_in'),
        token_in: formula('token_in'),
        token_out: formula('token_out'),
        amount: formula('amount_in_units'),
        amount_usd: formula('amount_in_usd'),
        price_usd_trigger: slot('price'),
        condition: slot('condition'),
        trigger_token_address: formula('trigger_token'),
        trigger_token_chain: formula('chain_in'),
        slippage_bps: formula('slippage_bps'),
        expires_at: slot('expires'),
      }),
    ],
    place: 'token',
    waitsForPrice: true,
    answer: [lines.task('order')],
    examples: ['pick up $200 of eth on base once it trades under 2900', 'limit sell 100 arb at 0.60'],
  },
  {
    intent: 'hook',
    summary: 'A stop-loss, a take-profit or a trailing stop on a token that is held',
    when: [any('STOP TARGET TRAILING PROTECT')],
    head: list('SET PROTECT PUT SELL CLOSE'),
    cues: { STOP: 3, TARGET: 3, TRAILING: 3, PROTECT: 2 },
    not: any('POSITION PERP SPOT LONG SHORT @times CANCEL @spotonly @perponly LOWER+DAILY'),
    readers: ['legs', 'chains', 'asset', 'sell_share'],
    slots: ['asset', 'stop', 'target', 'trailing', 'chain', 'share'],
    required: [
      { name: 'asset', question: 'For which asset?' },
      { name: 'stop', question: 'At which price or percentage?', anyOf: ['stop', 'target', 'trailing'] },
    ],
    plan: [
      onlyIf('needs_hook_chain', steps.holdings),
      step('hook', 'hooks_register', {
        chain_id: formula('hook_chain'),
        token_address: formula('hook_token'),
        stop_losses: formula('stop_legs'),
        take_profits: formula('target_legs'),
        trailing_percentage: formula('trailing_fraction'),
      }),
    ],
    place: 'token',
    markets: { perp: 'perp_protect', spot: 'spot_protect' },
    atPerp: (slots, { symbol }) => ({
      label: 'the perpetual position',
      intent: 'perp_protect',
      fill: { ...slots, asset: symbol },
    }),
    answer: [
      {
        step: 'hook',
        rows: '/hooks',
        text: '{type|kind} on {symbol|text} at {trigger_price_usd|price}, sells {sell_percentage|fraction} of it ({id|text}).',
      },
    ],
    examples: ['guard my bonk with a stop at 12% below', 'take profit on my aero at $2'],
  },
  {
    intent: 'cancel_orders',
    effect: 'tighten',
    summary: 'Cancels orders, triggers and hooks',
    when: [any('ORDERS LIMIT STOP TARGET TRAILING @id ^CANCEL+ALL')],
    head: list('CANCEL'),
    cues: { ORDERS: 3, LIMIT: 1, STOP: 2, TARGET: 2, '@id': 2, ALL: 1 },
    not: any('TASK POSITION+ALL RECOMMENDATION'),
    readers: ['id', 'orders_venue', 'everything', 'plain_chain', 'asset', 'one'],
    slots: ['id', 'asset', 'venue', 'all', 'one', 'chain'],
    required: [{ name: 'all', question: 'Which orders?', anyOf: ['all', 'asset', 'id'] }],
    plan: [
      onlyIf('looks_on_chains', steps.outstanding),
      onlyIf('looks_at_perps', steps.perpOrders),
      onlyIf('looks_at_spot', steps.spotOrders),
      step(
        'cancel',
        'outstanding_orders_cancel',
        { outstanding_order_ids: formula('outstanding_ids'), all: formula('all_outstanding') },
        { only: 'cancels_outstanding', guard: 'has_outstanding' },
      ),
      step(
        'cancel_perp',
        'perp_cancel_all',
        { asset: slot('asset') },
        { only: 'cancels_perp', guard: 'has_perp_orders' },
      ),
      step(
        'cancel_spot',
        'spot_venue_cancel_all',
        { asset: slot('asset') },
        { only: 'cancels_spot', guard: 'has_spot_orders' },
      ),
      step(
        'cancel_perp_of_kind',
        'perp_cancel',
        { order_id: formula('row_order_id') },
        { only: 'cancels_perp_of_kind', guard: 'has_perp_orders', each: 'perp_orders_of_kind' },
      ),
      step(
        'cancel_spot_of_kind',
        'spot_venue_cancel',
        { order_id: formula('row_order_id') },
        { only: 'cancels_spot_of_kind', guard: 'has_spot_orders', each: 'spot_orders_of_kind' },
      ),
      step(
        'cancel_perp_id',
        'perp_cancel',
        { order_id: slot('id') },
        { only: 'cancels_perp_id', guard: 'has_perp_id' },
      ),
      step(
        'cancel_spot_id',
        'spot_venue_cancel',
        { order_id: slot('id') },
        { only: 'cancels_spot_id', guard: 'has_spot_id' },
      ),
    ],
    answer: [
      {
        step: 'outstanding',
        rows: '/outstanding_orders',
        pick: rows.ofKind('hook'),
        text: '{type|kind} on {symbol|text} at {trigger_price_usd|price}.',
        none: 'No such stop or target[ of {said(asset)|text}] waits on chains.',
      },
      {
        step: 'outstanding',
        where: ({ venue }) => venue !== 'hook',
        rows: '/outstanding_orders',
        pick: rows.ofKind('limit_order'),
        text: lines.limitOrder,
        none: 'No such limit order[ of {said(asset)|text}] waits on chains.',
      },
      lines.order('orders'),
      lines.order('spot'),
      {
        step: 'cancel',
        text: 'Hooks and limit orders: [{/cancelled/0|text} is cancelled][, {/cancelled/1|text} too]. The list "my open orders" shows what is left.',
      },
      lines.task('cancel_perp'),
      lines.task('cancel_spot'),
      lines.task('cancel_perp_of_kind'),
      lines.task('cancel_spot_of_kind'),
      lines.task('cancel_perp_id'),
      lines.task('cancel_spot_id'),
    ],
    examples: ['forget the eth order', 'cancel all my orders', 'cancel perp order 4123456789'],
  },
])
