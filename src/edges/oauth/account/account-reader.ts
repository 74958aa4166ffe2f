import type { FastifyRequest } from 'fastify'
import type { PageSession } from '#edges/oauth/sign-in/page-session.ts'
import { Fault } from '#kernel/contract/fault.ts'

const tasksShown = 10

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

export type Wallet = { address: string; supported_chain_ids: readonly string[] }
export type SpotCoins = readonly { asset: string; total: string }[]
export type Money = {
  holdings: readonly {
    symbol: string
    balance: string
    chain_name: string
    value_usd: string | null
    kind: string
    protocol: string | null
  }[]
  total_value_usd: string
  chains: readonly {
    chain_id: string
    status: 'ok' | 'stale' | 'failed'
    as_of: string | null
  }[]
  errors: readonly { source: string }[]
  /** Absent if the gateway has no venue. */
  perp: Read<{ account_value_usd: string; withdrawable_usd: string }> | undefined
  spot: Read<SpotCoins> | undefined
}
/** What a venue has answered, or that it did not answer. */
export type Read<Answer> = { answer: Answer } | 'unanswered'
export type DoneTask = {
  kind: string
  status: string
  state: string
  outcome: string | null
  client_id: string | null
  created_at: string
  balance_changes: readonly { symbol: string; amount: string; decimals: number }[]
}

/** The policy and the recipients of the person, or of one linked agent. */
export type Holdings = { policy: Policy; recipients: readonly Recipient[] }
export type OwnAccount = Holdings & {
  agents: readonly Agent[]
  agentsMax: number
  webhooks: readonly Webhook[]
  waiting: number
  wallets: readonly Wallet[]
  /** Absent if the gateway refuses to read it. */
  money: Money | undefined
  tasks: readonly DoneTask[]
}
export type AgentAccount = Holdings & { agent: Agent; tasks: readonly DoneTask[] }

type PerpBody = { account: { account_value_usd: string; withdrawable_usd: string } }
type SpotBody = { balances: SpotCoins }

export function createAccountReader(session: PageSession) {
  const reads = {
    policy: session.operation('policy_show'),
    recipients: session.operation('recipients_list'),
    agents: session.operation('agents_list'),
    webhooks: session.operation('webhooks_list'),
    approvals: session.operation('approvals_list'),
    wallets: session.operation('wallets_list'),
    balances: session.operation('wallets_holdings'),
    tasks: session.operation('tasks_list'),
  }
  // A gateway without a venue does not have these.
  const venueReads = { perp: session.find('perp_orders'), spot: session.find('spot_venue_orders') }
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
  /** A venue that does not answer hides no other money, and is named as such. */
  const atVenue = async <Body, Answer>(
    name: keyof typeof venueReads,
    request: FastifyRequest,
    answerOf: (body: Body) => Answer,
  ): Promise<Read<Answer> | undefined> => {
    const operation = venueReads[name]
    if (!operation) return undefined
    return session.call(operation, request, {}).then(
      ({ body }) => ({ answer: answerOf(body as Body) }),
      (error: unknown) => {
        if (error instanceof Fault) return 'unanswered'
        throw error
      },
    )
  }
  const money = async (request: FastifyRequest): Promise<Money | undefined> => {
    const [held, perp, spot] = await Promise.all([
      read<Omit<Money, 'perp' | 'spot'>>('balances', request).catch((error: unknown) => {
        if (error instanceof Fault) return undefined
        throw error
      }),
      atVenue('perp', request, ({ account }: PerpBody) => account),
      atVenue('spot', request, ({ balances }: SpotBody) =>
        balances.filter(({ total }) => /[1-9]/.test(total)),
      ),
    ])
    if (!held) return undefined
    return { ...held, holdings: held.holdings.filter(({ balance }) => /[1-9]/.test(balance)), perp, spot }
  }
  const lastTasks = async (request: FastifyRequest, of: object = {}) =>
    (await read<{ items: DoneTask[] }>('tasks', request, { limit: tasksShown, ...of })).items
  const agentsOf = (request: FastifyRequest) => read<{ agents: Agent[]; max: number }>('agents', request)

  return {
    async own(request: FastifyRequest): Promise<OwnAccount> {
      const [held, { agents, max }, { webhooks }, { total }, { wallets }, own, tasks] = await Promise.all([
        holdings(request),
        agentsOf(request),
        read<{ webhooks: Webhook[] }>('webhooks', request),
        read<{ total: number }>('approvals', request),
        read<{ wallets: Wallet[] }>('wallets', request),
        money(request),
        lastTasks(request),
      ])
      return { ...held, agents, agentsMax: max, webhooks, waiting: total, wallets, money: own, tasks }
    },
    async agent(request: FastifyRequest, agentId: string): Promise<AgentAccount | undefined> {
      const agent = (await agentsOf(request)).agents.find((each) => each.agent_id === agentId)
      if (!agent) return undefined
      const [held, tasks] = await Promise.all([
        holdings(request, agentId),
        lastTasks(request, { for_agent: agentId }),
      ])
      return { agent, ...held, tasks }
    },
  }
}
