import * as T from 'typebox'
import { group, read, task } from '#kernel/operation.ts'
import { TaskResponse } from '#kernel/task-response.ts'
import {
  Address,
  ChainId,
  Dec,
  DecIn,
  DecOrNull,
  Id,
  Nullable,
  OneOf,
  OpenObject,
  RatioOrNull,
  SignedUnits,
  Text,
  TextOrNull,
  Time,
  Units,
} from '#kernel/wire-types.ts'

const waitSeconds = 60
const usdc = { places: 6, exclusiveMinimum: 0, example: 25.5 }

const Deposit = T.Object(
  {
    amount_usdc: DecIn({ ...usdc, description: 'USDC to deposit' }),
    position_id: T.Optional(
      Nullable(T.String({ description: 'Position to deposit into; omit to open a new one' })),
    ),
  },
  { $id: 'DepositRequest' },
)

const Withdraw = T.Object(
  {
    position_id: T.String({ minLength: 1, description: 'Position to withdraw from' }),
    amount_usdc: T.Optional(
      Nullable(DecIn({ ...usdc, description: 'USDC to withdraw; null or omitted redeems every share' })),
    ),
  },
  { $id: 'WithdrawRequest' },
)

const HistoryEntry = T.Object(
  {
    id: T.String({ default: '' }),
    position_id: T.String({ default: '' }),
    action_type: T.String({ default: '', description: 'deposit or withdraw' }),
    amount_usdc: Nullable(T.Number()),
    status: T.String({ default: '', description: 'pending, completed or failed' }),
    created_at: Nullable(Time),
    amount_usdc_decimal: DecOrNull,
    action: OneOf(['deposit', 'withdraw'] as const),
    shares_delta: Nullable(SignedUnits),
    vault_address: Address,
    vault_apy_at_action: RatioOrNull,
    tx_hash: TextOrNull,
    task_id: Text,
    error_message: TextOrNull,
  },
  { $id: 'EarnHistoryEntry' },
)

const Position = T.Object(
  {
    id: Id('Position'),
    status: OneOf(['active', 'withdrawn'] as const),
    vault_address: Address,
    chain_id: ChainId,
    vault_chain_name: Text,
    current_apy: RatioOrNull,
    amount_deposited_usdc: Dec,
    current_value_usdc: DecOrNull,
    unrealized_yield_usdc: DecOrNull,
    shares: Units,
    external_delta_shares: Nullable(SignedUnits),
    created_at: Time,
  },
  { $id: 'EarnPosition' },
)

const depositFaults = [
  'not_found',
  'policy_denied',
  'trading_paused',
  'insufficient_balance',
  'conflict',
  'unavailable',
]

export const contract = group('earn', {
  info: read('GET /v1/earn', {
    summary: 'The vault, its yield and its minimums',
    access: 'public',
    output: T.Object(
      {
        vault_address: Address,
        chain_id: ChainId,
        vault_chain_name: Text,
        asset: T.Literal('USDC'),
        apy: RatioOrNull,
        apy_7d: RatioOrNull,
        apy_30d: RatioOrNull,
        apy_source: T.Literal('share_price'),
        performance_fee_percentage: RatioOrNull,
        share_price: Dec,
        total_assets_usdc: Dec,
        min_deposit_usdc: Dec,
        min_withdraw_usdc: Dec,
        as_of: Time,
      },
      { $id: 'EarnInfoResponse' },
    ),
    faults: ['unavailable'],
  }),
  vault: read('GET /v1/earn/vault', {
    summary: 'What the vault contract says of itself',
    access: 'read',
    output: T.Object(
      {
        chain_id: ChainId,
        vault_address: Address,
        asset: T.Object({ address: Address, symbol: Text, decimals: T.Integer() }),
        share_decimals: T.Integer(),
        total_assets: Units,
        total_supply: Units,
        convert_to_assets_one: Units,
        as_of_block: T.Integer(),
        raw: OpenObject,
      },
      { $id: 'EarnVaultResponse' },
    ),
    faults: ['unavailable'],
  }),
  enable: task('POST /v1/earn/enable', {
    summary: 'Make a first deposit; later ones are deposits',
    access: 'earn',
    rate: 'money',
    waitSeconds,
    taskKind: 'earn_deposit',
    body: Deposit,
    output: TaskResponse,
    faults: depositFaults,
  }),
  deposit: task('POST /v1/earn/deposit', {
    summary: 'Deposit USDC into the vault, gasless',
    access: 'earn',
    rate: 'money',
    waitSeconds,
    body: Deposit,
    output: TaskResponse,
    faults: depositFaults,
  }),
  withdraw: task('POST /v1/earn/withdraw', {
    summary: 'Withdraw USDC from a position, in part or whole',
    access: 'earn',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    body: Withdraw,
    output: TaskResponse,
    faults: [
      'not_found',
      'policy_denied',
      'insufficient_balance',
      'no_position',
      'insufficient_liquidity',
      'unavailable',
    ],
  }),
  sync: task('POST /v1/earn/sync', {
    summary: 'Bring positions in line with the shares on the chain',
    description:
      'Books shares that came to the account or left it another way, as `external_delta_shares` of the positions shows them. What is missing is taken from the newest positions first, what came is added to the oldest. Waits until no deposit or withdrawal is under way.',
    access: 'earn',
    rate: 'exit',
    waitSeconds,
    output: TaskResponse,
    faults: ['no_position'],
  }),
  positions: read('GET /v1/earn/positions', {
    summary: 'Your positions and what became of each deposit and withdrawal, newest first',
    access: 'read',
    query: T.Object({
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 100 })),
      after: T.Optional(T.String({ format: 'uuid', description: 'Positions after this one: `next_after`' })),
      status: T.Optional(OneOf(['active', 'withdrawn'] as const)),
      history_limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 100 })),
      history_after: T.Optional(
        T.String({ format: 'uuid', description: 'Entries after this one: `next_history_after`' }),
      ),
    }),
    output: T.Object(
      {
        positions: T.Array(Position),
        history: T.Array(HistoryEntry),
        next_after: TextOrNull,
        next_history_after: TextOrNull,
      },
      { $id: 'EarnPositionsResponse' },
    ),
  }),
})
