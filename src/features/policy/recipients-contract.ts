import { setColumns } from '#kernel/contract/columns.ts'
import { act, type InputOf, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { orRequested } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  ChainRefIn,
  ForAgent,
  ForAgentQuery,
  OneOf,
  Time,
} from '#kernel/contract/wire-types.ts'

export const recipientsMax = 50
const agents = ['denied', 'approval', 'allowed'] as const

const Recipient = T.Object(
  {
    recipient_id: T.String({ description: 'What `recipients_remove` takes' }),
    chain_id: ChainId,
    address: Address,
    label: T.String({ description: 'The name that a person gave it' }),
    agents: OneOf(agents, {
      description:
        'allowed: agents may send to it, within the limits; approval: their transfers wait for a person; denied: agents never, and what an app of the person sends waits for the person',
    }),
    status: OneOf(['pending', 'effective'] as const, {
      description: 'pending: nothing can be sent to it before `effective_at`',
    }),
    created_at: Time,
    effective_at: Time,
  },
  { $id: 'Recipient' },
)
setColumns(Recipient, ['label', 'chain_id', 'address', 'agents', 'status', 'effective_at'])
const RecipientList = T.Object(
  { recipients: T.Array(Recipient), max: T.Integer({ description: 'How many a user may have' }) },
  { $id: 'RecipientList' },
)

export const recipientEntries = {
  list: read('GET /v1/recipients', {
    isAddition: true,
    summary: 'The addresses of others that you may send to',
    description:
      'Use it before sending to others: the addresses that a person of this account has added, oldest first. Nothing is sent to one that is `pending`. Next: a person adds one by `recipients_add`.',
    access: 'read',
    query: ForAgentQuery,
    faults: ['not_found'],
    output: RecipientList,
  }),
  add: act('POST /v1/recipients', {
    isAddition: true,
    summary: 'Ask the person to allow an address to receive, after a cooling-off time',
    description:
      'Use it where money should go to somebody else. It answers with a task that waits until the person has confirmed the address at its `confirm_url`; from `effective_at` of its result on the address can receive, and every caller of the account may remove it before. Own wallets, tokens and contracts that take no payment are refused. Next: `recipients_list` shows when it is effective.',
    access: 'propose',
    callers: 'decided',
    repeatable: true,
    faults: ['step_up_required', 'not_found', 'conflict', 'unavailable'],
    body: T.Object(
      {
        for_agent: ForAgent,
        chain_id: ChainRefIn('Chain on which the address receives'),
        address: T.String({
          minLength: 32,
          maxLength: 44,
          description: 'On an EVM chain with its checksum in upper and lower case; on Solana a wallet',
          examples: ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8'],
        }),
        label: T.String({
          minLength: 1,
          maxLength: 64,
          description: 'Your name for it',
          examples: ['Cold wallet'],
        }),
        agents: T.Optional(
          OneOf(agents, {
            description: 'Whether agents may send to it too; left out: denied, with `for_agent` allowed',
          }),
        ),
      },
      {
        $id: 'RecipientRequest',
        additionalProperties: false,
        examples: [
          { chain_id: '8453', address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', label: 'Cold wallet' },
        ],
      },
    ),
    output: orRequested(Recipient),
  }),
  remove: act('DELETE /v1/recipients/{recipient_id}', {
    isAddition: true,
    summary: 'Remove an address, at once',
    description:
      'Use it when an address should not receive any more; every caller of the account may. Tasks that have not signed yet are refused. Next: `recipients_list`.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    faults: ['not_found'],
    params: T.Object({
      recipient_id: T.String({ format: 'uuid', description: 'Id out of `recipients_list`' }),
    }),
    query: ForAgentQuery,
    output: T.Object(
      {
        recipient_id: T.String({ description: 'The recipient that was removed' }),
        removed: T.Boolean({ description: 'Always true' }),
      },
      { $id: 'RecipientRemoved' },
    ),
  }),
}
export type RecipientInput = InputOf<typeof recipientEntries.add>
