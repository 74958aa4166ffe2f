import { randomBytes } from 'node:crypto'
import type { Log } from '#kernel/log.ts'
import { release } from '#release.ts'
import { agentNames } from './create-answerer.ts'
import { type AgentEdge, openAgentEdge } from './door/agent-edge.ts'
import type { AnswererOf } from './door/turn-run.ts'

/** The agent service has no database, no wallet key and no access token of a user. */

export type AgentServiceDeps = { log: Log; answererOf: AnswererOf }

export const openAgentService = (deps: AgentServiceDeps & { key: string }): AgentEdge =>
  openAgentEdge({
    ...deps,
    agents: agentNames,
    instance: randomBytes(8).toString('hex'),
    version: release,
  })

/** Runs the service in this process. It starts when its address is first requested, and nobody else has its key. */
export function openOwnAgentService(deps: AgentServiceDeps) {
  const key = randomBytes(32).toString('hex')
  let service: AgentEdge | undefined
  let listening: Promise<string> | undefined
  return {
    address: async () => {
      service ??= openAgentService({ ...deps, key })
      listening ??= service.listen({ host: '127.0.0.1', port: 0 })
      return { url: await listening, key }
    },
    async [Symbol.asyncDispose]() {
      await service?.[Symbol.asyncDispose]()
    },
  }
}
export type OwnAgentService = ReturnType<typeof openOwnAgentService>
