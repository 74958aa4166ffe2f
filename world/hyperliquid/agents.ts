import { rejectRequest } from '#world/venue-core/request-error.ts'
import type { Account, Agent, State } from './state.ts'

const dayMs = 86_400_000
export const agentDays = { usual: 90, longest: 180 }
const namedAgentsMax = 3
const zeroAddress = `0x${'0'.repeat(40)}`

/** `name valid_until 1700000000000`: the name contains the expiry. */
export const parseAgentName = (text: string): { name: string; validUntilMs: number | undefined } => {
  const match = /^(.*?)\s*valid_until\s+([0-9]+)$/.exec(text)
  return match
    ? { name: match[1] ?? '', validUntilMs: Number(match[2]) }
    : { name: text, validUntilMs: undefined }
}

export const agentsOf = (state: State, user: string): [address: string, agent: Agent][] =>
  [...state.agents].filter(([, agent]) => agent.user === user)

const removeAgent = (state: State, address: string): void => {
  state.agents.delete(address)
  state.nonces.delete(address)
  state.retiredAgents.add(address)
}

export const approveAgent = (state: State, account: Account, address: string, text: string): void => {
  const { name, validUntilMs } = parseAgentName(text)
  if (name.length > 16) rejectRequest('Agent name is too long.')
  const mine = agentsOf(state, account.address)
  const same = mine.find(([, agent]) => agent.name === name)
  if (address === zeroAddress) {
    if (!same) rejectRequest('Agent does not exist.')
    else removeAgent(state, same[0])
    return
  }
  const untilMs = validUntilMs ?? state.nowMs + agentDays.usual * dayMs
  if (untilMs <= state.nowMs || untilMs > state.nowMs + agentDays.longest * dayMs)
    rejectRequest('Agent valid_until already expired.')
  if (state.agents.has(address) || state.retiredAgents.has(address) || state.accounts.has(address))
    rejectRequest('Extra agent already used.')
  if (name !== '' && !same && mine.filter(([, agent]) => agent.name !== '').length >= namedAgentsMax)
    rejectRequest(`Too many extra agents for cumulative volume traded. Current limit is ${namedAgentsMax}`)
  if (same) removeAgent(state, same[0])
  state.agents.set(address, { user: account.address, name, validUntilMs: untilMs })
}

/** The account that a signer acts for. Upstream removes expired agents late; here they end on time. */
export const principalOf = (state: State, signer: string): Account | undefined => {
  const agent = state.agents.get(signer)
  if (!agent) return state.accounts.get(signer)
  if (agent.validUntilMs !== null && agent.validUntilMs <= state.nowMs) return undefined
  return state.accounts.get(agent.user)
}
