import { setColumns } from '#kernel/contract/columns.ts'
import { group, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  ChainRefIn,
  Dec,
  DecOrNull,
  ForAgent,
  ForAgentQuery,
  Nullable,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
  TokenRefIn,
  Units,
  UnitsIn,
} from '#kernel/contract/wire-types.ts'

const WalletInfo = T.Object(
  {
    wallet_id: Text,
    address: Address,
    chain_type: OneOf(['evm', 'solana'] as const),
    supported_chain_ids: T.Array(ChainId),
  },
  { $id: 'WalletInfo' },
)
setColumns(WalletInfo, ['chain_type', 'address', 'supported_chain_ids'])

export const Holding = T.Object(
  {
    chain_id: ChainId,
    chain_name: Text,
    token_address: Address,
    symbol: Text,
    name: Text,
    decimals: T.Integer(),
    kind: OneOf(['native', 'token', 'earn_share', 'outcome_token'] as const),
    amount: Units,
    balance: Dec,
    price_usd: DecOrNull,
    price_source: TextOrNull,
    price_as_of: TimeOrNull,
    value_usd: DecOrNull,
    avg_entry_price_usd: DecOrNull,
    cost_basis_usd: DecOrNull,
    unrealized_pnl_usd: DecOrNull,
    realized_pnl_usd: DecOrNull,
    verified: T.Boolean({ description: 'On the verified list of the chain' }),
    protocol: Nullable(
      T.String({
        description:
          'erc4626 for vault shares; polymarket for what lies in your wallet at the prediction market; null in your own wallets',
      }),
    ),
    condition_id: TextOrNull,
    outcome_id: Nullable(T.String({ description: 'Of outcome shares, as `predmkt_order` takes it' })),
    negative_risk: Nullable(T.Boolean()),
    redeemable: Nullable(T.Boolean()),
    external_url: TextOrNull,
    outstanding_orders: T.Array(Text),
    as_of_block: T.Integer(),
  },
  { $id: 'Holding' },
)
setColumns(Holding, ['chain_name', 'symbol', 'balance', 'price_usd', 'value_usd', 'unrealized_pnl_usd'])
export type HoldingView = T.Static<typeof Holding>

const ChainReading = T.Object(
  {
    chain_id: ChainId,
    status: OneOf(['ok', 'stale', 'failed'] as const),
    as_of_block: Nullable(T.Integer()),
    as_of: TimeOrNull,
    error: TextOrNull,
  },
  { $id: 'HoldingsChain' },
)
setColumns(ChainReading, [])
const HoldingsError = T.Object({
  chain_id: Nullable(ChainId),
  source: OneOf(['chain', 'prediction_market', 'prices'] as const, {
    description: 'What did not answer: the chain, the prediction market, or the providers of prices',
  }),
  message: Text,
})
export type HoldingsErrorView = T.Static<typeof HoldingsError>
export type ChainReadingView = T.Static<typeof ChainReading>

const TransferRequest = T.Object(
  {
    chain_id: ChainRefIn('Chain of the wallet'),
    token: TokenRefIn('What is sent'),
    amount: UnitsIn('Amount in smallest units'),
    recipient: T.String({
      minLength: 32,
      maxLength: 44,
      description: 'Address of an effective recipient, as `recipients_list` spells it',
      examples: ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8'],
    }),
  },
  {
    $id: 'TransferRequest',
    additionalProperties: false,
    examples: [
      {
        chain_id: '8453',
        token: 'USDC',
        amount: '25000000',
        recipient: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
      },
    ],
  },
)
const TransferResult = T.Object(
  {
    chain_id: ChainId,
    token_address: Address,
    symbol: Text,
    amount: Units,
    recipient: T.String({ description: 'The address that received' }),
    tx_hash: Text,
  },
  { $id: 'TransferResult' },
)
setColumns(TransferResult, ['symbol', 'recipient'])

export const contract = group('wallets', 'Addresses and balances on every chain.', {
  list: read('GET /v1/wallets', {
    summary: 'Your wallets and the chains that each serves',
    mainTool: {
      text: 'Your addresses on EVM chains and Solana, where to send or deposit money from outside to fund the account. Take `wallets_holdings` for balances.',
    },
    description:
      'Use it to find the addresses to which funds are sent. While `provisioning` is true, a wallet is still being created. Next: fund an address, then `wallets_holdings`.',
    access: 'read',
    query: ForAgentQuery,
    faults: ['not_found'],
    output: T.Object(
      {
        wallets: T.Array(WalletInfo),
        provisioning: T.Boolean({ description: 'A wallet is still being created' }),
      },
      { $id: 'WalletsResponse' },
    ),
  }),
  holdings: read('GET /v1/holdings', {
    summary: 'What your wallets hold on every chain, with prices where they are known',
    mainTool: {
      text: 'The balance of every token that your wallets hold, such as USDC on Base, with its worth in dollars. Take `portfolio_show` for all your money in one sum.',
      fields: { event: 'wallet-refresh reads the chains anew' },
    },
    description:
      'Use it to see balances on every chain: `balance` in whole tokens, `amount` in smallest units, `value_usd` in USD where a price is known. Cash and shares in your wallet at the prediction market have `protocol: polymarket`. A chain that does not answer is `stale` or `failed`, and the others are served. Next: `earn_deposit`, `perp_fund` or `spot_venue_buy`.',
    access: 'read',
    query: T.Object({
      chain_type: T.Optional(
        OneOf(['evm', 'solana', '0', '1'] as const, {
          description: 'evm or 0, solana or 1; both where omitted',
        }),
      ),
      event: T.Optional(T.String({ maxLength: 64, description: 'wallet-refresh reads the chains anew' })),
      for_agent: ForAgent,
    }),
    faults: ['not_found'],
    output: T.Object(
      {
        holdings: T.Array(Holding),
        total_value_usd: Dec,
        complete: T.Boolean({ description: 'Every chain answered and every holding has a price' }),
        stale: T.Boolean({ description: 'A chain is shown as it was, or is missing' }),
        as_of: Time,
        chains: T.Array(ChainReading),
        errors: T.Array(HoldingsError),
      },
      { $id: 'HoldingsResponse' },
    ),
  }),
  transfer: task('POST /v1/wallets/transfer', {
    isAddition: true,
    summary: 'Send a coin or token to an address that a person has allowed',
    mainTool: {
      text: 'Sends a coin or token to another person, to an address that your person has allowed; pays or transfers it. Take `swap_execute` to bridge to your own wallet, `perp_withdraw` for money at the venue, and `recipients_add` to ask for a new address.',
      fields: {
        chain_id: 'Chain, by name or id',
        token: 'Symbol or address',
        amount: 'In smallest units',
        recipient: 'Allowed address',
      },
    },
    description:
      'Use it to send to an effective recipient; gas is paid for. It is sent at once where the recipient has `agents: allowed`; with `agents: approval`, and for an app of the person with `denied`, it waits until the person approves it. The limits of the policy hold. Next: `tasks_get` until it has ended, or `recipients_list` where the recipient is refused.',
    access: 'trade',
    waitSeconds: 60,
    body: TransferRequest,
    output: TaskResponse,
    result: TransferResult,
    faults: [
      'policy_denied',
      'approval_required',
      'trading_paused',
      'insufficient_balance',
      'conflict',
      'unavailable',
    ],
  }),
})
