import { setColumns } from '#kernel/contract/columns.ts'
import { act, group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { approvalFields, orRequested } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  ChainIdIn,
  Dec,
  DecIn,
  DecOrNull,
  ForAgent,
  ForAgentQuery,
  Nullable,
  OneOf,
  Time,
  TimeOrNull,
} from '#kernel/contract/wire-types.ts'
import { recipientEntries } from './recipients-contract.ts'

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

const policyFields = [
  'per_transaction_usd',
  'per_day_usd',
  'chat_per_day_usd',
  'chains',
  'tokens',
  'recipients',
  'approval_above_usd',
] as const
export const PolicyChange = T.Object(
  {
    change_id: T.String({ description: 'What `policy_cancel_change` takes' }),
    field: OneOf(policyFields, { description: 'The limit that was raised; its new value has the same name' }),
    per_transaction_usd: T.Optional(Dec),
    per_day_usd: T.Optional(Dec),
    chat_per_day_usd: T.Optional(Dec),
    chains: T.Optional(T.Array(ChainId)),
    tokens: T.Optional(Nullable(T.Array(ChainAddress))),
    recipients: T.Optional(T.Array(ChainAddress)),
    approval_above_usd: T.Optional(
      T.Unsafe<string | null>({ ...DecOrNull, description: 'In USD; null: nothing waits any more' }),
    ),
    requested_at: Time,
    effective_at: Time,
  },
  { $id: 'PolicyChange' },
)

const policyFacts = {
  version: T.Integer(),
  per_transaction_usd: Dec,
  per_day_usd: Dec,
  spent_24h_usd: Dec,
  remaining_24h_usd: Dec,
  chat_per_day_usd: T.Unsafe<string>({
    ...Dec,
    description: 'In USD: what chats may start by themselves in any 24 hours; 0: nothing',
  }),
  chat_remaining_24h_usd: T.Unsafe<string>({ ...Dec, description: 'In USD: what is left of it' }),
  chains: T.Array(ChainId),
  tokens: Nullable(T.Array(ChainAddress)),
  recipients: T.Array(ChainAddress),
  approval_above_usd: T.Unsafe<string | null>({
    ...DecOrNull,
    description: 'In USD: what an agent asks for above it waits for a person; null: nothing waits',
  }),
  paused: Nullable(
    T.Object({
      scope: OneOf(['global', 'person', 'user'], {
        description: 'Whose switch is on: of the gateway, of the person of this agent, or your own',
      }),
      since: T.String({ format: 'date-time' }),
    }),
  ),
  updated_at: TimeOrNull,
  pending_changes: T.Array(PolicyChange, {
    description: 'Limits that a person has raised and that are not in effect yet',
  }),
  cooling_seconds: T.Integer({ description: 'How long a raised limit waits' }),
}
const PolicyResponse = T.Object(policyFacts, { $id: 'PolicyResponse' })
setColumns(PolicyResponse, [
  'per_transaction_usd',
  'per_day_usd',
  'remaining_24h_usd',
  'chat_per_day_usd',
  'approval_above_usd',
  'chains',
  'paused',
  'pending_changes',
])
setColumns(PolicyChange, ['change_id', 'field', 'requested_at', 'effective_at'])
const PolicyChanged = T.Object(
  {
    ...policyFacts,
    confirmation: T.Optional(
      T.Object(
        { task_id: T.String(), ...approvalFields, message: T.String() },
        { description: 'Of what was raised: the task that waits until the person confirms it' },
      ),
    ),
  },
  { $id: 'PolicyChanged' },
)

const capIn = (description: string) => T.Optional(DecIn({ places: 6, minimum: 0, description }))

