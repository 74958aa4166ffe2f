import * as lines from './answer-lines.ts'
import * as rows from './answer-row-filters.ts'
import { any } from './feature-rules.ts'
import { framesOf } from './intent-frame.ts'
import { formula, onlyIf, step, value } from './step-builders.ts'
import * as steps from './steps-of-several-intents.ts'

export const portfolioFrames = framesOf({ domain: 'portfolio', effect: 'read' }, [
  {
    intent: 'holdings',
    summary: 'What the wallets, the perpetual account or the spot account hold',
    when: [any('HAVE PERP+ACCOUNTWORD PERP+MARGIN HOWMUCH+@asset+@chain')],
    cues: { HAVE: 2 },
    not: any(
      'ORDERS POSITION PNL CREDITS LIMITS SCAM HISTORY TASK SUPPORTED APPROVALS RECIPIENTS LIQUIDATION FUNDING EARN EARNED ADDRESS STOP TARGET NOTIFICATION SECRET FORECAST PREDMKT NFT CHANGE',
    ),
    readers: ['asset', 'chain', 'portfolio_venue', 'unlisted'],
    slots: ['asset', 'chain', 'venue', 'unlisted'],
    required: [
      {
        name: 'asset',
        question: 'That asset is not listed here. Which one do you mean?',
        onlyWith: 'unlisted',
      },
    ],
    plan: [
      step('holdings', 'wallets_holdings', { chain_type: formula('chain_type') }, { only: 'wallet_venue' }),
      onlyIf('perp_or_all_venue', steps.perpOrders),
      onlyIf('spot_or_all_venue', steps.spotOrders),
    ],
    answer: [
      lines.holding,
      {
        where: ({ asset, chain }) => asset === undefined && chain === undefined,
        text: 'Together {/total_value_usd|usd}, as far as prices are known.',
      },
      {
        where: ({ asset, chain }) => asset !== undefined || chain !== undefined,
        total: '/holdings',
        pick: rows.held,
        text: 'Together {sum(value_usd)|usd}, as far as prices are known.',
      },
      {
        step: 'orders',
        text: 'Perpetual account: {/account/account_value_usd|usd}, to withdraw {/account/withdrawable_usd|usd}.',
      },
      {
        step: 'spot',
        rows: '/balances',
        pick: rows.named,
        text: '{total|amount} {asset|text} at the spot venue, {hold|amount} of it in orders.',
        none: 'The spot account is empty.',
      },
    ],
    examples: ['how much usdc do i have', "what's sitting in my wallets on arbitrum"],
  },
  {
    intent: 'pnl',
    summary: 'Profit and loss of holdings and open positions',
    when: [any('PNL')],
    cues: { PNL: 3 },
    not: any('EARNED APY CREDITS EXPLAIN FORECAST STOP TARGET TRAILING RESEARCH'),
    readers: ['asset', 'venue', 'period'],
    window: 'any',
    plan: [
      onlyIf('unbounded_no_venue', steps.holdings),
      onlyIf('unbounded_not_earn_venue', steps.perpOrders),
      onlyIf('earn_venue', steps.vaultPositions),
      onlyIf('bounded_perp', steps.perpFills),
      onlyIf('bounded_spot', steps.spotFills),
    ],
    answer: [
      lines.realized('fills', 'perps'),
      lines.realized('spot_fills', 'the spot venue'),
      lines.windowSaid('fills'),
      {
        step: 'holdings',
        rows: '/holdings',
        pick: rows.gained,
        text: '{symbol|text} on {chain_name|text}: unrealised {unrealized_pnl_usd|usd}[, realised {realized_pnl_usd|usd}][, average entry {avg_entry_price_usd|price}].',
        none: 'Your wallets hold nothing of which a profit or a loss is known.',
      },
      {
        step: 'orders',
        rows: '/positions',
        pick: rows.named,
        text: '{asset|text} {side|text}: unrealised {unrealized_pnl_usd|usd}, funding paid {funding_paid_usd|usd}[, entry {entry_price|price}].',
      },
      lines.vaultPosition,
    ],
    examples: ['show my pnl', 'how much did i make this month'],
  },
  {
    intent: 'history',
    summary: 'What was traded',
    when: [any('HISTORY DEPOSIT_+QUESTION WITHDRAW_+QUESTION')],
    cues: { HISTORY: 3 },
    not: any('PNL NEWS TASK WENT CREDITS COMPARE GAS+@window'),
    readers: ['asset', 'venue', 'period', 'count'],
    window: 'any',
    plan: [
      step(
        'tasks',
        'tasks_list',
        { chats: value(false), limit: formula('tasks_limit') },
        { only: 'no_venue' },
      ),
      onlyIf('perp_venue', steps.perpFills),
      onlyIf('spot_venue', steps.spotFills),
      onlyIf('earn_venue', steps.vaultPositions),
    ],
    answer: [
      {
        ...lines.taskRow,
        pick: rows.moved,
        none: 'No trade is among your latest tasks, of the time asked about.',
      },
      lines.windowSaid('tasks'),
      lines.fill('fills'),
      lines.windowSaid('fills'),
      lines.fill('spot_fills'),
      lines.windowSaid('spot_fills'),
      {
        step: 'earn',
        rows: '/history',
        text: '{action|text} of {amount_usdc_decimal|amount} USDC, {status|text} ({created_at|time}).',
        none: 'There is no history of the vault.',
      },
    ],
    examples: ['what did i trade yesterday', 'my perp fills for eth'],
  },
  {
    intent: 'fees_paid',
    summary: 'The fees that trades at the venue took',
    when: [any('GAS+PAID GAS+@window GAS+HISTORY GAS+SUMWORD')],
    cues: { GAS: 3, PAID: 3, '@window': 2, HISTORY: 2 },
    not: any('FUNDING CHATPRICE EARN EXPLAIN @do'),
    readers: ['asset', 'period'],
    window: 'any',
    plan: [steps.perpFills, steps.spotFills],
    answer: [
      lines.fees('fills', 'perps'),
      lines.fees('spot_fills', 'the spot venue'),
      lines.windowSaid('fills'),
    ],
    examples: ['how much have i paid in fees', 'fees paid this month'],
  },
  {
    intent: 'open_orders',
    summary: 'Orders, triggers and hooks that wait',
    when: [
      any(
        'ORDERS LIMIT+HAVE LIMIT+MINE LIMIT+QUESTION STOP+QUESTION STOP+HAVE STOP+SHOW LIMIT+SHOW TARGET+SHOW TRAILING+SHOW TARGET+HAVE',
      ),
    ],
    cues: { ORDERS: 2, LIMIT: 1, STOP: 1 },
    not: any('TASK APPROVALS HISTORY EXPLAIN NEWS @price @amount+STOP @amount+TARGET PREDMKT'),
    readers: ['asset', 'orders_venue'],
    slots: ['asset', 'venue'],
    plan: [
      onlyIf('hook_or_no_venue', steps.outstanding),
      step('limits', 'limit_orders_list', {}, { only: 'limit_venue' }),
      onlyIf('perp_or_no_venue', steps.perpOrders),
      onlyIf('spot_or_no_venue', steps.spotOrders),
    ],
    answer: [
      {
        rows: '/outstanding_orders',
        pick: rows.ofKind('hook'),
        text: '{type|kind} on {symbol|text} at {trigger_price_usd|price}, sells {sell_percentage|fraction} of it: {status|text} ({id|text}).',
        none: 'No stop or target waits on your tokens.',
      },
      {
        where: ({ venue }) => venue !== 'hook',
        rows: '/outstanding_orders',
        pick: rows.ofKind('limit_order'),
        text: lines.limitOrder,
        none: 'No limit order waits.',
      },
      { step: 'limits', rows: '', text: lines.limitOrder, none: 'No limit order waits.' },
      lines.order('orders'),
      lines.order('spot'),
    ],
    examples: ["what's still waiting", 'my open perp orders', 'show my limit orders'],
  },
  {
    intent: 'deposit_address',
    summary: 'The own addresses, to receive',
    when: [any('ADDRESS')],
    cues: { ADDRESS: 4 },
    not: any('RECIPIENTS SCAM EARN OTHERPERSON PERP CREDITS @address'),
    readers: ['chain', 'asset'],
    plan: [step('wallets', 'wallets_list')],
    answer: [{ rows: '/wallets', pick: rows.walletOf, text: '{chain_type|text}: {address|text}' }],
    examples: ['where do i send usdc to top up', 'my solana address'],
  },
])

