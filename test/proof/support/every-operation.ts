/** A way through every operation; the state of both users is the same before each step. */
import assert from 'node:assert/strict'
import { randomUUID, sign } from 'node:crypto'
import { keyPair } from '../../harness/gateway.ts'
import type { Step } from './door-step.ts'
import { deciding, linking, transferring } from './steps-of-people.ts'
import { predicting } from './steps-of-predictions.ts'
import { scheduling } from './steps-of-schedules.ts'

type Json = Record<string, unknown>

const taskResult = (result: Json): Json => {
  assert.deepEqual([result.status, result.error], ['completed', null], JSON.stringify(result))
  return result.result as Json
}
const keepOrder = (result: Json, known: Json): void => {
  known.order_id = taskResult(result).order_id
}
const ended = (result: Json): void => void taskResult(result)
export const wait = { wait: true, timeout: 60 }
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const resting = { asset: 'ETH', side: 'long', order_type: 'limit', limit_price: '1000', size: '0.02' }
const rising = { left: 'price', is: 'above', right: 'sma_50' }
const dayMs = 86_400_000
/** The beginning of a day, which is the same for both callers of a step. */
const daysAgo = (days: number) => new Date((Math.floor(Date.now() / dayMs) - days) * dayMs).toISOString()
const restingSpot = { asset: 'HYPE', order_type: 'limit', limit_price: '20', size: '1' }

