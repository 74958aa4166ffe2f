import { portico } from '#sdk/client.ts'
import { registerAgent } from '#sdk/register-agent.ts'
import { baseUrlOf, credentialsPath, readCredentials, writeCredentials } from './credentials.ts'
import { errorText } from './error-text.ts'
import type { Options } from './operation-input.ts'
import { type Terminal, UsageError } from './terminal.ts'

const firstTasksMsMax = 30_000

/** `portico init` makes a key pair, registers it and stores it for later commands. */
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
  await firstTasks(terminal, portico({ baseUrl, auth: { agentId, secretKey } }))
}

/** Waits for what the registration has started, such as first funds, because the next command needs it. */
async function firstTasks(terminal: Terminal, client: ReturnType<typeof portico>): Promise<void> {
  try {
    const { items } = await client.tasks.list({ limit: 5 }, { signal: terminal.signal })
    for (const { task_id, kind } of items) {
      const { status } = await client.tasks.waitFor(task_id, {
        timeoutMs: firstTasksMsMax,
        signal: terminal.signal,
      })
      terminal.out(`${kind}  ${status}\n`)
    }
  } catch (error) {
    // The agent is registered and its key is stored, so the command has succeeded even if a later read fails.
    if (!terminal.signal.aborted) terminal.err(errorText(error, 'table'))
  }
}
