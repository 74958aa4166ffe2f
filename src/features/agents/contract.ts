import { act, group, type InputOf, read } from '#kernel/operation.ts'
import * as T from '#kernel/schema.ts'
import { Nullable, TextOrNull, Time } from '#kernel/wire-types.ts'

/** How many a person has at most. */
export const agentsMax = 20

const AgentId = (description: string) => T.String({ description })
const linkedAgent = {
  agent_id: AgentId('What `for_agent` takes'),
  name: Nullable(T.String({ description: 'The name that the person gave it, or its own' })),
  linked_at: Time,
}
const LinkedAgent = T.Object(linkedAgent, { $id: 'LinkedAgent' })

/** Additions to the published interface. */
export const contract = group('agents', {
  list: read('GET /v1/agents', {
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
            },
            { description: 'Until `unlink_until` the agent may end the link by itself' },
          ),
        ),
      },
      { $id: 'AgentList' },
    ),
  }),
  linkCode: act('POST /v1/agents/link-codes', {
    summary: 'Get a code by which a person links this agent to an account',
    description:
      'Use it as an agent with a key pair, when a person should decide for it: raise limits, name recipients, lift the kill switch. Show `code` to the person; it is good once, until `expires_at`, and replaces an earlier one. Next: the person calls `agents_link` with it; `agents_list` shows the link.',
    access: 'manage',
    repeatable: true,
    rate: 'money',
    replies: 'derived',
    faults: ['conflict'],
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
    summary: 'Link an agent to your account by its code; only a person can',
    description:
      'Use it as a person who has just signed in; others get `step_up_required`. From then on you decide for the agent, and your kill switch stops it, too. It keeps its wallets and its key. Link no agent whose code you did not ask for. Next: `agents_list`; `policy_tighten` with `for_agent`.',
    access: 'manage',
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
    output: T.Object(
      {
        ...linkedAgent,
        credits_granted: T.Integer({
          description: 'First credits of the agent, where it had none; for one agent of each person',
        }),
      },
      { $id: 'LinkResponse' },
    ),
  }),
  unlink: act('DELETE /v1/agents/{agent_id}', {
    summary: 'End the link of an agent; only a person can, after its first hours',
    description:
      'Use it as a person who has just signed in. Raised limits and recipients that wait are dropped; the agent keeps everything else, and stays stopped where you have stopped it. The agent itself may end a new link until `unlink_until`. Next: `agents_list`.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    faults: ['step_up_required', 'not_found'],
    params: T.Object({
      agent_id: T.String({ minLength: 1, maxLength: 64, description: 'Id out of `agents_list`' }),
    }),
    output: T.Object(
      {
        agent_id: AgentId('The agent that was unlinked'),
        unlinked: T.Boolean({ description: 'Always true' }),
      },
      { $id: 'AgentUnlinked' },
    ),
  }),
})
export type AgentsInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
