import { positive, readFaults } from '#engines/venue/records/contract-schemas.ts'
import { openResult } from '#engines/venue/records/task-results.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
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
  TimeOrNull,
  TokenRefIn,
  Units,
} from '#kernel/contract/wire-types.ts'

const setupWaitSeconds = 60
const waitSeconds = 90
const SetupStatus = T.Object(
  {
    setup_complete: T.Boolean(),
    account_activated: T.Boolean(),
    eoa_address: Address,
    api_wallet_address: TextOrNull,
    api_wallet_expires_at: TimeOrNull,
    api_wallet_renews_at: TimeOrNull,
    account_mode: OneOf(['default', 'unified', 'portfolio', 'other'] as const),
    account_value_usd: Dec,
    withdrawable_usd: Dec,
    min_fund_usd: Dec,
    steps: T.Array(T.Object({ key: Text, done: T.Boolean(), error: TextOrNull })),
    venue_requests: T.Union(
      [T.Object({ used: T.Integer(), cap: T.Integer(), limited: T.Boolean() }), T.Null()],
      {
        description:
          'Requests of the account by the count of the venue and how many it may make, at most 5 minutes old; above the cap the venue takes one request in 10 seconds',
      },
    ),
    last_error: TextOrNull,
  },
  { $id: 'PerpSetupStatusResponse' },
)
setColumns(SetupStatus, [
  'setup_complete',
  'account_value_usd',
  'withdrawable_usd',
  'min_fund_usd',
  'steps',
  'last_error',
])

const SlippageBps = T.Integer({
  default: 100,
  minimum: 1,
  maximum: 1_000,
  description: 'How far the output of a swap may fall below its quote, in hundredths of a percent',
})

const FundingLeg = T.Object(
  {
    role: OneOf(['swap', 'deposit', 'withdrawal'] as const, { description: 'Which leg it is' }),
    status: OneOf(['completed', 'failed', 'not_started'] as const),
    chain_id: ChainId,
    token_address: Address,
    amount: Units,
    tx_hash: TextOrNull,
    error: TextOrNull,
  },
  { $id: 'FundingLeg', description: 'One leg, and what it delivered', ...openResult },
)
setColumns(FundingLeg, ['role', 'status', 'error'])
const RemainingFunds = T.Object(
  {
    place: OneOf(['wallet', 'provider'] as const, {
      description: 'wallet: your own one; provider: the provider of the swap neither filled nor refunded',
    }),
    chain_id: ChainId,
    token_address: Address,
    symbol: Text,
    amount: Units,
    account: Address,
    tx_hash: TextOrNull,
  },
  {
    $id: 'RemainingFunds',
    description: 'Where the money is that did not reach its destination',
    ...openResult,
  },
)
const arrived = {
  amount: Units,
  amount_usd: Dec,
  fee_usd: Dec,
  chain_id: ChainId,
  token_address: Address,
  tx_hash: TextOrNull,
  credited_at: TimeOrNull,
  legs: T.Optional(T.Array(FundingLeg, { description: 'Where a swap was part of it' })),
  remaining: T.Optional(Nullable(RemainingFunds)),
}
const FundResult = T.Object(
  { ...arrived, source_token: T.Optional(Text) },
  { $id: 'PerpFundingResult', description: 'USDC that arrived at the venue', ...openResult },
)
setColumns(FundResult, ['amount_usd', 'fee_usd', 'credited_at', 'legs', 'remaining'])
const WithdrawResult = T.Object(
  { ...arrived, withdrawn_usd: Dec, moved_from_spot_usd: DecOrNull },
  { $id: 'PerpWithdrawalResult', description: 'USDC that arrived in the wallet', ...openResult },
)
setColumns(WithdrawResult, ['amount_usd', 'fee_usd', 'credited_at', 'legs', 'remaining'])

export const setupEntries = {
  setupStatus: read('GET /v1/perp/setup', {
    summary: 'Whether perpetual trading is set up, step by step',
    description:
      'Use it before trading. Trading needs setup AND funding: `setup_complete` is true once the account is activated by a deposit and the trading key is approved. Amounts are in USD. Next: `perp_setup` where `agent_key` is not done, `perp_fund` where `account_activated` is not done, then `perp_open`.',
    access: 'read',
    output: SetupStatus,
    faults: readFaults,
  }),
  setup: task('POST /v1/perp/setup', {
    repeatable: true,
    summary: 'Make a trading key and have it approved by the account; rotate replaces the key',
    description:
      'Use it once, before the first order; `rotate` replaces the trading key. It moves no money. Before the first deposit the venue knows no account, so the task ends `completed` with `outcome: partial`: the key exists, and `perp_fund` approves it. Next: `perp_fund` while `result.account_activated` is false; calling setup again changes nothing.',
    access: 'trade',
    rate: 'money',
    waitSeconds: setupWaitSeconds,
    body: T.Object(
      {
        rotate: T.Optional(
          T.Boolean({ default: false, description: 'A new key in place of the present one' }),
        ),
      },
      { $id: 'PerpSetupRequest', examples: [{ rotate: false }] },
    ),
    output: TaskResponse,
    result: SetupStatus,
    faults: ['policy_denied', 'trading_paused', 'unavailable', 'upstream_changed'],
  }),
}

