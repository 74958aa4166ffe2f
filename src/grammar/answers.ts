import {
  fill,
  heldPrice,
  holding,
  type Line,
  limitOrder,
  limitsLine,
  order,
  perpPrice,
  position,
  quote,
  spotPrice,
  task,
  taskRow,
  vaultPosition,
} from './answer-lines.ts'
import * as rows from './answer-rows.ts'

/** What is said of each intent, line by line. */
export const answers: Readonly<Record<string, readonly Line[]>> = {
  price: [perpPrice, spotPrice, heldPrice],
  compare: [perpPrice, spotPrice, heldPrice],
  funding: [
    {
      step: 'perp',
      rows: '/markets',
      pick: rows.named,
      text: '{symbol|text}: funding {funding_rate|hourly} at {mark_price|price}.',
      none: 'The venue lists no such perpetual market.',
    },
  ],
  market_overview: [
    {
      step: 'perp',
      rows: '/markets',
      pick: rows.traded,
      sort: rows.bySort,
      max: 5,
      text: '{symbol|text}: {mark_price|price}[, {change(mark_price,prev_day_price)|fraction} against the day before], volume {volume_24h_usd|usd}, funding {funding_rate|hourly}.',
    },
    {
      step: 'spot',
      rows: '/markets',
      sort: rows.bySort,
      max: 5,
      text: '{base|text}: {price|price}, volume {volume_24h_usd|usd}.',
    },
  ],
  security: [
    {
      step: 'security',
      rows: '/results',
      text: '{token_address|text} on chain {chain_id|text}: {status|text}, risk {risk_level|text}[, buy tax {buy_tax|fraction}][, sell tax {sell_tax|fraction}][. {reasons/0/message|text}][ (by {provider|text})].',
    },
  ],
  supported: [
    {
      step: 'chains',
      rows: '/chains',
      pick: rows.ofToken,
      text: 'A token on {display_name|text} (chain {chain_id|text}), status {status|text}.',
    },
    {
      step: 'perp',
      rows: '/markets',
      pick: rows.named,
      text: '{symbol|text} is a perpetual market, leverage up to {max_leverage|count}.',
    },
    { step: 'spot', rows: '/markets', pick: rows.named, text: '{base|text} is a spot market.' },
  ],
  chains: [
    { step: 'chains', rows: '/chains', text: '{display_name|text} (chain {chain_id|text}), {status|text}.' },
  ],
  gas: [
    {
      step: 'chains',
      rows: '/chains',
      pick: rows.onChain,
      text: '{display_name|text}: does the service pay for gas: {gasless|text}; native coin {native_token|text}.',
    },
  ],
  holdings: [
    holding,
    {
      step: 'holdings',
      where: ({ asset, chain }) => asset === undefined && chain === undefined,
      text: 'Together {/total_value_usd|usd}, as far as prices are known.',
    },
    {
      step: 'holdings',
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
      text: '{total|size} {asset|text} at the spot venue, {hold|size} of it in orders.',
      none: 'The spot account is empty.',
    },
  ],
  pnl: [
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
    vaultPosition,
  ],
  history: [
    { ...taskRow, pick: rows.moved, none: 'Your latest tasks have no trade of that time among them.' },
    fill('fills'),
    fill('spot_fills'),
    {
      step: 'earn',
      rows: '/history',
      text: '{action|text} of {amount_usdc_decimal|size} USDC, {status|text} ({created_at|time}).',
      none: 'There is no history of the vault.',
    },
  ],
  open_orders: [
    {
      step: 'outstanding',
      rows: '/outstanding_orders',
      pick: rows.ofKind('hook'),
      text: '{type|kind} on {symbol|text} at {trigger_price_usd|price}, sells {sell_percentage|fraction} of it: {status|text} ({id|text}).',
      none: 'No stop or target waits on your tokens.',
    },
    {
      step: 'outstanding',
      where: ({ venue }) => venue !== 'hook',
      rows: '/outstanding_orders',
      pick: rows.ofKind('limit_order'),
      text: limitOrder,
      none: 'No limit order waits.',
    },
    {
      step: 'limits',
      rows: '',
      text: limitOrder,
      none: 'No limit order waits.',
    },
    order('orders'),
    order('spot'),
  ],
  deposit_address: [
    { step: 'wallets', rows: '/wallets', pick: rows.walletOf, text: '{chain_type|text}: {address|text}' },
  ],
  perp_positions: [position],
  perp_status: [
    {
      step: 'setup',
      text: 'Set up: {/setup_complete|text}. Account value {/account_value_usd|usd}, smallest deposit {/min_fund_usd|usd}.',
    },
  ],
  earn_info: [
    {
      step: 'vault',
      text: 'The vault on {/vault_chain_name|text}: yield a year {/apy|fraction}[, over the week {/apy_7d|fraction}][, over the month {/apy_30d|fraction}]; smallest deposit {/min_deposit_usdc|size} USDC.',
    },
  ],
  earn_positions: [vaultPosition],
  credits: [{ step: 'credits', text: '{/credits_available_decimal|size} credits are left.' }],
  credit_packs: [{ step: 'packs', rows: '/packs', text: '{price_usd|usd} buy {credits|count} credits.' }],
  chat_price: [
    {
      step: 'capabilities',
      rows: '/chat/agents',
      text: '{name|text}: about {credits_estimate|count} credits.',
      none: 'The price of a message is not published here yet.',
    },
    { step: 'packs', rows: '/packs', text: '{price_usd|usd} buy {credits|count} credits.' },
  ],
  recharge: [task('recharge')],
  limits: [limitsLine],
  limit_set: [{ ...limitsLine, step: 'tighten' }],
  freeze: [
    { step: 'kill', text: 'The kill switch is on[ since {/since|time}]. Cancels, closes and reads go on.' },
  ],
  tasks: [taskRow],
  task_status: [task('task'), { ...taskRow, isNewestAlone: true }],
  task_cancel: [
    {
      step: 'cancel',
      text: 'Task {/task_id|text} is {/status|text}; cancel requested: {/cancel_requested|text}.',
    },
  ],
  approvals: [
    {
      step: 'approvals',
      rows: '/approvals',
      text: '{intent/text|text}, worth {intent/usd|usd}, until {expires_at|time}.',
      none: 'Nothing waits for an approval.',
    },
  ],
  recipients: [
    {
      step: 'recipients',
      rows: '/recipients',
      text: '{label|text}: {address|text} on chain {chain_id|text}, {status|text}.',
      none: 'No recipient is allowed.',
    },
  ],
  account: [
    {
      step: 'user',
      text: 'You are {/user_id|text}, agent {/agent_id|text}, by {/auth_scheme|text}; {/credits_available_decimal|size} credits.',
    },
  ],
  health: [
    {
      step: 'health',
      text: 'The gateway is {/status|text}: store {/checks/store/status|text}, runner {/checks/runner/status|text}, custody {/checks/custody/status|text}.',
    },
  ],
  notifications: [
    {
      step: 'events',
      rows: '/events',
      text: '{type|text} ({created_at|time})',
      none: 'Nothing happened lately.',
    },
  ],
  quote: [quote],
  swap: [quote, task('swap')],
  bridge: [quote, task('swap')],
  limit_order: [task('order')],
  hook: [
    {
      step: 'hook',
      rows: '/hooks',
      text: '{type|kind} on {symbol|text} at {trigger_price_usd|price}, sells {sell_percentage|fraction} of it ({id|text}).',
    },
  ],
  cancel_orders: [
    {
      step: 'cancel',
      text: 'Hooks and limit orders: [{/cancelled/0|text} is cancelled][, {/cancelled/1|text} too]. The list "my open orders" shows what is left.',
    },
    task('cancel_perp'),
    task('cancel_spot'),
    task('cancel_perp_id'),
    task('cancel_spot_id'),
  ],
  perp_setup: [
    {
      step: 'status',
      text: 'Set up before: {/setup_complete|text}. Account value {/account_value_usd|usd}, smallest deposit {/min_fund_usd|usd}.',
    },
    task('setup'),
  ],
  perp_fund: [task('fund')],
  perp_withdraw: [task('withdraw')],
  perp_open: [perpPrice, task('open')],
  perp_close: [task('close')],
  perp_protect: [task('protect')],
  spot_buy: [spotPrice, task('buy')],
  spot_sell: [task('sell')],
  spot_protect: [task('protect')],
  earn_deposit: [task('deposit')],
  earn_withdraw: [task('withdraw')],
}
