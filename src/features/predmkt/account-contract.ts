import { openResult } from '#engines/venue/records/task-results.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { act, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { ChainId, ChainRefIn, OneOf, TokenRefIn, Units, UnitsIn } from '#kernel/contract/wire-types.ts'
import {
  ConditionIdIn,
  Protocol,
  readFaults,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
  taskFaults,
  Usd,
  UsdOut,
  Venue,
} from './wire-types.ts'

/** The account at the venue: disclaimer, set-up, money in and out. */

const waitSeconds = 90

const SlippageBps = T.Integer({
  minimum: 1,
  maximum: 1_000,
  description: 'How far the output of a swap may fall below its quote, in hundredths of a percent',
})

const StepView = T.Object(
  {
    key: T.String({ description: 'Name of the step' }),
    label: T.String({ description: 'What the step does, in words' }),
    done: T.Boolean({ description: 'Whether the step is complete' }),
    waiting_until: T.Union([Time, T.Null()], {
      description: 'When a step that waits for a quota of the venue continues; null if it does not wait',
    }),
  },
  { $id: 'PredictionSetupStep' },
)
setColumns(StepView, ['label', 'done', 'waiting_until'])
const Approval = T.Object(
  {
    token: T.String({ description: 'Contract of the token that is approved' }),
    spender: T.String({ description: 'Contract that may take the token' }),
    protocol: Protocol,
    ok: T.Boolean({ description: 'Whether the approval is in force on the chain' }),
  },
  { $id: 'PredictionApproval' },
)
const Wrappable = T.Object(
  {
    token: OneOf(['usdc', 'usdc_e'] as const, { description: 'The token' }),
    wallet: OneOf(['eoa', 'deposit_wallet'] as const, { description: 'Where it lies' }),
    amount: T.String({ ...Units, description: 'Smallest units of the token' }),
  },
  { $id: 'PredictionWrappable' },
)
const SetupStatus = T.Object(
  {
    venue: Venue,
    offered: T.Boolean({ description: 'Whether the operator has configured what a set-up needs' }),
    setup_complete: T.Boolean({ description: 'True once every step is done; orders need it' }),
    v2_enabled: T.Boolean({ description: 'Whether the venue trades markets of protocol v2' }),
    v2_complete: T.Boolean({ description: 'Whether the wallet can trade markets of protocol v2' }),
    wallet_kind: OneOf(['deposit_wallet', 'safe'] as const, { description: 'Kind of the funded wallet' }),
    safe_address: T.Union([Text, T.Null()], {
      description: 'The funded wallet at the venue, of whatever kind; null before setup has derived it',
    }),
    eoa_address: T.String({ description: 'Your own wallet, which owns the funded one' }),
    deposit_address_evm: T.Union([Text, T.Null()], {
      description: 'Where the bridge of the venue takes deposits from EVM chains; null where it names none',
    }),
    deposit_address_svm: T.Union([Text, T.Null()], {
      description: 'Where the bridge of the venue takes deposits from Solana; null where it names none',
    }),
    steps: T.Array(StepView, { description: 'Steps of the setup' }),
    approvals: T.Array(Approval, { description: 'Approvals of both protocols' }),
    protocols: T.Object(
      {
        v1: T.Boolean({ description: 'Whether markets of protocol v1 can be traded' }),
        v2: T.Boolean({ description: 'Whether markets of protocol v2 can be traded' }),
      },
      { description: 'What the wallet can trade' },
    ),
    trading: OneOf(
      ['open', 'close_only', 'blocked', 'post_only', 'cancel_only', 'restarting', 'unknown'] as const,
      {
        description: 'What the venue allows this account now',
      },
    ),
    trading_until: T.Union([Time, T.Null()], {
      description: 'When a restriction of the venue ends; null if unknown or if there is none',
    }),
    spendable_cash_usd: UsdOut('Cash in the funded wallet that no open order holds'),
    locked_usd: UsdOut('Cash that open purchases hold'),
    wrappable: T.Array(Wrappable, {
      description: 'Dollars that are no cash at the venue yet; `predmkt_fund` with `wrap_only` wraps them',
    }),
    min_fund_usd: UsdOut('Smallest funding'),
    left_in_safe: T.Optional(
      T.Array(Text, {
        description:
          'Only in the result of `predmkt_setup_v2`: what stays in a wallet of an earlier kind, and why',
      }),
    ),
    disclaimer_acknowledged_at: TimeOrNull,
    last_error: TextOrNull,
  },
  { $id: 'PredictionSetupStatusResponse' },
)
setColumns(SetupStatus, [
  'setup_complete',
  'trading',
  'spendable_cash_usd',
  'locked_usd',
  'min_fund_usd',
  'steps',
  'last_error',
])

