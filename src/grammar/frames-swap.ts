import { any, list } from './concepts.ts'
import type { Frame, PlanStep, SlotRule, Source } from './frame.ts'

const slot = (name: string): Source => ({ slot: name })
const value = (given: string | boolean | number): Source => ({ value: given })

const amount: SlotRule = { name: 'amount', question: 'How much?' }
const swapFields = {
  chain_id_in: { formula: 'chain_in' },
  chain_id_out: { formula: 'chain_out' },
  token_in: { formula: 'token_in' },
  token_out: { formula: 'token_out' },
  amount: { formula: 'amount_in_units' },
  amount_usd: { formula: 'amount_in_usd' },
  slippage_bps: { formula: 'slippage_bps' },
  stop_loss: { formula: 'stop_leg' },
  take_profit: { formula: 'target_leg' },
} as const satisfies Record<string, Source>

const holdings: PlanStep = {
  id: 'holdings',
  operation: 'wallets_holdings',
  only: 'needs_holdings',
  input: {},
}
const priceOut: readonly PlanStep[] = [
  {
    id: 'perp',
    operation: 'perp_markets',
    only: 'needs_perp_price',
    input: { search_text: slot('asset_out') },
  },
  {
    id: 'spot',
    operation: 'spot_venue_markets',
    only: 'needs_spot_price',
    input: { search_text: slot('asset_out') },
  },
]
const preview: PlanStep = {
  id: 'preview',
  operation: 'swap_execute',
  input: { ...swapFields, dryrun: value(true) },
}
const swap: PlanStep = {
  id: 'swap',
  operation: 'swap_execute',
  input: { ...swapFields, quote_id: { formula: 'quote_id' } },
}