export const perpReadFrames = framesOf({ domain: 'perp', effect: 'read', place: 'perp' }, [
  {
    intent: 'perp_positions',
    summary: 'Open perpetual positions, their margin and liquidation prices',
    when: [
      any(
        'POSITION LIQUIDATION HELDFACT LONG+MINE+@asked SHORT+MINE+@asked FUNDING+PAID LEVERAGE+MINE OPEN+PERP+@asked',
      ),
    ],
    cues: { POSITION: 2, LIQUIDATION: 3, HELDFACT: 3, LONG: 1, SHORT: 1, PAID: 2, MINE: 1, OPEN: 2 },
    not: any('EARN EARNED PNL ORDERS HISTORY EXPLAIN STOP TARGET @do'),
    readers: ['asset'],
    plan: [steps.perpOrders],
    answer: [lines.position],
    examples: ['show my positions', 'how far am i from liquidation', 'how big is my eth long'],
  },
  {
    intent: 'perp_status',
    summary: 'Whether perpetual trading is set up',
    when: [any('PERP'), any('SETUP SETUP_ ACTIVE')],
    cues: { SETUP: 2, SETUP_: 2 },
    not: any('EXPLAIN'),
    plan: [step('setup', 'perp_setup_status')],
    answer: [
      {
        text: 'Set up: {/setup_complete|text}. Account value {/account_value_usd|usd}, smallest deposit {/min_fund_usd|usd}.',
      },
    ],
    examples: ['is my perp account set up'],
  },
])

export const earnReadFrames = framesOf({ domain: 'earn', effect: 'read' }, [
  {
    intent: 'earn_info',
    summary: 'The vault and its yield',
    when: [any('APY EARN')],
    cues: { APY: 3 },
    not: any('EARNED HAVE ORDERS PNL HISTORY FUNDING EXPLAIN @amount POSITION'),
    readers: ['asset'],
    slots: [],
    plan: [steps.vault],
    answer: [
      {
        text: 'The vault on {/vault_chain_name|text}: yield a year {/apy|fraction}[, over the week {/apy_7d|fraction}][, over the month {/apy_30d|fraction}]; smallest deposit {/min_deposit_usdc|size} USDC.',
      },
    ],
    examples: ['what does the vault pay', 'current apy'],
  },
  {
    intent: 'earn_positions',
    summary: 'What is in the vault, and what it earned',
    when: [any('EARNED EARN+HAVE EARN+POSITION EARN+PNL EARN+MINE')],
    cues: { EARNED: 3, HAVE: 2, POSITION: 2, PNL: 3, MINE: 1 },
    not: any('APY CREDITS HISTORY EXPLAIN @amount+@asset'),
    readers: ['asset'],
    slots: [],
    plan: [steps.vaultPositions],
    answer: [lines.vaultPosition],
    examples: ['how much yield so far', 'my earn positions'],
  },
])