export const contract = group('policy', 'Limits on money operations, and the kill switch.', {
  show: read('GET /v1/policy', {
    isAddition: true,
    summary: 'The limits that every money operation of the caller stays within',
    mainTool: {
      text: 'Your spending limits, how much may still be spent today, and above what amount a person has to approve. `policy_tighten` changes them.',
    },
    description:
      'Use it before a large order: the limits, in USD, that every money operation stays within. `tokens: null` allows any token; `recipients` are contracts, and own wallets are always allowed. What an agent asks for above `approval_above_usd` waits until a person approves it. `chat_per_day_usd` is what chats may start by themselves. `pending_changes` are not in effect yet. Next: `policy_tighten` changes a limit.',
    access: 'read',
    query: ForAgentQuery,
    faults: ['not_found'],
    output: PolicyResponse,
  }),
  tighten: act('PUT /v1/policy', {
    isAddition: true,
    summary: 'Lower the limits, or ask the person to raise them; fields that are left out stay as they are',
    description:
      'Use it to lower limits, in USD, at once; fields that are left out stay as they are. A higher one takes the scope `propose`, and nothing is raised before the person has confirmed it at the `confirm_url` of `confirmation`; then it waits in `pending_changes` until `effective_at`. A field that is named again replaces its pending change. Next: `policy_cancel_change` drops a pending change.',
    access: 'manage',
    repeatable: true,
    faults: ['step_up_required', 'insufficient_scope', 'not_found', 'conflict'],
    body: T.Object(
      {
        for_agent: ForAgent,
        per_transaction_usd: capIn('Limit of one transaction, in USD'),
        per_day_usd: capIn('Limit of any 24 hours, in USD'),
        chat_per_day_usd: capIn('What chats may start by themselves in any 24 hours, in USD; 0: nothing'),
        chains: T.Optional(T.Array(ChainIdIn, { maxItems: chainAddressesMax })),
        tokens: T.Optional(Nullable(chainAddresses('Tokens that may be used; null: any token'))),
        recipients: T.Optional(chainAddresses('Contracts that may receive money')),
        approval_above_usd: T.Optional(
          Nullable(
            DecIn({
              places: 6,
              minimum: 0,
              maximum: 1_000_000_000_000,
              description:
                'What an agent asks for above this value in USD waits for a person; null: nothing waits',
            }),
          ),
        ),
      },
      {
        $id: 'PolicyRequest',
        examples: [{ per_transaction_usd: '500', per_day_usd: '2000' }],
        additionalProperties: false,
      },
    ),
    output: PolicyChanged,
  }),
  cancelChange: act('DELETE /v1/policy/changes/{change_id}', {
    isAddition: true,
    summary: 'Drop a raised limit before it takes effect',
    description:
      'Use it when a limit in `pending_changes` should not be raised. Every caller of the account with `manage` may. Afterwards the change is never applied; one that is in effect is `not_found`, and the limit is lowered instead. Next: `policy_show` has the limits in force.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    faults: ['not_found'],
    replies: 'derived',
    params: T.Object({ change_id: T.String({ format: 'uuid', description: 'Id out of `pending_changes`' }) }),
    query: ForAgentQuery,
    output: PolicyResponse,
  }),
  kill: act('POST /v1/kill', {
    isAddition: true,
    summary: 'Stop everything that opens a position or spends; cancels, closes and reads go on',
    mainTool: {
      text: 'Emergency: stops or halts all trading and spending immediately, while closes and withdrawals go on. Take `perp_close` or a cancel for one position or order.',
      fields: { on: 'true stops' },
    },
    description:
      'Use it in an emergency. It takes effect at once on every instance; cancels, closes, withdrawals and reads go on. The switch of a person stops the linked agents, too. Switching it off takes the scope `propose` and answers with a task: the person confirms it at its `confirm_url`. Next: `perp_cancel_all` and `perp_close` reduce what is open.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    faults: ['step_up_required', 'insufficient_scope', 'not_found', 'conflict'],
    body: T.Object(
      { for_agent: ForAgent, on: T.Boolean(), scope: T.Optional(OneOf(['user'], { default: 'user' })) },
      { $id: 'KillRequest', examples: [{ on: true, scope: 'user' }], additionalProperties: false },
    ),
    output: orRequested(
      T.Object({ on: T.Boolean(), scope: OneOf(['user']), since: TimeOrNull }, { $id: 'KillResponse' }),
    ),
  }),
})

const about = 'Addresses of others that a person allows to receive.'

export const recipientsContract = group('recipients', about, recipientEntries)