const FundingOutcome = T.Object(
  {
    amount: T.String({ ...Units, description: 'Smallest units of the token that arrived' }),
    amount_usd: UsdOut('What arrived'),
    fee_usd: UsdOut('Fees of swaps on the way'),
    chain_id: ChainId,
    token_address: Text,
    tx_hash: TextOrNull,
    credited_at: TimeOrNull,
  },
  { $id: 'PredictionFundingOutcome', description: 'Money that arrived', ...openResult },
)
setColumns(FundingOutcome, ['amount_usd', 'fee_usd', 'chain_id', 'credited_at'])
const Redeemed = T.Object(
  {
    condition_id: T.String({ description: 'Condition that was redeemed' }),
    shares: T.String({ description: 'Redeemed shares of all outcomes, in whole tokens (decimal text)' }),
    payout_usd: UsdOut('What they paid; 0 for outcomes that lost'),
    tx_hash: TextOrNull,
    by: OneOf(['us', 'venue'] as const, { description: 'Who redeemed: the gateway, or the venue by itself' }),
  },
  { $id: 'PredictionRedeemed' },
)
const RedeemOutcome = T.Object(
  {
    redeemed: T.Array(Redeemed, { description: 'Every condition that was redeemed' }),
    payout_usd: UsdOut('Sum of the payouts'),
    condition_id: T.Union([Text, T.Null()], {
      description: 'The condition that was asked for; null for all',
    }),
    tx_hash: TextOrNull,
  },
  { $id: 'PredictionRedeemOutcome', description: 'What was redeemed', ...openResult },
)

/** The faults of money that moves to and from the venue, in a swap where it crosses chains. */
const transferFaults = [
  ...taskFaults,
  'token_unsafe',
  'approval_required',
  'insufficient_balance',
  'no_route',
  'insufficient_liquidity',
  'conflict',
] as const

