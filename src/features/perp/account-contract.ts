import { positive, readFaults } from '#engines/venue/records/schemas.ts'
import { openResult } from '#engines/venue/records/task-results.ts'
import { read, task } from '#kernel/operation.ts'
import * as T from '#kernel/schema.ts'
import { TaskResponse } from '#kernel/task-response.ts'
import {
  Address,
  ChainId,
  Dec,
  DecIn,
  DecOrNull,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
  Units,
} from '#kernel/wire-types.ts'

/** Set-up, funding and withdrawal of the account at the perpetual venue. */

const setupWaitSeconds = 60
const waitSeconds = 90
const ChainIn = T.Unsafe<string | number>({
  type: ['string', 'integer'],
  maxLength: 64,
  description: 'Chain by id or name; only Arbitrum (42161) is connected to the venue now',
})
const TokenIn = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'Token by symbol or address; only USDC now',
})

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

const arrived = {
  amount: Units,
  amount_usd: Dec,
  fee_usd: Dec,
  chain_id: ChainId,
  token_address: Address,
  tx_hash: Text,
  credited_at: Time,
}
const FundResult = T.Object(
  { ...arrived, source_token: T.Optional(Text) },
  { $id: 'PerpFundingResult', description: 'USDC that arrived at the venue', ...openResult },
)
const WithdrawResult = T.Object(
  { ...arrived, withdrawn_usd: Dec, moved_from_spot_usd: DecOrNull },
  { $id: 'PerpWithdrawalResult', description: 'USDC that arrived in the wallet', ...openResult },
)

export const accountEntries = {
  setupStatus: read('GET /v1/perp/setup', {
    summary: 'Whether perpetual trading is set up, step by step',
    description:
      'Use it before trading. Trading needs setup AND funding: `setup_complete` is true once the account is activated by a deposit and the trading key is approved. Amounts are in USD. Next: `perp_setup` where `agent_key` is not done, `perp_fund` where `account_activated` is not done, then `perp_open`.',
    access: 'read',
    output: SetupStatus,
    faults: readFaults,
  }),
  setup: task('POST /v1/perp/setup', {
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
  fund: task('POST /v1/perp/fund', {
    summary: 'Move USDC from the wallet to the venue, gasless',
    description:
      'Use it to move USDC from your wallet on Arbitrum to the venue; the gas is paid for you. Give exactly one of `amount_usd` and `amount` (smallest units, 6 decimals). The first funding also activates the account and approves the trading key. Next: poll `tasks_get`, or send `wait=true`; after `status: completed` and `outcome: executed`, `perp_open` is possible.',
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
            description: 'Smallest units of the token; either this or `amount_usd`',
            examples: ['25000000'],
          }),
        ),
        amount_usd: T.Optional(
          DecIn({ ...positive, places: 6, description: 'In USD; either this or `amount`', example: 25 }),
        ),
        source_chain_id: T.Optional(ChainIn),
        source_token: T.Optional(TokenIn),
      },
      { $id: 'PerpFundRequest', examples: [{ amount_usd: '25' }] },
    ),
    output: TaskResponse,
    result: FundResult,
    faults: [
      'policy_denied',
      'trading_paused',
      'insufficient_balance',
      'conflict',
      'unavailable',
      'upstream_changed',
    ],
  }),
  withdraw: task('POST /v1/perp/withdraw', {
    summary: 'Move collateral from the venue to your own wallet',
    description:
      'Use it to move USDC from the venue to your own wallet. `amount_usd` includes the fee of the venue. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result.amount_usd` is what arrived and `result.fee_usd` the fee.',
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
        destination_chain_id: T.Optional(ChainIn),
        destination_token: T.Optional(TokenIn),
      },
      { $id: 'PerpWithdrawRequest', examples: [{ amount_usd: '25' }] },
    ),
    output: TaskResponse,
    result: WithdrawResult,
    faults: ['policy_denied', 'insufficient_balance', 'unavailable', 'upstream_changed'],
  }),
}
