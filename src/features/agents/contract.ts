import { setColumns } from '#kernel/contract/columns.ts'
import { act, group, type InputOf, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { orRequested, TaskResponse } from '#kernel/contract/task-response.ts'
import { Nullable, TextOrNull, Time, TimeOrNull } from '#kernel/contract/wire-types.ts'

export const agentsMax = 20

const AgentId = (description: string) => T.String({ description })
const linkedAgent = {
  agent_id: AgentId('What `for_agent` takes'),
  name: Nullable(T.String({ description: 'The name that the person gave it, or its own' })),
  linked_at: Time,
}
const LinkedAgent = T.Object(linkedAgent, { $id: 'LinkedAgent' })
setColumns(LinkedAgent, ['agent_id', 'name', 'linked_at'])

/** The agent's key signs these fields; the token alone is not enough. */
const signed = {
  timestamp: T.Integer({ description: 'Unix seconds, or Unix milliseconds; signed exactly as sent' }),
  signature: T.String({ description: 'Base64 Ed25519 signature, good once' }),
}
const signedExample = {
  timestamp: 1769860800,
  signature: 'k0mJ8yTg0b0mX1m0lYwqg7y8n0c1v2b3n4m5Q6w7e8r9t0y1u2i3o4p5a6s7d8f9g0h1j2k3l4z5x6c7v8b9nA==',
}
const signatureFaults = ['invalid_signature', 'stale_timestamp', 'signature_replayed'] as const

const about = 'Agents with a key pair that a person has linked to the account, to decide for them.'

export const contract = group('agents', about, {
  list: read('GET /v1/agents', {
    isAddition: true,
    summary: 'The agents that are linked to you, and the person that you are linked to',
    description:
      'Use it to see which agents a person decides for; an agent sees in `linked_to` its person, or null. Next: `policy_show`, `policy_tighten`, `policy_kill` and the operations of recipients take one of `agents` as `for_agent`.',
    access: 'read',
    output: T.Object(
      {
        agents: T.Array(LinkedAgent, { description: 'Oldest first; none for an agent' }),
        max: T.Integer({ description: 'How many a person may have' }),
        linked_to: Nullable(
          T.Object(
            {
              agent_id: AgentId('The public id of the person'),
              linked_at: Time,
              unlink_until: Time,
              contested_at: TimeOrNull,
            },
            {
              description:
                'Until `unlink_until` the agent may end the link by itself; `contested_at`: since when the holder of its key contests the link',
            },
          ),
        ),
      },
      { $id: 'AgentList' },
    ),
  }),
  linkCode: act('POST /v1/agents/link-codes', {
    isAddition: true,
    summary: 'Get a code by which a person links this agent to an account',
    description:
      'Use it as an agent with a key pair, when a person should decide for it: raise limits, name recipients, lift the kill switch. The key signs the UTF-8 bytes of `portico-agents_link_code:v1:<agent_id>:<timestamp>`: a token alone links nothing. Show `code` to the person; it is entered once, until `expires_at`, and replaces an earlier one, also one that was entered and whose link waits for its person. Next: the person calls `agents_link` with it; `agents_list` shows the link.',
    access: 'manage',
    repeatable: true,
    rate: 'money',
    replies: 'derived',
    isSigned: true,
    faults: ['conflict', ...signatureFaults],
    body: T.Object(signed, {
      $id: 'LinkCodeRequest',
      additionalProperties: false,
      examples: [signedExample],
    }),
    output: T.Object(
      {
        code: T.String({ description: 'Twelve digits and letters in three groups' }),
        expires_at: Time,
        confirm_url: T.Unsafe<string | null>({
          ...TextOrNull,
          description: 'The page where the person signs in and enters the code; null where none is served',
        }),
        instructions: T.String({ description: 'Text for the person' }),
      },
      { $id: 'LinkCode' },
    ),
  }),
  link: act('POST /v1/agents', {
    isAddition: true,
    summary: 'Ask the person to link an agent by its code',
    description:
      'Use it as an app of a person, with the code that an agent shows. It spends the code and answers with a task that waits until the person has confirmed the agent at its `confirm_url`. From then on you decide for the agent, and your kill switch stops it, too. It keeps its wallets and its key. Link no agent whose code you did not ask for. Next: `agents_list`; `policy_tighten` with `for_agent`.',
    access: 'propose',
    callers: 'people',
    repeatable: true,
    rate: 'auth',
    faults: ['step_up_required', 'not_found', 'conflict', 'rate_limited'],
    body: T.Object(
      {
        code: T.String({
          minLength: 12,
          maxLength: 32,
          description: 'The code that the agent shows',
          examples: ['7K3M-Q0WD-2XNB'],
        }),
        name: T.Optional(
          T.String({
            minLength: 1,
            maxLength: 64,
            pattern: '^[^\\u0000-\\u001f\\u007f]*$',
            description: 'Your name for it; left out: its own',
            examples: ['Momentum bot'],
          }),
        ),
      },
      { $id: 'LinkRequest', additionalProperties: false, examples: [{ code: '7K3M-Q0WD-2XNB' }] },
    ),
    output: TaskResponse,
  }),
  unlink: act('DELETE /v1/agents/{agent_id}', {
    isAddition: true,
    summary: 'End the link of an agent; only the person can, after its first hours',
    description:
      'Use it when you should not decide for the agent any more: it answers with a task that waits until the person has confirmed it at its `confirm_url`. Raised limits and recipients that wait are dropped; the agent keeps everything else, and stays stopped where you have stopped it. The agent itself may end a new link until `unlink_until`, and an end within that time lifts what the link has set; where the agent ends it, only after it has contested the link. Next: `agents_list`.',
    access: 'propose',
    callers: 'decided',
    repeatable: true,
    rate: 'exit',
    faults: ['step_up_required', 'not_found', 'conflict'],
    params: T.Object({
      agent_id: T.String({ minLength: 1, maxLength: 64, description: 'Id out of `agents_list`' }),
    }),
    output: orRequested(
      T.Object(
        {
          agent_id: AgentId('The agent that was unlinked'),
          unlinked: T.Boolean({ description: 'Always true' }),
        },
        { $id: 'AgentUnlinked' },
      ),
    ),
  }),
  contest: act('POST /v1/agents/contest', {
    isAddition: true,
    summary: 'Contest the link of this agent, as the holder of its key',
    description:
      'Use it as an agent with a key pair that was linked against your will, at any time. While it is contested nothing is loosened through the link: no approval, no raise, no recipient, and no switch is lifted; raises and recipients that wait are dropped. The person may unlink the agent. `on: false` withdraws. The key signs the UTF-8 bytes of `portico-agents_contest:v1:<agent_id>:<timestamp>:<on>`, `<on>` as in the request, `true` or `false`. Next: the operator can end the link as well; `agents_list` shows it.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    isSigned: true,
    signs: ['on'],
    faults: ['conflict', 'not_found', ...signatureFaults],
    body: T.Object(
      { on: T.Boolean(), ...signed },
      { $id: 'ContestRequest', additionalProperties: false, examples: [{ on: true, ...signedExample }] },
    ),
    output: T.Object(
      { agent_id: AgentId('The agent'), contested_at: TimeOrNull },
      { $id: 'ContestResponse' },
    ),
  }),
})
export type AgentsInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