export const accountEntries = {
  meta: read('GET /predmkt/meta', {
    summary: 'How many orders, positions and redeemable positions you have',
    description:
      'Use it for the counts of a menu; they come from the record of the gateway. Next: `predmkt_open_orders` or `predmkt_positions`.',
    access: 'read',
    output: T.Object(
      {
        counts: T.Object(
          {
            open_orders: T.Integer({ description: 'Open orders' }),
            positions: T.Integer({ description: 'Outcomes of which you own settled shares' }),
            redeemable: T.Integer({ description: 'Positions of resolved markets' }),
            trending: T.Integer({ description: 'Markets that the venue lists as open' }),
          },
          { description: 'Counts' },
        ),
        cached_at: T.String({ format: 'date-time', description: 'When the counts were read (ISO-8601 UTC)' }),
        stale: T.Boolean({ description: 'Whether the venue did not answer when the counts were due' }),
      },
      { $id: 'PredictionMetaResponse' },
    ),
    faults: ['unavailable'],
  }),
  acknowledgeDisclaimer: act('POST /predmkt/disclaimer/acknowledge', {
    summary: 'Acknowledge the disclaimer on trading prediction markets',
    description:
      'Use it once, before the first order: shares can become worthless, and access depends on where you are. It takes the scope `manage`: an app that may only trade acknowledges for nobody. Acknowledging again changes nothing. Next: `predmkt_setup`.',
    access: 'manage',
    repeatable: true,
    output: T.Object(
      {
        acknowledged_at: T.String({
          format: 'date-time',
          description: 'When it was acknowledged (ISO-8601 UTC)',
        }),
        version: T.String({ description: 'Version of the text that was acknowledged' }),
      },
      { $id: 'PredictionDisclaimerResponse' },
    ),
  }),
  setupStatus: read('GET /predmkt/setup/status', {
    summary: 'Whether trading prediction markets is set up, step by step',
    description:
      'Use it before trading, and to see cash, approvals and what the venue allows. Next: `predmkt_acknowledge_disclaimer`, `predmkt_setup` while `setup_complete` is false, then `predmkt_fund`.',
    access: 'read',
    output: SetupStatus,
    faults: readFaults,
  }),
  setup: task('POST /predmkt/setup', {
    repeatable: true,
    summary: 'Make the trading key, the wallet and the approvals at the venue, without gas',
    description:
      'Use it once, before the first order. It needs no coins: the venue pays the gas. A step that is done is not done again, so that calling it twice changes nothing. Where the venue has used up its quota the task waits, and `predmkt_setup_status` says until when. Next: poll `tasks_get`; then `predmkt_fund`.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    body: T.Object({}, { $id: 'PredictionSetupRequest', examples: [{}] }),
    bodyOptional: true,
    output: TaskResponse,
    result: SetupStatus,
    faults: [...taskFaults, 'disclaimer_required', 'venue_restricted'],
  }),
  setupV2: task('POST /predmkt/setup/v2', {
    repeatable: true,
    summary: 'Complete the set-up for protocol v2, and move what a Safe of yours holds to the deposit wallet',
    description:
      'Use it where `v2_complete` is false, or where an earlier wallet of the kind Safe still holds cash or shares: it gives the missing approvals, and moves everything to the deposit wallet without gas, but for shares below 0.01 and what its contract does not move now, which `result.left_in_safe` names. With nothing to move it completes at once. Next: `predmkt_setup_status`; then `predmkt_order`.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    body: T.Object({}, { $id: 'PredictionSetupV2Request', examples: [{}] }),
    bodyOptional: true,
    output: TaskResponse,
    result: SetupStatus,
    faults: [...taskFaults, 'disclaimer_required', 'venue_restricted'],
  }),
  fund: task('POST /predmkt/fund-safe', {
    summary:
      'Move money from your wallets to the funded wallet at the venue, from any chain and token, gasless',
    description:
      'Use it to get cash for orders. USDC and USDC.e on Polygon are wrapped directly; anything else is swapped first, in the same task, as is one of the two that the venue does not take now. Give exactly one of `amount` (smallest units of the source token) and `amount_usd`. `wrap_only` wraps what already lies on Polygon. Next: poll `tasks_get`; then `predmkt_order`.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    body: T.Object(
      {
        amount: T.Optional(UnitsIn('Smallest units of the source token; either this or `amount_usd`')),
        amount_usd: T.Optional(Usd('Amount; either this or `amount`', '25')),
        source_chain_id: T.Optional(ChainRefIn('Chain of the token that is paid; omitted: Polygon')),
        source_token_address: T.Optional(TokenRefIn('Token that is paid; omitted: USDC')),
        wrap_only: T.Optional(
          T.Boolean({
            description: 'True wraps USDC and USDC.e that lie in the funded wallet or in your own one',
          }),
        ),
        source_wallet: T.Optional(
          OneOf(['eoa', 'deposit_wallet'] as const, {
            description:
              'With `wrap_only`: where the dollars lie, in your own wallet (eoa, the default) or in the funded one',
          }),
        ),
        slippage_bps: T.Optional(SlippageBps),
      },
      { $id: 'PredictionFundRequest', examples: [{ amount_usd: '25', source_chain_id: '8453' }] },
    ),
    output: TaskResponse,
    result: FundingOutcome,
    faults: transferFaults,
  }),
  withdraw: task('POST /predmkt/withdraw', {
    summary: 'Move cash from the venue to your own wallet, on any chain',
    description:
      'Use it to take cash out: the venue sends it to your own wallet on Polygon without gas, where it is unwrapped to USDC or USDC.e. With another `destination_chain_id`, or with `token: coin`, it is swapped there in the same task and into your own wallet, which counts against the limits as a swap. Next: poll `tasks_get`; success is `outcome: executed`, and `result.amount_usd` is what arrived. While the venue unwraps nothing it waits with `venue_ramp_paused`. With the outcome `partial` the message says where the money is; pUSD in your own wallet is used by the next withdrawal.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    body: T.Object(
      {
        amount_usdc: Usd('Amount', '25'),
        token: T.Optional(
          OneOf(['usdc', 'usdc_e', 'pusd', 'coin'] as const, {
            description:
              'What arrives: USDC (the default), the coin of the chain, or on Polygon also USDC.e, or pUSD as it is',
          }),
        ),
        destination_chain_id: T.Optional(ChainRefIn('Chain where it arrives; omitted: Polygon')),
        slippage_bps: T.Optional(SlippageBps),
      },
      {
        $id: 'PredictionWithdrawRequest',
        examples: [{ amount_usdc: '25' }, { amount_usdc: '25', destination_chain_id: '8453' }],
      },
    ),
    output: TaskResponse,
    result: FundingOutcome,
    faults: transferFaults,
  }),
  redeem: task('POST /predmkt/redeem', {
    summary: 'Redeem shares of resolved markets for cash',
    description:
      'Use it after a market is resolved: shares of the outcome that won pay 1 USD each, those that lost pay nothing, and a void market pays each in part. Give exactly one of `condition_id` and `all`. Where the venue redeems first by itself, that counts; shares that left the wallet otherwise end as `no_position`. Next: poll `tasks_get`; then `predmkt_withdraw`.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    body: T.Object(
      {
        condition_id: T.Optional(ConditionIdIn('Condition of the market')),
        all: T.Optional(T.Boolean({ description: 'True redeems every resolved market' })),
      },
      {
        $id: 'PredictionRedeemRequest',
        examples: [{ condition_id: '0x3d69cc55e7b3d6f2d1a1f0e0b5c4a39281706f5e4d3c2b1a09f8e7d6c5b4f137' }],
      },
    ),
    output: TaskResponse,
    result: RedeemOutcome,
    faults: [
      'not_found',
      'policy_denied',
      'setup_incomplete',
      'not_resolved',
      'no_position',
      'unavailable',
      'upstream_changed',
    ],
  }),
}

export type SetupStatusView = T.Static<typeof SetupStatus>
