import { HookLeg, tpSlMax } from '#engines/trigger-orders/tp-sl.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { group, type InputOf, task } from '#kernel/contract/operation.ts'
import { Link } from '#kernel/contract/operation-link.ts'
import * as T from '#kernel/contract/schema.ts'
import { linkedTaskFields, taskDetails } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  ChainRefIn,
  Dec,
  DecIn,
  DecOrNull,
  Nullable,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TokenRefIn,
  Units,
  UnitsIn,
} from '#kernel/contract/wire-types.ts'
import { routeFeeTypes } from '#kernel/money/swap-provider.ts'
import { securityStatuses, securityVerdicts } from '#kernel/money/token-security.ts'
import { swapLimits } from './route/limits.ts'

const waitSeconds = 60

const legs = (description: string) =>
  T.Union([HookLeg, T.Array(HookLeg, { maxItems: tpSlMax })], { description })

const SwapRequest = T.Object(
  {
    chain_id_in: ChainRefIn('Chain of the token that is sold'),
    chain_id_out: T.Optional(ChainRefIn('Chain of the token that is bought; omitted: `chain_id_in`')),
    token_in: TokenRefIn('Token that is sold'),
    token_out: TokenRefIn('Token that is bought'),
    amount: T.Optional(UnitsIn('Smallest units of `token_in`; either this or `amount_usd`')),
    amount_usd: T.Optional(
      DecIn({
        places: 6,
        exclusiveMinimum: 0,
        description: 'In USD; either this or `amount`',
        example: '25',
      }),
    ),
    slippage_bps: T.Optional(
      T.Integer({
        ...swapLimits.slippageBps,
        description: 'How far the output may fall below the quote, in hundredths of a percent',
      }),
    ),
    max_price_impact_bps: T.Optional(
      T.Integer({
        ...swapLimits.priceImpactBps,
        description:
          'How much of the value at trusted prices the swap may lose, in hundredths of a percent; above the default an agent needs the approval of a person. The hooks that it leaves accept the same. A tenth of the value is always left, and fees may take 5 USD, up to half of it',
      }),
    ),
    take_profit: T.Optional(
      legs(
        'Sells what was bought, or a fraction of it, when its price has risen to this; armed when the swap completes',
      ),
    ),
    stop_loss: T.Optional(
      legs(
        'Sells what was bought, or a fraction of it, when its price has fallen to this; armed when the swap completes',
      ),
    ),
    cancel_conditional_orders: T.Optional(
      T.Boolean({
        default: false,
        description:
          'Cancels the hooks on `token_in` on its chain when the swap completes, and no others; a swap that is refused or fails leaves them',
      }),
    ),
    dryrun: T.Optional(
      T.Boolean({ default: false, description: 'Answers a bound quote and moves nothing; it makes no task' }),
    ),
    quote_id: T.Optional(
      Nullable(
        T.String({
          maxLength: 64,
          description: 'Executes the quote of a dry run, whose other fields must be repeated as they were',
        }),
      ),
    ),
    recipient: T.Optional(
      Nullable(
        T.String({
          minLength: 1,
          maxLength: 64,
          description: 'One of your own wallets; omitted: the one on the chain',
        }),
      ),
    ),
    max_fee_bps: T.Optional(
      Nullable(
        T.Integer({
          minimum: 0,
          maximum: 10_000,
          description: 'The most that fees may take of the input, in hundredths of a percent',
        }),
      ),
    ),
    deadline_seconds: T.Optional(
      T.Integer({
        ...swapLimits.deadlineSeconds,
        description:
          'The transaction is void where it is not included within this time; on Solana nothing is signed after it, and what was signed is void within 90 seconds',
      }),
    ),
  },
  {
    $id: 'SwapRequest',
    additionalProperties: false,
    examples: [
      { chain_id_in: '8453', token_in: 'USDC', token_out: 'WETH', amount: '25000000', dryrun: true },
    ],
  },
)

const Fee = T.Object(
  {
    type: OneOf(routeFeeTypes),
    chain_id: ChainId,
    token_address: Address,
    amount: Units,
    amount_usd: DecOrNull,
    paid_by: OneOf(['user', 'gateway'] as const, {
      description: 'user: part of the input already; gateway: gas that costs the user nothing',
    }),
  },
  { $id: 'SwapFee' },
)
setColumns(Fee, ['type', 'amount_usd', 'paid_by'])

const Leg = T.Object(
  {
    tool: Text,
    chain_id: ChainId,
    token_in: Address,
    chain_id_out: ChainId,
    token_out: Address,
    amount_in: Units,
    amount_out: Units,
  },
  { $id: 'SwapLeg' },
)
setColumns(Leg, ['tool', 'chain_id', 'chain_id_out'])

const Quote = T.Object(
  {
    quote_id: TextOrNull,
    provider: Text,
    symbol_in: T.Optional(Text),
    symbol_out: T.Optional(Text),
    decimals_in: T.Optional(T.Integer()),
    decimals_out: T.Optional(T.Integer()),
    amount_in: Units,
    amount_in_usd: DecOrNull,
    amount_out: Units,
    amount_out_usd: DecOrNull,
    amount_out_min: Units,
    price_impact_bps: T.Integer(),
    fees: T.Array(Fee),
    fees_usd: DecOrNull,
    route: T.Array(Leg),
    eta_seconds: T.Integer(),
    expires_at: Time,
  },
  { $id: 'SwapQuote' },
)
setColumns(Quote, [
  'amount_in',
  'amount_out',
  'amount_out_min',
  'price_impact_bps',
  'fees_usd',
  'provider',
  'expires_at',
])

