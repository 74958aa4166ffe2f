import { setColumns } from '#kernel/contract/columns.ts'
import { act, group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { DecOrNull, OneOf, TextOrNull, Time, TimeOrNull } from '#kernel/contract/wire-types.ts'

const Intent = T.Object(
  {
    text: T.String({ description: 'The request in one sentence' }),
    kind: T.String({ description: 'The operation' }),
    chain_id: T.Unsafe<string | null>({ ...TextOrNull, description: 'Null where nothing moves' }),
    chain: T.Unsafe<string | null>({ ...TextOrNull, description: 'Name of the chain' }),
    token: T.Unsafe<string | null>({ ...TextOrNull, description: 'Symbol of what leaves, or is traded' }),
    amount: T.Unsafe<string | null>({ ...TextOrNull, description: 'Of the token, as decimal text' }),
    usd: T.Unsafe<string | null>({
      ...DecOrNull,
      description: 'Value at the time of the request, in USD; null where nothing moves',
    }),
    recipient: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'Address that receives, on the chain',
    }),
    venue: TextOrNull,
    asset: T.Unsafe<string | null>({ ...TextOrNull, description: 'What is bought or traded' }),
    cost: T.Optional(
      T.Unsafe<string | null>({
        ...TextOrNull,
        description: 'What it costs beside the amount, in a sentence',
      }),
    ),
    details: T.Optional(
      T.Array(
        T.Object({
          name: T.String({ description: 'What the line is about' }),
          value: T.String({ description: 'The figure, address or name, as text' }),
        }),
        { description: 'Of an act that allows more than before: what it changes, as the page shows it' },
      ),
    ),
    agent_id: T.String({ description: 'The agent that asked' }),
    client_id: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'The app that asked for its person; null for a key pair',
    }),
    rule: T.String({
      description:
        'approval_above_usd, recipient_approval, loss_bound, or confirmation of an act that allows more',
    }),
    reason: T.String({ description: 'Why a person has to approve it' }),
  },
  { $id: 'ApprovalIntent' },
)
const approval = {
  approval_id: T.String({ description: 'What `approvals_decline` takes' }),
  task_id: T.String({ description: 'The task that waits' }),
  intent: Intent,
  intent_sha256: T.String({ description: 'Names the request; send it with the approval' }),
  requested_at: Time,
  expires_at: Time,
}
const Approval = T.Object(approval, { $id: 'Approval' })
setColumns(Approval, ['approval_id', 'intent.text', 'intent.usd', 'expires_at'])
const ApprovalList = T.Object(
  {
    approvals: T.Array(Approval, {
      description: 'Newest first, at most 200: the newest of each agent before the second newest of any',
    }),
    total: T.Integer({ description: 'How many wait, also those that are not listed' }),
    max: T.Integer({ description: 'How many may wait for one user' }),
  },
  { $id: 'ApprovalList' },
)
const DecidedApproval = T.Object(
  {
    ...approval,
    decision: OneOf(['approved', 'declined'], { description: 'The first decision, which counts' }),
    decided_by: T.String({ description: 'The agent id of who decided' }),
    decided_at: TimeOrNull,
  },
  { $id: 'DecidedApproval' },
)
const params = T.Object({
  approval_id: T.String({ format: 'uuid', description: 'Id out of `approvals_list`' }),
})

const about = 'Requests of agents that wait for a person, to approve or decline.'

export const contract = group('approvals', about, {
  list: read('GET /v1/approvals', {
    isAddition: true,
    summary: 'Requests that wait for a person',
    description:
      'Use it to see what waits for a decision, newest first: requests of this account and of linked agents above `approval_above_usd`, transfers to recipients with `agents: approval`, and acts that allow more than before, such as raised limits. Next: the person decides on the page that `confirm_url` of the task names; everybody with `manage` declines by `approvals_decline`.',
    access: 'read',
    output: ApprovalList,
  }),
  approve: act('POST /v1/approvals/{approval_id}/approve', {
    isAddition: true,
    summary: 'Approve a request that waits; only the page of the gateway can',
    description:
      'Use it to learn where a person decides: only the page of the gateway approves, for a person who has just signed in there, and every other caller gets `step_up_required` with the `confirm_url` to open. The request is admitted again with the prices, balances and limits of now, and runs once under its task id; what no longer fits ends the task as failed. Next: poll `tasks_get` with `task_id`.',
    access: 'manage',
    callers: 'pages',
    repeatable: true,
    rate: 'exit',
    faults: ['step_up_required', 'not_found', 'conflict'],
    params,
    bodyOptional: true,
    body: T.Object(
      {
        intent_sha256: T.Optional(
          T.String({
            pattern: '^[0-9a-f]{64}$',
            examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
            description: 'As `approvals_list` showed it: another request is not approved',
          }),
        ),
      },
      {
        $id: 'ApproveRequest',
        examples: [{ intent_sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08' }],
        additionalProperties: false,
      },
    ),
    output: DecidedApproval,
  }),
  decline: act('POST /v1/approvals/{approval_id}/decline', {
    isAddition: true,
    summary: 'Decline a request that waits',
    description:
      'Use it to refuse a request; every caller of the account with `manage` may. Its task ends as failed with `approval_declined`, and nothing is moved. Next: `tasks_get` shows the end.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    faults: ['not_found', 'conflict'],
    params,
    output: DecidedApproval,
  }),
})
