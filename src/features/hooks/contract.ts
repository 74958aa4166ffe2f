import { HookLeg, tpSlMax, tpSlTypes } from '#engines/trigger-orders/tp-sl.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { act, group, type InputOf } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { orRequested } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  ChainRefIn,
  Dec,
  DecIn,
  DecOrNull,
  Id,
  Nullable,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
  TokenRefIn,
  Units,
} from '#kernel/contract/wire-types.ts'

const HooksRequest = T.Object(
  {
    chain_id: T.Optional(ChainRefIn('Chain of the token')),
    chain: T.Optional(ChainRefIn('The same as `chain_id`')),
    token_address: TokenRefIn('Token that is held'),
    stop_losses: T.Optional(T.Array(HookLeg, { maxItems: tpSlMax })),
    take_profits: T.Optional(T.Array(HookLeg, { maxItems: tpSlMax })),
    stop_loss: T.Optional(HookLeg),
    take_profit: T.Optional(HookLeg),
    reference: T.Optional(
      OneOf(['entry', 'mark'] as const, {
        default: 'entry',
        description: 'entry: the average cost of your own fills; mark: what a sale would bring now',
      }),
    ),
    oco: T.Optional(
      T.Boolean({ default: true, description: 'A hook that sells everything cancels the others' }),
    ),
    trailing_percentage: T.Optional(
      DecIn({
        description: 'A stop that follows the highest price at this fraction below it',
        example: '0.05',
      }),
    ),
    slippage_bps: T.Optional(T.Integer({ minimum: 1, maximum: 1_000, default: 100 })),
    max_price_impact_bps: T.Optional(
      T.Integer({
        minimum: 1,
        maximum: 10_000,
        default: 2_500,
        description:
          'How much of the value at trusted prices a sale may lose, in hundredths of a percent; above the default it waits until the person has confirmed it. A sale that would lose more waits; a tenth of the value is always left, and fees may take 5 USD, up to half of it. Above 2500 the sale is stopped by caps and kill switches, as a swap is',
      }),
    ),
    expires_at: T.Optional(Nullable(Time)),
  },
  {
    $id: 'HooksRequest',
    additionalProperties: false,
    examples: [
      {
        chain_id: '8453',
        token_address: 'AERO',
        stop_losses: [{ price_percentage: '0.1' }],
        take_profits: [{ price_percentage: '0.5' }],
        reference: 'mark',
      },
    ],
  },
)

export const hookStatuses = [
  'active',
  'triggered',
  'executing',
  'filled',
  'failed_retrying',
  'failed',
  'cancelled',
  'expired',
] as const

export const hookFields = {
  id: Id('Hook'),
  type: OneOf(tpSlTypes),
  chain_id: ChainId,
  token_address: Address,
  symbol: Text,
  reference: OneOf(['entry', 'mark'] as const),
  reference_price_usd: DecOrNull,
  trigger_price_usd: Dec,
  sell_percentage: Dec,
  amount: Nullable({
    ...Units,
    description:
      'Of a hook that a swap left: the units that were received, of which it sells its fraction; null: it sells a fraction of the balance',
  }),
  oco_group: TextOrNull,
  status: OneOf(hookStatuses),
  price_stale: T.Boolean({ description: 'No recent price: nothing fires until there is one' }),
  attempts: T.Integer(),
  task_id: TextOrNull,
  failure_reason: TextOrNull,
  expires_at: TimeOrNull,
  created_at: Time,
  updated_at: Time,
}
export const Hook = T.Object(hookFields, { $id: 'Hook' })
setColumns(Hook, ['id', 'type', 'status', 'trigger_price_usd', 'chain_id', 'expires_at'])
export type HookView = T.Static<typeof Hook>

const about = 'Take-profits, stop-losses and trailing stops on tokens of your wallet.'

export const contract = group('hooks', about, {
  register: act('POST /v1/hooks', {
    summary: 'Leave stop-losses and take-profits on a token that you hold',
    mainTool: {
      text: 'Protects a token that your wallet holds: a stop-loss, take-profit or trailing stop sells it into USDC automatically when its price falls or rises by a percentage. Take `perp_tp_sl` for a perp position.',
      fields: {
        chain_id: 'Chain, by name or id',
        token_address: 'Symbol or address',
        stop_loss: '',
        take_profit: '',
        trailing_percentage: 'Fraction below the highest price',
      },
    },
    description:
      'Use it to sell a token into USDC when its price falls or rises, also while nobody is looking. Percentages are fractions of the reference: 0.1 is 10 %. A hook fires on two executable quotes at its own size that agree, sells the fraction of the balance at that time, and fires once. Next: `outstanding_orders_list` shows hooks until they end, and `outstanding_orders_cancel` cancels them; `tasks_get` with the `task_id` of a hook that fired shows its sale, and events `hook.*` report each change.',
    access: 'trade',
    rate: 'money',
    body: HooksRequest,
    output: orRequested(
      T.Object(
        { status: OneOf(['active'] as const), message: Text, hooks: T.Array(Hook) },
        { $id: 'HooksResponse' },
      ),
    ),
    faults: [
      'policy_denied',
      'approval_required',
      'insufficient_balance',
      'entry_unknown',
      'no_route',
      'insufficient_liquidity',
      'conflict',
      'unavailable',
      'upstream_changed',
    ],
  }),
})

export type HooksInput = InputOf<(typeof contract.entries)['register']>