const Refund = T.Object(
  { chain_id: ChainId, token_address: Address, amount: Units, tx_hash: TextOrNull },
  { $id: 'SwapRefund' },
)

const SwapHook = T.Object(
  {
    id: Nullable(T.String({ description: 'Hook; null until the swap has completed' })),
    type: OneOf(['stop_loss', 'take_profit'] as const),
    trigger_price_usd: T.String({
      ...Dec,
      description:
        'Of a fraction: counted from the price of the quote, and once it is armed from the price of the fill',
    }),
    sell_percentage: Dec,
  },
  { $id: 'SwapHook' },
)
export type SwapHookView = T.Static<typeof SwapHook>

const SwapResult = T.Object(
  {
    amount_in: Units,
    amount_out: Units,
    amount_out_min: Units,
    tx_hash: TextOrNull,
    explorer_url: TextOrNull,
    volume_usd: Dec,
    fees: T.Array(Fee),
    refunded: Nullable(Refund),
    failure_reason: TextOrNull,
    hook_ids: T.Optional(T.Array(Text, { description: 'Hooks that the swap has armed' })),
    cancelled_hook_ids: T.Optional(
      T.Array(Text, { description: 'Hooks on `token_in` that it has cancelled' }),
    ),
  },
  { $id: 'SwapResult', description: 'Amounts as the chains show them', additionalProperties: true },
)
setColumns(SwapResult, ['volume_usd', 'fees', 'refunded', 'failure_reason', 'hook_ids'])

/** A dry run's answer has no task. A swap's has the task's fields and, if its caller waited, those of its quote. */
const SwapResponse = T.Object(
  {
    ...linkedTaskFields,
    task_id: TextOrNull,
    poll_url: T.Unsafe<string | null>({ ...Link('tasks_get'), type: ['string', 'null'] }),
    ...T.Partial(T.Object(taskDetails)).properties,
    dryrun: T.Optional(T.Boolean()),
    quote: T.Optional(Quote),
    platform_fee_amount: T.Optional(Units),
    security: T.Optional(
      T.Array(
        T.Object(
          {
            chain_id: ChainId,
            token_address: Address,
            status: OneOf(securityStatuses),
            verdict: OneOf(securityVerdicts),
          },
          { $id: 'SwapSecurity' },
        ),
        { description: 'The verdict about the token that is bought' },
      ),
    ),
    hooks: T.Optional(T.Array(SwapHook, { description: 'Hooks on the token that is bought' })),
    cancelled_hook_ids: T.Optional(
      T.Array(Text, {
        description:
          'Hooks on `token_in` that the swap has cancelled; of a dry run: those that it would cancel',
      }),
    ),
    policy: T.Optional(
      T.Object({ decision: OneOf(['allow'] as const), rule: TextOrNull, remaining_usd: Dec }),
    ),
  },
  { $id: 'SwapResponse' },
)

const about = 'Swaps and bridges between tokens and chains; the gas is paid for you.'

export const contract = group('swap', about, {
  execute: task('POST /v1/swap', {
    summary: 'Swap or bridge a token, gasless: on one chain, between EVM chains, to Solana and from it',
    mainTool: {
      text: 'Swaps now: buys, sells, converts or exchanges a token of your wallet for another, such as USDC for ETH or SOL, or bridges and moves it to another chain. Take `limit_orders_create` for a price to come, and `perp_open` for leverage. A coin that trades at the venue alone, such as HYPE, is bought by `spot_venue_buy`. With `dryrun` it answers a quote and moves nothing.',
      fields: {
        chain_id_in: 'Chain, by name or id',
        chain_id_out: 'Left out: the same chain',
        token_in: 'Token sold: symbol or address',
        token_out: 'Token bought',
        amount_usd: 'Its worth in USD, or `amount`',
        amount: 'In smallest units',
        slippage_bps: 'Hundredths of a percent',
        dryrun: 'Only a quote',
        quote_id: 'Fills the quote of a dry run',
      },
    },
    description:
      'Use it to trade a token of your wallet for another one, on the same chain or another; the gas is paid for you. Give exactly one of `amount` (smallest units of `token_in`) and `amount_usd`. With `dryrun` it answers a quote and moves nothing; the same request with its `quote_id` fills at `amount_out_min` or better, or moves nothing. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed`; `result.amount_out` and `balance_changes` are what arrived. A bridge that could not be filled ends `failed` with `result.refunded`. With `take_profit` and `stop_loss` it leaves hooks for exactly what was received, counted from the price of the fill; `result.hook_ids` names them. A token that the security check does not pass cannot be bought (403 `token_unsafe`); it can always be sold.',
    access: 'trade',
    rate: 'money',
    taskKind: 'swap',
    waitSeconds,
    body: SwapRequest,
    output: SwapResponse,
    result: SwapResult,
    faults: [
      'not_found',
      'policy_denied',
      'token_unsafe',
      'approval_required',
      'trading_paused',
      'insufficient_balance',
      'no_route',
      'insufficient_liquidity',
      'quote_expired',
      'conflict',
      'unavailable',
      'upstream_changed',
    ],
  }),
})

export type SwapInput = InputOf<(typeof contract.entries)['execute']>
export type SwapView = T.Static<typeof SwapResponse>
export type QuoteView = T.Static<typeof Quote>
export type FeeView = T.Static<typeof Fee>
