import { act, group, read } from '#kernel/operation.ts'
import * as T from '#kernel/schema.ts'
import { Address, ChainId, ChainIdIn, Dec, DecIn, Nullable, OneOf, TimeOrNull } from '#kernel/wire-types.ts'

const chainAddressesMax = 100
const ChainAddress = T.Object({ chain_id: ChainId, address: Address }, { $id: 'PolicyPlace' })
/** An address of an EVM chain or of Solana, or a market of a venue. */
const addressPattern = '^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}|hl:(perp|spot):[!-~]{1,40})$'
const ChainAddressIn = T.Object(
  {
    chain_id: ChainIdIn,
    address: T.String({
      maxLength: 64,
      pattern: addressPattern,
      description: 'Address on an EVM chain or Solana, or a market as `hl:perp:BTC`',
      examples: ['0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'],
    }),
  },
  { $id: 'PolicyPlaceRequest', additionalProperties: false },
)
const chainAddresses = (description: string) =>
  T.Array(ChainAddressIn, {
    maxItems: chainAddressesMax,
    description: `${description}, on chains that are served`,
  })

const PolicyResponse = T.Object(
  {
    version: T.Integer(),
    per_transaction_usd: Dec,
    per_day_usd: Dec,
    spent_24h_usd: Dec,
    remaining_24h_usd: Dec,
    chains: T.Array(ChainId),
    tokens: Nullable(T.Array(ChainAddress)),
    recipients: T.Array(ChainAddress),
    paused: Nullable(
      T.Object({ scope: OneOf(['global', 'user']), since: T.String({ format: 'date-time' }) }),
    ),
    updated_at: TimeOrNull,
  },
  { $id: 'PolicyResponse' },
)

const capIn = (description: string) => T.Optional(DecIn({ places: 6, minimum: 0, description }))

/** Additions to the published interface. */
export const contract = group('policy', {
  show: read('GET /v1/policy', {
    summary: 'The limits that every money operation of the caller stays within',
    description:
      'Use it before a large order: the limits, in USD, that every money operation stays within. `tokens: null` allows any token; `recipients` are contracts, and own wallets are always allowed. Next: `policy_tighten` lowers a limit.',
    access: 'read',
    output: PolicyResponse,
  }),
  tighten: act('PUT /v1/policy', {
    summary: 'Lower the limits; fields that are left out stay as they are',
    description:
      'Use it to lower limits, in USD; fields that are left out stay as they are. A field that would allow more is refused with `step_up_required`: a person has to confirm it. Next: `policy_show` has the limits in force.',
    access: 'manage',
    repeatable: true,
    faults: ['step_up_required'],
    replies: 'derived',
    body: T.Object(
      {
        per_transaction_usd: capIn('Limit of one transaction, in USD'),
        per_day_usd: capIn('Limit of any 24 hours, in USD'),
        chains: T.Optional(T.Array(ChainIdIn, { maxItems: chainAddressesMax })),
        tokens: T.Optional(chainAddresses('Tokens that may be used')),
        recipients: T.Optional(chainAddresses('Contracts that may receive money')),
      },
      {
        $id: 'PolicyRequest',
        examples: [{ per_transaction_usd: '500', per_day_usd: '2000' }],
        additionalProperties: false,
      },
    ),
    output: PolicyResponse,
  }),
  kill: act('POST /v1/kill', {
    summary: 'Stop everything that opens a position or spends; cancels, closes and reads go on',
    description:
      'Use it in an emergency. It takes effect at once on every instance; cancels, closes, withdrawals and reads go on. Switching it off again needs a person. Next: `perp_cancel_all` and `perp_close` reduce what is open.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    faults: ['step_up_required'],
    body: T.Object(
      { on: T.Boolean(), scope: T.Optional(OneOf(['user'], { default: 'user' })) },
      { $id: 'KillRequest', examples: [{ on: true, scope: 'user' }], additionalProperties: false },
    ),
    output: T.Object({ on: T.Boolean(), scope: OneOf(['user']), since: TimeOrNull }, { $id: 'KillResponse' }),
  }),
})
