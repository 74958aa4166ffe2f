import { registerAgent } from '#sdk/register-agent.ts'
import { baseUrlOf, credentialsPath, readCredentials, writeCredentials } from './credentials.ts'
import type { Options } from './input.ts'
import { type Terminal, UsageError } from './terminal.ts'

/** `portico init`: makes a key pair, registers it and stores it for the commands that follow. */
export async function init(terminal: Terminal, { baseUrl: given, name, force }: Options): Promise<void> {
  if (force !== true && readCredentials(terminal))
    throw new UsageError(`${credentialsPath(terminal)} exists; --force replaces it, and its key is lost`)
  const baseUrl = baseUrlOf(terminal, typeof given === 'string' ? given : undefined)
  const { agentId, secretKey } = await registerAgent({
    baseUrl,
    ...(typeof name === 'string' && { agentName: name }),
  })
  const path = writeCredentials(terminal, { base_url: baseUrl, agent_id: agentId, secret_key: secretKey })
  terminal.out(`agent_id  ${agentId}\nbase_url  ${baseUrl}\nstored    ${path}\n`)
}
