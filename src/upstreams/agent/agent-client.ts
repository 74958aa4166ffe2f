import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Emit, Tools, Turn, TurnEnd } from '#kernel/wire/chat-answerer.ts'
import { runAtService } from './run.ts'
import { createLink, type LinkDeps } from './service-connection.ts'
import type { GatewayNames } from './service-requests.ts'

/**
 * Runs turns at the agent service, which may be another process. The service has no credentials of the user, and calls
 * tools only through the gateway.
 */

export type AgentClientDeps = Omit<LinkDeps, 'random'> & {
  turnMsMax: number
  clock: Clock
  random: Random
}

/** What a turn starts with: the question, and the names that the gateway knows at that moment. */
export type TurnStart = { turn: Turn; names: GatewayNames }

export function createAgentClient(deps: AgentClientDeps) {
  const { turnMsMax, clock, random } = deps
  const link = createLink(deps)
  return {
    run({ turn, names }: TurnStart, tools: Tools, emit: Emit, signal: AbortSignal): Promise<TurnEnd> {
      return runAtService(
        { link, random },
        {
          runId: uuidv7(clock.now(), random),
          turn,
          names,
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