export const journey: Step[] = [
  { name: 'discovery_capabilities' },
  { name: 'discovery_health' },
  { name: 'chains_list' },
  { name: 'earn_info' },
  {
    name: 'auth_register',
    input: (known) => {
      known.key ??= keyPair()
      return { public_key: (known.key as ReturnType<typeof keyPair>).publicKey, agent_name: 'twin' }
    },
    keep: ({ nonce, challenge }, known) => Object.assign(known, { nonce, challenge }),
  },
  {
    name: 'auth_verify',
    input: ({ key, nonce, challenge }) => ({
      nonce,
      signature: base64(
        sign(null, Buffer.from(String(challenge)), (key as ReturnType<typeof keyPair>).privateKey),
      ),
    }),
    keep: ({ agent_id }, known) => Object.assign(known, { agent_id }),
  },
  {
    name: 'auth_token',
    input: ({ key, agent_id }) => {
      const timestamp = Math.floor(Date.now() / 1_000)
      const { privateKey } = key as ReturnType<typeof keyPair>
      return {
        agent_id,
        timestamp,
        signature: base64(sign(null, Buffer.from(`${agent_id}${timestamp}`), privateKey)),
      }
    },
    keep: ({ token }, known) => Object.assign(known, { token }),
  },
  {
    name: 'auth_create_key',
    input: ({ key, agent_id }) => {
      const timestamp = Date.now()
      const { privateKey } = key as ReturnType<typeof keyPair>
      const text = `portico-auth_create_key:v1:${agent_id}:${timestamp}:7:read,trade:twin`
      const signature = base64(sign(null, Buffer.from(text), privateKey))
      return { agent_id, timestamp, signature, name: 'twin', scopes: ['read', 'trade'], expires_in_days: 7 }
    },
    keep: ({ key_id }, known) => Object.assign(known, { key_id }),
  },
  { name: 'auth_keys' },
  // The key belongs to the agent of the steps before, and not to the caller.
  { name: 'auth_revoke_key', input: ({ key_id }) => ({ key_id }), fault: 'not_found' },
  { name: 'auth_signup', fault: { 'a key pair': 'invalid_token' } },
  { name: 'auth_revoke', authorization: async ({ user }) => `Bearer ${await user.spareToken()}` },
  ...linking,
  { name: 'user_show' },
  {
    name: 'security_check',
    input: () => ({
      tokens: [{ chain_id: '8453', token_address: '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE' }],
    }),
  },
  { name: 'wallets_list' },
  { name: 'wallets_holdings' },
  { name: 'portfolio_show' },
  { name: 'credits_available' },
  { name: 'credits_history' },
  { name: 'credits_packs' },
  { name: 'credits_recharge_chains' },
  // New users have no native coins.
  {
    name: 'credits_recharge',
    input: { chain_id: '8453', pack_id: '5', ...wait },
    fault: 'insufficient_balance',
  },
  { name: 'subscriptions_plans' },
  { name: 'subscriptions_show' },
  {
    name: 'subscriptions_checkout',
    input: () => ({ price_id: 'price_local_plus_month', client_intent_id: randomUUID() }),
  },
  // Nobody has paid.
  { name: 'subscriptions_cancel', input: {}, fault: 'conflict' },
  {
    name: 'chat_stream',
    input: { query: 'what do i hold on polygon', stream: false },
    keep: ({ chat_id, thread_id }, known) => Object.assign(known, { chat_id, thread_id }),
  },
  { name: 'chat_threads' },
  { name: 'chat_thread', input: ({ thread_id }) => ({ thread_id }) },
  { name: 'chat_cancel', input: ({ chat_id }) => ({ chat_id }), fault: 'not_cancellable' },
  { name: 'chat_files', input: ({ chat_id }) => ({ chat_id }) },
  {
    name: 'chat_decide',
    input: ({ chat_id }) => ({
      chat_id,
      recommendation_id: '01890000-0000-7000-8000-000000000000',
      status: 'declined',
    }),
    fault: 'not_found',
  },
  ...scheduling,
  { name: 'policy_show' },
  { name: 'earn_vault' },
  {
    name: 'earn_enable',
    input: { amount_usdc: '5', ...wait },
    keep: (result, known) => {
      known.position_id = taskResult(result).position_id
      known.task_id = result.task_id
    },
  },
  { name: 'earn_deposit', input: { amount_usdc: '2', ...wait }, keep: ended },
  { name: 'earn_positions' },
  { name: 'earn_sync', input: wait, keep: ended },
  {
    name: 'earn_withdraw',
    input: ({ position_id }) => ({ position_id, amount_usdc: '1', ...wait }),
    keep: ended,
  },
  {
    name: 'swap_execute',
    input: {
      chain_id_in: 'base',
      token_in: 'USDC',
      token_out: 'USDC',
      chain_id_out: 137,
      amount: '20000000',
      ...wait,
    },
    keep: ended,
  },
  { name: 'perp_setup', input: wait },
  { name: 'perp_fund', input: { amount_usd: '200', ...wait }, keep: ended },
  { name: 'perp_setup_status' },
  { name: 'perp_markets', input: { search_text: 'ETH' } },
  {
    name: 'markets_candles',
    input: { asset: 'ETH', interval: '4h', limit: 3, to: '2026-01-01T00:00:00.000Z' },
  },
  { name: 'markets_funding', input: { asset: 'ETH', days: 1 } },
  {
    name: 'strategies_backtest',
    input: () => ({
      strategy: {
        type: 'condition',
        asset: 'ETH',
        interval: '4h',
        order_notional_usd: '100',
        enter_if: [rising],
      },
      from: daysAgo(60),
      to: daysAgo(50),
      ...wait,
    }),
    keep: ended,
  },
  { name: 'perp_open', input: { ...resting, ...wait }, keep: keepOrder },
  { name: 'perp_orders' },
  { name: 'perp_cancel', input: ({ order_id }) => ({ order_id, ...wait }), keep: ended },
  { name: 'perp_cancel', input: ({ order_id }) => ({ order_id }), fault: 'order_not_cancellable' },
  { name: 'perp_open', input: { asset: 'BTC', side: 'long', size: '0.001', ...wait }, keep: ended },
  { name: 'perp_tp_sl', input: { asset: 'BTC', sl_price: '10000', ...wait }, keep: ended },
  { name: 'perp_close', input: { asset: 'BTC', ...wait }, keep: ended },
  { name: 'perp_cancel_all', input: wait, keep: ended },
  { name: 'perp_fills' },
  { name: 'perp_order_history' },
  { name: 'spot_venue_markets', input: { search_text: 'HYPE' } },
  { name: 'spot_venue_buy', input: { ...restingSpot, ...wait }, keep: keepOrder },
  { name: 'spot_venue_orders' },
  { name: 'spot_venue_cancel', input: ({ order_id }) => ({ order_id, ...wait }), keep: ended },
  { name: 'spot_venue_buy', input: { asset: 'HYPE', size: '1', ...wait }, keep: ended },
  { name: 'spot_venue_tp_sl', input: { asset: 'HYPE', size: '0.5', sl_price: '25', ...wait }, keep: ended },
  { name: 'spot_venue_cancel_all', input: wait, keep: ended },
  { name: 'spot_venue_sell', input: { asset: 'HYPE', size: '0.5', ...wait }, keep: ended },
  { name: 'spot_venue_fills' },
  { name: 'spot_venue_order_history' },
  { name: 'perp_withdraw', input: { amount_usd: '10', ...wait }, keep: ended },
  ...predicting,
  { name: 'tasks_get', input: ({ task_id }) => ({ task_id }) },
  { name: 'tasks_list', input: { kind: 'earn_deposit' } },
  { name: 'tasks_cancel', input: ({ task_id }) => ({ task_id }), fault: 'not_cancellable' },
  { name: 'notifications_list', input: { types: 'task.completed', limit: 3 } },
  { name: 'notifications_stream', input: { after: '0', types: 'task.created,task.completed' }, itemsMax: 12 },
  {
    name: 'webhooks_create',
    // Nothing listens there.
    input: { url: 'http://127.0.0.1:2/events', types: ['policy.changed'] },
    keep: ({ webhook_id }, known) => Object.assign(known, { webhook_id }),
  },
  { name: 'webhooks_list' },
  { name: 'webhooks_update', input: ({ webhook_id }) => ({ webhook_id, description: 'Twin' }) },
  // With a key, because a door for models makes one for an act that a repetition would repeat.
  { name: 'webhooks_rotate', input: ({ webhook_id }) => ({ webhook_id }), key: 'rotate-1' },
  { name: 'webhooks_test', input: ({ webhook_id }) => ({ webhook_id }) },
  { name: 'webhooks_deliveries', input: ({ webhook_id }) => ({ webhook_id }) },
  {
    name: 'webhooks_replay',
    input: ({ webhook_id }) => ({ webhook_id, after: '999999999' }),
    fault: 'validation',
  },
  { name: 'webhooks_delete', input: ({ webhook_id }) => ({ webhook_id }) },
  {
    name: 'hooks_register',
    input: { chain_id: '8453', token_address: 'AERO', stop_losses: [{ price_usd: '0.1' }] },
    fault: 'insufficient_balance',
  },
  {
    name: 'limit_orders_create',
    input: {
      chain_id_in: '8453',
      token_in: 'USDC',
      token_out: 'AERO',
      amount: '5000000',
      price_usd_trigger: '0.1',
      condition: 'lte',
      ...wait,
    },
    keep: (result, known) => {
      known.limit_order_id = (taskResult(result).order as Json).limit_order_id
    },
  },
  { name: 'limit_orders_list' },
  { name: 'limit_orders_get', input: ({ limit_order_id }) => ({ order_id: limit_order_id }) },
  { name: 'outstanding_orders_list' },
  { name: 'limit_orders_cancel', input: ({ limit_order_id }) => ({ order_id: limit_order_id }) },
  { name: 'outstanding_orders_cancel', input: { all: true } },
  { name: 'policy_tighten', input: { per_day_usd: '50000' } },
  {
    name: 'policy_cancel_change',
    input: { change_id: '01890000-0000-7000-8000-000000000000' },
    fault: 'not_found',
  },
  { name: 'policy_kill', input: { on: false } },
  ...deciding,
  { name: 'agents_list' },
  {
    name: 'agents_link_code',
    input: { timestamp: 1, signature: base64(new Uint8Array(64)) },
    fault: { 'a key pair': 'stale_timestamp', 'a person': 'conflict' },
  },
  {
    name: 'agents_contest',
    input: { on: true, timestamp: 1, signature: base64(new Uint8Array(64)) },
    fault: { 'a key pair': 'stale_timestamp', 'a person': 'conflict' },
  },
  {
    name: 'agents_link',
    input: { code: '7K3M-Q0WD-2XNB' },
    fault: { 'a key pair': 'step_up_required', 'a person': 'not_found' },
  },
  {
    name: 'agents_unlink',
    input: { agent_id: 'agt_01JZ8Q4W7N5V0K3T2R6Y9B1C4D' },
    fault: 'not_found',
  },
  { name: 'approvals_list' },
  {
    name: 'approvals_approve',
    input: { approval_id: '01890000-0000-7000-8000-000000000000' },
    fault: 'not_found',
  },
  {
    name: 'approvals_decline',
    input: { approval_id: '01890000-0000-7000-8000-000000000000' },
    fault: 'not_found',
  },
  ...transferring,
  {
    name: 'recipients_remove',
    input: { recipient_id: '01890000-0000-7000-8000-000000000000' },
    fault: 'not_found',
  },
]
