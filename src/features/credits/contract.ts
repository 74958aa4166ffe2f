import { ChainInfo } from '#kernel/contract/chain-info.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { group, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { linkedTaskFields, taskDetails } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  Dec,
  DecIn,
  DecOrNull,
  Nullable,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
  Units,
} from '#kernel/contract/wire-types.ts'
import { bucketKinds } from './buckets.ts'

const about = 'Credits for paid operations.'

export const contract = group('credits', about, {
  available: read('GET /v1/credits', {
    summary: 'Credits that you can still spend, by origin',
    description:
      'Use it to see how many credits are left for paid operations. Amounts are whole credits, not USD. Next: `credits_packs` shows the packs, and `subscriptions_plans` the plans, which bring credits too.',
    access: 'read',
    output: T.Object(
      {
        credits_available: Nullable(T.Number()),
        credits_available_decimal: DecOrNull,
        buckets: T.Array(
          T.Object({ kind: OneOf(bucketKinds), credits: T.Integer(), expires_at: TimeOrNull }),
        ),
      },
      { $id: 'CreditsResponse' },
    ),
  }),
  history: read('GET /v1/credits/history', {
    isAddition: true,
    summary: 'What took and brought credits, newest first',
    description:
      'Use it to see which chats, images and packs changed the credits. Amounts are whole credits: negative ones were taken. A page may have fewer entries than `limit`, because not every task moves credits. Next: `before=next_before` reads the next page; `tasks_get` has the task of an entry.',
    access: 'read',
    query: T.Object({
      before: T.Optional(
        T.String({ format: 'uuid', maxLength: 36, description: '`next_before` of the page before' }),
      ),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 20 })),
    }),
    output: T.Object(
      {
        items: T.Array(
          T.Object(
            {
              task_id: TextOrNull,
              kind: T.String({
                description: 'Kind of the task; `signup` for the first credits, `plan` for those of a plan',
              }),
              credits: T.Integer({ description: 'Whole credits; negative: taken' }),
              at: Time,
            },
            { $id: 'CreditEntry' },
          ),
        ),
        next_before: Nullable(T.String({ description: 'Null on the last page' })),
      },
      { $id: 'CreditHistoryPage' },
    ),
  }),
  packs: read('GET /credits/packs', {
    summary: 'The packs in which credits are sold',
    description:
      'Use it to see how many credits a pack holds and its price in USD. Nothing is bought by this call. Next: `credits_available` shows the present balance.',
    access: 'read',
    output: T.Object(
      {
        packs: T.Array(
          T.Object({ pack_id: T.String(), price_usd: Dec, credits: T.Integer() }, { $id: 'CreditPack' }),
        ),
      },
      { $id: 'CreditPacksResponse' },
    ),
  }),
})

const RechargeChain = T.Object(
  {
    ...ChainInfo.properties,
    token: T.Object({ symbol: Text, address: Address, decimals: T.Integer() }),
    confirmations: T.Integer({ description: 'Blocks after which a payment is credited' }),
  },
  { $id: 'RechargeChain', additionalProperties: true },
)
setColumns(RechargeChain, ['chain_id', 'display_name', 'native_token', 'confirmations', 'status'])

const Recharge = T.Object(
  {
    chain_id: T.Unsafe<string | number>({
      type: ['string', 'integer'],
      maxLength: 64,
      description: 'Chain whose native coin pays, by id or name',
      examples: ['8453'],
    }),
    pack_id: T.Optional(T.String({ maxLength: 8, description: 'Pack; or give `amount_usd`' })),
    amount_usd: T.Optional(
      DecIn({ places: 2, exclusiveMinimum: 0, example: '10', description: 'Price of a pack in USD' }),
    ),
    token_address: T.Optional(
      Nullable(T.String({ maxLength: 64, description: 'Only the native coin, which is the default' })),
    ),
  },
  { $id: 'RechargeRequest', examples: [{ chain_id: '8453', pack_id: '10' }] },
)

const RechargeResult = T.Object(
  {
    pack_id: Text,
    credits: T.Integer(),
    chain_id: ChainId,
    tx_hash: Text,
    paid: Units,
    native_price_usd: T.String({ ...Dec, description: 'USD for one coin, by which the amount was computed' }),
  },
  { $id: 'RechargeResult', description: 'What was paid and credited', additionalProperties: true },
)

const RechargeResponse = T.Object(
  {
    ...linkedTaskFields,
    task_ids: T.Array(Text, { description: 'The task of the payment' }),
    credits_pending: T.Integer({ description: 'Credits that come once the payment is final; 0 afterwards' }),
    ...T.Partial(T.Object(taskDetails)).properties,
  },
  { $id: 'RechargeResponse' },
)

/** The gateway has these operations only if a till takes payments on some chain. */
export const rechargeContract = group('credits', about, {
  rechargeChains: read('GET /credits/recharge-chains', {
    summary: 'The chains whose native coin buys credits',
    description:
      'Use it to see where a pack can be paid for, and after how many blocks it is credited. It moves nothing. Next: `credits_recharge`.',
    access: 'read',
    output: T.Object({ chains: T.Array(RechargeChain) }, { $id: 'RechargeChainsResponse' }),
  }),
  recharge: task('POST /credits/onchain-recharge', {
    summary: 'Buy a pack of credits with the native coin of a chain',
    description:
      'Use it to pay for a pack (5, 10 or 20 USD) from your wallet; gas is paid for. The amount follows two prices that agree within 1 %, and the credits come once the payment is final. Next: `credits_available`.',
    access: 'trade',
    rate: 'money',
    waitSeconds: 60,
    body: Recharge,
    output: RechargeResponse,
    result: RechargeResult,
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
