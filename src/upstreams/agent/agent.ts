import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Emit, Tools, Turn, TurnEnd } from '#kernel/wire/chat-answerer.ts'
import { runAtService } from './run.ts'
import { createLink, type LinkDeps } from './service-connection.ts'
import type { GatewayNames } from './service-requests.ts'

/**
 * Runs turns at the agent service (decision 109). The service has no credentials of the user, and calls tools only
 * through the gateway.
 */

export type AgentClientDeps = Omit<LinkDeps, 'random'> & {
  names: () => Promise<GatewayNames>
  turnMsMax: number
  clock: Clock
  random: Random
}

export function createAgentClient(deps: AgentClientDeps) {
  const { names, turnMsMax, clock, random } = deps
  const link = createLink(deps)
  return {
    async run(turn: Turn, tools: Tools, emit: Emit, signal: AbortSignal): Promise<TurnEnd> {
      return runAtService(
        { link, random },
        {
          runId: uuidv7(clock.now(), random),
          turn,
          names: await names(),
          msMax: turnMsMax,
          tools,
          emit,
          signal,
        },
      )
    },
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  }
}
