import { setColumns } from '#kernel/contract/columns.ts'
import { group, type InputOf, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
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
} from '#kernel/contract/wire-types.ts'

const waitSeconds = 60
const usdc = { places: 6, exclusiveMinimum: 0, example: 25.5 }

const Deposit = T.Object(
  {
    amount_usdc: DecIn({ ...usdc, description: 'USDC to deposit' }),
    position_id: T.Optional(
      Nullable(T.String({ description: 'Position to deposit into; omit to open a new one' })),
    ),
  },
  { $id: 'DepositRequest', examples: [{ amount_usdc: '25.5' }] },
)

const Withdraw = T.Object(
  {
    position_id: T.String({ minLength: 1, description: 'Position to withdraw from' }),
    amount_usdc: T.Optional(
      Nullable(DecIn({ ...usdc, description: 'USDC to withdraw; null or omitted redeems every share' })),
    ),
  },
  {
    $id: 'WithdrawRequest',
    examples: [{ position_id: '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11', amount_usdc: '10' }],
  },
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
setColumns(HistoryEntry, ['created_at', 'action', 'amount_usdc_decimal', 'status', 'tx_hash'])

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
setColumns(Position, [
  'id',
  'vault_chain_name',
  'amount_deposited_usdc',
  'current_value_usdc',
  'unrealized_yield_usdc',
  'current_apy',
])

const depositFaults = [
  'not_found',
  'policy_denied',
  'approval_required',
  'trading_paused',
  'insufficient_balance',
  'conflict',
  'unavailable',
]

const openResult = { additionalProperties: true }
const MoveResult = T.Object(
  {
    position_id: Text,
    amount_usdc: T.Number(),
    amount_usdc_decimal: Dec,
    shares_delta: SignedUnits,
    share_price: Dec,
    tx_hash: Text,
  },
  { $id: 'EarnMoveResult', description: 'Figures of a deposit or withdrawal', ...openResult },
)
setColumns(MoveResult, ['amount_usdc_decimal', 'share_price', 'position_id'])
const SyncResult = T.Object(
  {
    block: T.Integer(),
    shares: Units,
    positions: T.Array(T.Object({ position_id: Text, shares_delta: SignedUnits }, openResult)),
  },
  { $id: 'EarnSyncSummary', description: 'Shares on the chain, and what was booked', ...openResult },
)

export const contract = group('earn', 'Yield in USDC: deposit into a vault and withdraw.', {
  info: read('GET /v1/earn', {
    summary: 'The vault, its yield and its minimums',
    mainTool: {
      text: 'The yield that the vault pays on USDC now, its APY, and its minimum deposit. Take `earn_positions` for what you have in it.',
    },
    description:
      'Use it before a deposit, for the minimums in USDC and the yield as a fraction (0.05 is 5 %). Next: `earn_deposit`.',
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
    description:
      'Use it to check the vault contract itself; amounts are smallest units. Next: `earn_info` has the same in USDC.',
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
    description:
      'Use it for the first deposit, in USDC. It does the same as `earn_deposit`, and its task has the kind `earn_deposit`. Next: with `wait=true`, read `result.position_id` once `status` is completed; otherwise poll `tasks_get`.',
    access: 'earn',
    rate: 'money',
    waitSeconds,
    taskKind: 'earn_deposit',
    body: Deposit,
    output: TaskResponse,
    result: MoveResult,
    faults: depositFaults,
  }),
  deposit: task('POST /v1/earn/deposit', {
    summary: 'Deposit USDC into the vault, gasless',
    mainTool: {
      text: 'Deposits USDC of your wallet into the vault, where it earns yield or interest. Take `perp_fund` for money to trade with.',
      fields: { amount_usdc: 'USDC', position_id: 'Left out: a new position' },
    },
    description:
      'Use it to deposit USDC from your wallet on the chain of the vault; the gas is paid for you. Without `position_id` it opens a new position; with it the amount is added to that one. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result` has the USDC moved and the shares received.',
    access: 'earn',
    rate: 'money',
    waitSeconds,
    body: Deposit,
    output: TaskResponse,
    result: MoveResult,
    faults: depositFaults,
  }),
  withdraw: task('POST /v1/earn/withdraw', {
    summary: 'Withdraw USDC from a position, in part or whole',
    mainTool: {
      text: 'Withdraws USDC from your position in the vault, all or a part, and takes it out into your wallet. Take `perp_withdraw` for money at the venue.',
      fields: { position_id: 'From `earn_positions`', amount_usdc: 'Left out: all' },
    },
    description:
      'Use it to redeem a position into USDC in your own wallet. Without `amount_usdc` it redeems every share, which ends the position. Take `position_id` from `earn_positions`. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result.amount_usdc_decimal` is what arrived in USDC.',
    access: 'earn',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    body: Withdraw,
    output: TaskResponse,
    result: MoveResult,
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
    isAddition: true,
    repeatable: true,
    summary: 'Bring positions in line with the shares on the chain',
    description:
      'Use it when `external_delta_shares` of a position is not 0: shares reached or left the account without the gateway. Missing shares are taken from the newest positions first, additional ones are added to the oldest. It moves no money and waits until no deposit or withdrawal is running. Next: `earn_positions`.',
    access: 'earn',
    rate: 'exit',
    waitSeconds,
    output: TaskResponse,
    result: SyncResult,
    faults: ['no_position'],
  }),
  positions: read('GET /v1/earn/positions', {
    summary: 'Your positions and what became of each deposit and withdrawal, newest first',
    mainTool: {
      text: 'What you have in the earn vault: your deposits, what they are worth, and what they have earned. Take `earn_info` for the present rate.',
    },
    description:
      'Use it to see positions with their value in USDC and the history of deposits and withdrawals. Next: `earn_withdraw` with the `id` of a position; `next_after` and `next_history_after` read further pages.',
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

export type EarnInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
