import * as lines from './answer-lines.ts'
import { any, list } from './feature-rules.ts'
import { framesOf } from './intent-frame.ts'
import { choose } from './question-choices.ts'
import * as rules from './slots-of-several-intents.ts'
import { formula, onlyIf, slot, step } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

export const perpFrames = framesOf({ domain: 'perp', effect: 'tighten', place: 'perp' }, [
  {
    intent: 'perp_setup',
    summary: 'Makes a trading key and has it approved',
    when: [any('PERP'), any('SETUP')],
    head: list('SETUP OPEN SET'),
    cues: { SETUP: 3 },
    not: any('@asset @amount'),
    plan: [steps.setupStatus, step('setup', 'perp_setup', {}, { guard: 'is_not_set_up' })],
    answer: [
      {
        text: 'Set up before: {/setup_complete|text}. Account value {/account_value_usd|usd}, smallest deposit {/min_fund_usd|usd}.',
      },
      lines.task('setup'),
    ],
    examples: ['get me ready for futures'],
  },
  {
    intent: 'perp_fund',
    effect: 'move',
    summary: 'Moves dollars from the wallets to the perpetual account',
    when: [any('FUND DEPOSIT PUT MOVE ADDS'), any('PERP MARGIN')],
    head: list('FUND DEPOSIT PUT MOVE SET'),
    cues: { FUND: 2, PERP: 2, MARGIN: 1, '@amount': 1 },
    not: any('LONG SHORT @times STOP TARGET WITHDRAW EARN @chainto+PERPFROM'),
    readers: ['chain', 'dollars'],
    slots: ['amount', 'chain'],
    required: [rules.amount],
    plan: [
      onlyIf('amount_is_share', steps.holdings),
      step('fund', 'perp_fund', { amount_usd: formula('fund_usd'), source_chain_id: slot('chain') }),
    ],
    answer: [lines.task('fund')],
    examples: ['put 100 usdc on the perp side', 'fund perps with $200 from base'],
  },
  {
    intent: 'perp_withdraw',
    effect: 'move',
    summary: 'Moves collateral from the perpetual account to the own wallet',
    when: [any('WITHDRAW MOVE PUT'), any('PERP MARGIN')],
    head: list('WITHDRAW MOVE PUT SELL'),
    cues: { WITHDRAW: 3, PERP: 2, MARGIN: 2, PERPFROM: 2 },
    not: any('LONG SHORT @times STOP TARGET EARN OTHERPERSON FIAT'),
    readers: ['moving_chains_back', 'dollars', 'all_margin'],
    slots: ['amount', 'chain'],
    required: [rules.amount],
    plan: [
      onlyIf('amount_is_share', steps.setupStatus),
      step('withdraw', 'perp_withdraw', {
        amount_usd: formula('withdraw_usd'),
        destination_chain_id: slot('chain'),
      }),
    ],
    answer: [lines.task('withdraw')],
    examples: ['take 50 dollars of margin back to base', 'withdraw everything from perps'],
  },
  {
    intent: 'perp_open',
    effect: 'trade',
    summary: 'Opens a perpetual position, with leverage and a bracket',
    when: [any('LONG SHORT @times+BUY @times+SELL PERP+BUY PERP+SELL OPEN+POSITION')],
    head: list('LONG SHORT OPEN BUY SELL SET PUT GIVE'),
    cues: { LONG: 3, SHORT: 3, '@times': 2, PERP: 1, '@amount': 1 },
    not: any(
      '^SET+STOP+MINE ^SET+TARGET+MINE CLOSE REDUCE HAVE PNL LIQUIDATION ANALYSIS IF+REPORT SETUP_ PROTECT EARN CREDITS POSITION+MINE SPOT',
    ),
    readers: ['leverage', 'margin', 'slippage', 'legs', 'price', 'side', 'sized'],
    slots: ['asset', 'side', 'amount', 'leverage', 'price', 'stop', 'target', 'margin', 'slippage'],
    required: [
      { name: 'asset', question: 'Which market?' },
      { name: 'side', question: 'Long or short?', choices: choose('side', { long: 'long', short: 'short' }) },
      { name: 'amount', question: 'How much, in dollars or in the coin?' },
    ],
    plan: [
      steps.perpMarket(slot('asset')),
      step('open', 'perp_open', {
        asset: slot('asset'),
        side: slot('side'),
        size: formula('size'),
        notional_usd: formula('notional_usd'),
        leverage: formula('leverage'),
        is_cross: formula('is_cross'),
        ...steps.venueOrder,
        tp_price: formula('target_price'),
        sl_price: formula('stop_price'),
      }),
    ],
    answer: [
      lines.perpPrice,
      {
        step: 'perp',
        where: ({ amount, leverage }) => leverage !== undefined && amount?.endsWith(' usd') === true,
        text: 'The amount was read as the size of the position; its margin is that size, divided by the leverage.',
      },
      lines.task('open'),
    ],
    examples: ['short 0.5 eth at 3x, stop 3600, target 2800', 'long btc $500 5x'],
  },
  {
    intent: 'perp_close',
    summary: 'Closes or reduces a position',
    when: [
      any('CLOSE REDUCE SELL SWAP+PERP WITHDRAW+LONG WITHDRAW+SHORT WITHDRAW+POSITION'),
      any('^CLOSE+ALL POSITION PERP LONG SHORT @perpasset LONG_ SHORT_ TRADEWORD'),
    ],
    head: list('CLOSE REDUCE SELL LOWER WITHDRAW'),
    cues: { CLOSE: 3, REDUCE: 3, POSITION: 2, PERP: 1, LONG: 1, SHORT: 1 },
    not: any('EARN CREDITS DAILY PERTX LIMITS SPOT SELL+@asset+@tokenasset HAVE ORDERS @times'),
    readers: ['slippage', 'price', 'close_amount'],
    slots: ['asset', 'amount', 'price', 'slippage'],
    plan: [
      steps.perpOrders,
      onlyIf('amount_is_part', steps.perpMarket(slot('asset'))),
      step(
        'close',
        'perp_close',
        {
          asset: formula('close_asset'),
          size: formula('close_size'),
          order_type: formula('order_type'),
          limit_price: slot('price'),
          slippage_pct: formula('slippage_pct'),
        },
        { each: 'positions_to_close' },
      ),
    ],
    answer: [lines.task('close')],
    examples: ['close half of my btc long', 'close all my positions', 'reduce my sol short by 25%'],
  },
  {
    intent: 'perp_protect',
    summary: 'Sets or replaces the stop-loss and take-profit of a position',
    when: [any('STOP TARGET PROTECT'), any('POSITION PERP LONG SHORT @perponly')],
    head: list('SET PROTECT PUT MOVE LOWER RAISE'),
    cues: { STOP: 3, TARGET: 3, POSITION: 2, LONG: 2, SHORT: 2 },
    not: any('@times OPEN @usd+LONG SPOT CANCEL'),
    readers: ['legs', 'asset'],
    slots: ['asset', 'stop', 'target'],
    required: [rules.legs],
    plan: [
      steps.perpOrders,
      step('protect', 'perp_tp_sl', {
        asset: formula('close_asset'),
        tp_price: formula('position_target'),
        sl_price: formula('position_stop'),
      }),
    ],
    answer: [lines.task('protect')],
    examples: ['set a stop on my btc long at 95000', 'move the target of my eth short to 2900'],
  },
])