export const cashEntries = {
  fund: task('POST /v1/perp/fund', {
    summary: 'Move money from your wallets to the venue, from any chain and token, gasless',
    mainTool: {
      text: 'Funds the trading account: moves money or collateral from your wallet to the venue of perps and spot, from any chain and token, such as USDC on Base. Take `earn_deposit` for the vault.',
      fields: {
        amount_usd: 'In USD',
        source_chain_id: 'Chain; left out: Arbitrum',
        source_token: 'Left out: USDC',
      },
    },
    description:
      'Use it to move money to the venue; the gas is paid for you. Without `source_chain_id` and `source_token` it is USDC on Arbitrum; anything else is swapped to that first, in the same task, and what arrives is deposited. Give exactly one of `amount_usd` and `amount` (smallest units of the source token). The first funding also activates the account and approves the trading key. Next: poll `tasks_get`, or send `wait=true`; after `status: completed` and `outcome: executed`, `perp_open` is possible. Where one leg failed, `result.legs` says which one, and `result.remaining` where the money is.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    body: T.Object(
      {
        amount: T.Optional(
          T.Unsafe<string | number>({
            type: ['string', 'integer'],
            pattern: '^(0|[1-9][0-9]{0,77})$',
            minimum: 0,
            description: 'Smallest units of the source token; either this or `amount_usd`',
            examples: ['25000000'],
          }),
        ),
        amount_usd: T.Optional(
          DecIn({ ...positive, places: 6, description: 'In USD; either this or `amount`', example: 25 }),
        ),
        source_chain_id: T.Optional(ChainRefIn('Chain of the token that is paid; omitted: Arbitrum')),
        source_token: T.Optional(TokenRefIn('Token that is paid; omitted: USDC')),
        slippage_bps: T.Optional(SlippageBps),
      },
      { $id: 'PerpFundRequest', examples: [{ amount_usd: '25' }] },
    ),
    output: TaskResponse,
    result: FundResult,
    faults: [
      'policy_denied',
      'approval_required',
      'trading_paused',
      'insufficient_balance',
      'no_route',
      'insufficient_liquidity',
      'conflict',
      'unavailable',
      'upstream_changed',
    ],
  }),
  withdraw: task('POST /v1/perp/withdraw', {
    summary: 'Move collateral from the venue to your own wallet',
    mainTool: {
      text: 'Withdraws money or collateral from the venue of perps and spot, Hyperliquid, to your own wallet. Take `earn_withdraw` for the vault, and `wallets_transfer` to pay somebody else.',
      fields: {
        amount_usd: 'In USD, fee included',
        destination_chain_id: 'Left out: Arbitrum',
        destination_token: 'Left out: USDC',
      },
    },
    description:
      'Use it to move USDC from the venue to your own wallet. `amount_usd` includes the fee of the venue. It arrives as USDC on Arbitrum; with `destination_chain_id` or `destination_token` it is swapped there afterwards, in the same task and into your own wallet, and counts against the limits as a swap. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result.amount_usd` is what arrived and `result.fee_usd` the fees. Where the swap failed, the outcome is `partial` and `result.remaining` says where the money is.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    body: T.Object(
      {
        amount_usd: DecIn({
          ...positive,
          places: 6,
          description: 'In USD, fee included',
          example: 25,
        }),
        destination_chain_id: T.Optional(ChainRefIn('Chain where it arrives; omitted: Arbitrum')),
        destination_token: T.Optional(TokenRefIn('Token that arrives; omitted: USDC')),
        slippage_bps: T.Optional(SlippageBps),
      },
      { $id: 'PerpWithdrawRequest', examples: [{ amount_usd: '25' }] },
    ),
    output: TaskResponse,
    result: WithdrawResult,
    faults: [
      'policy_denied',
      'token_unsafe',
      'trading_paused',
      'insufficient_balance',
      'no_route',
      'insufficient_liquidity',
      'unavailable',
      'upstream_changed',
    ],
  }),
}
