import { stepMs } from '#features/chat/turn-times.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import { release } from '#release.ts'
import { createAgentClient } from '#upstreams/agent/agent-client.ts'
import type { AgentAddress } from '#upstreams/agent/service-connection.ts'
import type { CoreDeps, CoreOverrides } from './core.ts'

export type AgentDeps = {
  /** Returns where the agent service listens; the first turn of a chat asks for the address. */
  agentAddress: () => Promise<AgentAddress>
}

/** The answerer of the chat: the agent service, which calls tools through this gateway alone. */
export function openAgentClient(
  { agentAddress, baseUrl, log }: AgentDeps & Pick<CoreDeps, 'baseUrl' | 'log'>,
  { clock = systemClock, random = systemRandom }: CoreOverrides,
) {
  return createAgentClient({
    address: agentAddress,
    gateway: baseUrl(),
    version: release,
    turnMsMax: stepMs,
    clock,
    random,
    log,
  })
}
export type AgentClient = ReturnType<typeof openAgentClient>
