import * as lines from './answer-lines.ts'
import { any, list } from './feature-rules.ts'
import { framesOf } from './intent-frame.ts'
import * as rules from './slots-of-several-intents.ts'
import { formula, onlyIf, step } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

export const earnFrames = framesOf({ domain: 'earn', effect: 'move' }, [
  {
    intent: 'earn_deposit',
    summary: 'Deposits USDC into the vault',
    when: [any('DEPOSIT PUT MOVE FUND SWAP+EARN BUY+EARN'), any('EARN PUTTOWORK EARNED')],
    head: list('DEPOSIT PUT MOVE FUND BUY SET'),
    cues: { EARN: 4, DEPOSIT: 2, '@amount': 1 },
    not: any('PERP WITHDRAW @times LONG SHORT SPOT PACK EARNFROM'),
    readers: ['dollars'],
    slots: ['amount'],
    required: [rules.amount],
    plan: [
      onlyIf('amount_is_share_now', steps.holdings),
      steps.vault,
      step('deposit', 'earn_deposit', { amount_usdc: formula('deposit_usdc') }),
    ],
    takesProceeds: true,
    answer: [lines.task('deposit')],
    examples: ['park 250 usdc in the vault', 'put all my usdc into earn'],
  },
  {
    intent: 'earn_withdraw',
    summary: 'Withdraws USDC from the vault',
    when: [any('WITHDRAW MOVE SELL CLOSE CANCEL'), any('EARN EARNED')],
    head: list('WITHDRAW MOVE SELL CLOSE CANCEL'),
    cues: { WITHDRAW: 4, EARN: 4, EARNFROM: 2 },
    not: any('PERP @times SPOT OTHERPERSON FIAT ORDERS'),
    readers: ['dollars'],
    slots: ['amount'],
    required: [rules.amount],
    plan: [
      steps.vaultPositions,
      step(
        'withdraw',
        'earn_withdraw',
        { position_id: formula('earn_position'), amount_usdc: formula('earn_amount') },
        { each: 'positions_to_withdraw' },
      ),
    ],
    answer: [lines.task('withdraw')],
    examples: ['pull everything out of earn', 'withdraw 120 from the vault'],
  },
  {
    intent: 'deposit',
    summary: 'A deposit that does not say where to: the vault or the perpetual account',
    when: [any('DEPOSIT+^DEPOSIT FUND+^FUND')],
    head: list('DEPOSIT FUND'),
    not: any(
      'PERP EARN EARNED MARGIN PUTTOWORK SPOT CREDITS PACK LONG SHORT @times OTHERPERSON @address ADDRESS',
    ),
    readers: ['dollars', 'chain'],
    slots: ['amount'],
    required: [
      {
        name: 'place',
        question: 'Where to: the vault, or the perpetual account?',
        choices: [
          { label: 'the vault', intent: 'earn_deposit', fill: {} },
          { label: 'the perpetual account', intent: 'perp_fund', fill: {} },
        ],
      },
    ],
    examples: ['deposit $100'],
  },
  {
    intent: 'withdraw',
    summary: 'A withdrawal that does not say where from: the vault or the perpetual account',
    when: [any('^WITHDRAW')],
    head: list('WITHDRAW'),
    not: any(
      'PERP EARN EARNED MARGIN SPOT CREDITS OTHERPERSON @address FIAT ORDERS LONG SHORT POSITION PREDMKT',
    ),
    readers: ['dollars', 'chain'],
    slots: ['amount'],
    required: [
      {
        name: 'place',
        question: 'Where from: the vault, or the perpetual account?',
        choices: [
          { label: 'the vault', intent: 'earn_withdraw', fill: {} },
          { label: 'the perpetual account', intent: 'perp_withdraw', fill: {} },
        ],
      },
    ],
    examples: ['withdraw 100 usdc'],
  },
])
