import type { FastifyRequest } from 'fastify'
import type { PageSession } from '#edges/oauth/sign-in/page-session.ts'

export type PendingChange = {
  change_id: string
  field: string
  per_transaction_usd?: string
  per_day_usd?: string
  chat_per_day_usd?: string
  approval_above_usd?: string | null
  chains?: readonly string[]
  tokens?: readonly unknown[] | null
  recipients?: readonly unknown[]
  effective_at: string
}
export type Policy = {
  per_transaction_usd: string
  per_day_usd: string
  spent_24h_usd: string
  chat_per_day_usd: string
  chat_remaining_24h_usd: string
  chains: readonly string[]
  tokens: readonly unknown[] | null
  approval_above_usd: string | null
  paused: { scope: 'global' | 'person' | 'user'; since: string } | null
  pending_changes: readonly PendingChange[]
}
export type Recipient = {
  recipient_id: string
  chain_id: string
  address: string
  label: string
  agents: 'denied' | 'approval' | 'allowed'
  status: 'pending' | 'effective'
  effective_at: string
}
export type Agent = { agent_id: string; name: string | null; linked_at: string }
export type Webhook = {
  webhook_id: string
  url: string
  types: readonly string[] | null
  description: string
  status: 'enabled' | 'disabled'
}

/** The policy and the recipients of the person, or of one linked agent. */
export type Holdings = { policy: Policy; recipients: readonly Recipient[] }
export type OwnAccount = Holdings & {
  agents: readonly Agent[]
  agentsMax: number
  webhooks: readonly Webhook[]
  waiting: number
}
export type AgentAccount = Holdings & { agent: Agent }

export function createAccountReader(session: PageSession) {
  const reads = {
    policy: session.operation('policy_show'),
    recipients: session.operation('recipients_list'),
    agents: session.operation('agents_list'),
    webhooks: session.operation('webhooks_list'),
    approvals: session.operation('approvals_list'),
  }
  const read = async <Answer>(name: keyof typeof reads, request: FastifyRequest, fields: object = {}) =>
    (await session.call(reads[name], request, { ...fields })).body as Answer

  const holdings = async (request: FastifyRequest, agentId?: string): Promise<Holdings> => {
    const of = agentId === undefined ? {} : { for_agent: agentId }
    const [policy, { recipients }] = await Promise.all([
      read<Policy>('policy', request, of),
      read<{ recipients: Recipient[] }>('recipients', request, of),
    ])
    return { policy, recipients }
  }
  const agentsOf = (request: FastifyRequest) => read<{ agents: Agent[]; max: number }>('agents', request)

  return {
    async own(request: FastifyRequest): Promise<OwnAccount> {
      const [held, { agents, max }, { webhooks }, { total }] = await Promise.all([
        holdings(request),
        agentsOf(request),
        read<{ webhooks: Webhook[] }>('webhooks', request),
        read<{ total: number }>('approvals', request),
      ])
      return { ...held, agents, agentsMax: max, webhooks, waiting: total }
    },
    async agent(request: FastifyRequest, agentId: string): Promise<AgentAccount | undefined> {
      const agent = (await agentsOf(request)).agents.find((each) => each.agent_id === agentId)
      return agent && { agent, ...(await holdings(request, agentId)) }
    },
  }
}