export const swapFrames: readonly Frame[] = [
  {
    intent: 'quote',
    domain: 'swap',
    effect: 'quote',
    summary: 'What a swap would bring, without doing it',
    when: [
      any(
        'GETS QUOTEWORD COSTME @thought+SWAP @thought+SELL @thought+BUY @thought+SWAP_ @thought+SELL_ @thought+BUY_ @asked+BUY @asked+SELL @asked+SWAP',
      ),
      any('@asset'),
      any('@amount'),
    ],
    cues: { GETS: 3, QUOTEWORD: 2, '@amount': 1, '@assets': 1 },
    not: any(
      'SHOULD EXPLAIN PNL ANALYSIS POSITION PERP SPOT CREDITS FUNDING APY PREDMKT FORECAST LEVERAGE @times TASK LIMITS @do HAVE IF+@price LONG SHORT NEWS HISTORY',
    ),
    readers: ['slippage', 'chains_same', 'pair', 'chains'],
    slots: ['asset_in', 'asset_out', 'amount', 'chain', 'chain_out', 'slippage'],
    required: [
      { name: 'asset_in', question: 'Which token would you sell?' },
      { name: 'asset_out', question: 'Into which token?' },
      amount,
    ],
    plan: [holdings, ...priceOut, preview],
    examples: [
      'what would 300 usdc get me in eth on base',
      'quote 2 sol to usdc',
      'what if i sold half my bonk',
    ],
  },
  {
    intent: 'swap',
    domain: 'swap',
    effect: 'trade',
    summary: 'Buys, sells or converts tokens on chains',
    when: [any('BUY SELL SWAP GIVE+@amount+@asset PUT+@amount+@asset')],
    head: list('BUY SELL SWAP GIVE PUT'),
    cues: { BUY: 1, SELL: 1, SWAP: 1, '@assets': 1, '@amount': 1 },
    not: any(
      '@thought POSITION+@perpfirst LONG SHORT @times SPOT PERP EARN CREDITS ^SET+STOP ^PUT+STOP ^SET+TARGET ^PUT+TARGET LIMIT @price IF PRICE+GIVE LIMITS DAILY PERTX FIAT CHART+GIVE RESEARCH ANALYSIS QUOTEWORD TASK SHOW FREEZE PREDMKT ADDRESS',
    ),
    readers: ['slippage', 'legs', 'chains_same', 'pair', 'chains'],
    slots: ['asset_in', 'asset_out', 'amount', 'chain', 'chain_out', 'slippage', 'stop', 'target'],
    required: [
      { name: 'asset_in', question: 'What do you want to sell or pay with?' },
      { name: 'asset_out', question: 'What do you want to get?' },
      amount,
    ],
    plan: [holdings, ...priceOut, preview, swap],
    examples: ['grab 75 dollars of aero', 'dump a third of my wif', 'turn 0.4 eth into usdc on base'],
  },
  {
    intent: 'bridge',
    domain: 'swap',
    effect: 'trade',
    summary: 'Moves a token from one chain to another, within the own wallets',
    when: [any('BRIDGE MOVE SWAP PUT'), any('@chain BRIDGE')],
    head: list('BRIDGE MOVE SWAP PUT'),
    cues: { BRIDGE: 4, '@chains': 3, MOVE: 1, '@chainto': 3 },
    not: any('@times PERP EARN CREDITS OTHERPERSON @address SPOT STOP TARGET @assets'),
    readers: ['slippage', 'moving_chains', 'bridge_amount'],
    slots: ['asset', 'amount', 'chain', 'chain_out', 'slippage'],
    required: [
      { name: 'asset', question: 'Which token do you want to move?' },
      amount,
      { name: 'chain_out', question: 'To which chain?' },
    ],
    plan: [holdings, preview, swap],
    examples: ['move 150 usdc from base over to solana', 'bridge half my eth to arbitrum'],
  },
  {
    intent: 'limit_order',
    domain: 'conditional',
    effect: 'trade',
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
      { name: 'side', question: 'Buy or sell?' },
      { name: 'asset', question: 'Which token?' },
      amount,
      { name: 'price', question: 'At which price in USD?' },
    ],
    plan: [
      holdings,
      {
        id: 'order',
        operation: 'limit_orders_create',
        input: {
          chain_id_in: { formula: 'chain_in' },
          token_in: { formula: 'token_in' },
          token_out: { formula: 'token_out' },
          amount: { formula: 'amount_in_units' },
          amount_usd: { formula: 'amount_in_usd' },
          price_usd_trigger: slot('price'),
          condition: slot('condition'),
          trigger_token_address: { formula: 'trigger_token' },
          trigger_token_chain: { formula: 'chain_in' },
          slippage_bps: { formula: 'slippage_bps' },
          expires_at: slot('expires'),
        },
      },
    ],
    examples: ['pick up $200 of eth on base once it trades under 2900', 'limit sell 100 arb at 0.60'],
  },
  {
    intent: 'hook',
    domain: 'conditional',
    effect: 'trade',
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
      { id: 'holdings', operation: 'wallets_holdings', only: 'needs_hook_chain', input: {} },
      {
        id: 'hook',
        operation: 'hooks_register',
        input: {
          chain_id: { formula: 'hook_chain' },
          token_address: { formula: 'hook_token' },
          stop_losses: { formula: 'stop_legs' },
          take_profits: { formula: 'target_legs' },
          trailing_percentage: { formula: 'trailing_fraction' },
        },
      },
    ],
    examples: ['guard my bonk with a stop at 12% below', 'take profit on my aero at $2'],
  },
  {
    intent: 'cancel_orders',
    domain: 'conditional',
    effect: 'tighten',
    summary: 'Cancels orders, triggers and hooks',
    when: [any('ORDERS LIMIT STOP TARGET TRAILING @id ^CANCEL+ALL')],
    head: list('CANCEL'),
    cues: { ORDERS: 3, LIMIT: 1, STOP: 2, TARGET: 2, '@id': 2, ALL: 1 },
    not: any('TASK POSITION+ALL RECOMMENDATION'),
    readers: ['id', 'orders_venue', 'everything', 'asset', 'one'],
    slots: ['id', 'asset', 'venue', 'all', 'one'],
    required: [{ name: 'all', question: 'Which orders?', anyOf: ['all', 'asset', 'id'] }],
    plan: [
      {
        id: 'outstanding',
        operation: 'outstanding_orders_list',
        only: 'cancels_some_outstanding',
        input: {},
      },
      { id: 'orders', operation: 'perp_orders', only: 'cancels_perp_of_asset', input: {} },
      { id: 'spot', operation: 'spot_venue_orders', only: 'cancels_spot_of_asset', input: {} },
      {
        id: 'cancel',
        operation: 'outstanding_orders_cancel',
        only: 'cancels_outstanding',
        guard: 'has_outstanding',
        input: { outstanding_order_ids: { formula: 'outstanding_ids' }, all: { formula: 'all_outstanding' } },
      },
      {
        id: 'cancel_perp',
        operation: 'perp_cancel_all',
        only: 'cancels_perp',
        guard: 'has_perp_orders',
        input: { asset: slot('asset') },
      },
      {
        id: 'cancel_spot',
        operation: 'spot_venue_cancel_all',
        only: 'cancels_spot',
        guard: 'has_spot_orders',
        input: { asset: slot('asset') },
      },
      {
        id: 'cancel_perp_id',
        operation: 'perp_cancel',
        only: 'cancels_perp_id',
        guard: 'has_perp_id',
        input: { order_id: slot('id') },
      },
      {
        id: 'cancel_spot_id',
        operation: 'spot_venue_cancel',
        only: 'cancels_spot_id',
        guard: 'has_spot_id',
        input: { order_id: slot('id') },
      },
    ],
    examples: ['forget the eth order', 'cancel all my orders', 'cancel perp order 4123456789'],
  },
]
