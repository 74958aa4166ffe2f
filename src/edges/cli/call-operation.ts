import { type Portico, portico, type Task } from '#sdk/client.ts'
import { ConnectionError } from '#sdk/errors.ts'
import { answerText, type Form, isJson } from './answer-text.ts'
import type { ChainNames } from './cell-text.ts'
import type { Command } from './commands.ts'
import { connectionOf } from './credentials.ts'
import { eventLine } from './event-line.ts'
import { exitCodes } from './exit-codes.ts'
import { countOf, inputOf, type Options } from './operation-input.ts'
import { formOf } from './output-form.ts'
import { progressLine } from './progress-line.ts'
import { statusText } from './task-screen.ts'
import type { Terminal } from './terminal.ts'
import type { View } from './view.ts'

export type Invocation = { command: Command; options: Options; positional: readonly string[] }

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export function clientOf(terminal: Terminal, { baseUrl, retries }: Options): Portico {
  const maxRetries = countOf('--retries', retries)
  return portico({
    ...connectionOf(terminal, textOf(baseUrl)),
    ...(maxRetries !== undefined && { maxRetries }),
  })
}

/** Prints an answer; in a table, chains have the names that the gateway gives them. */
export async function printAnswer(
  terminal: Terminal,
  client: Portico,
  { answer, form, view }: { answer: unknown; form: Form; view?: View | undefined },
): Promise<void> {
  const chains = form === 'table' ? await chainNames(client, terminal.signal) : new Map()
  terminal.out(answerText(answer, form, { view, chains, width: terminal.width ?? Number.POSITIVE_INFINITY }))
}

export async function chainNames(client: Portico, signal: AbortSignal): Promise<ChainNames> {
  try {
    const { chains } = await client.chains.list({}, { signal, maxRetries: 0 })
    return new Map(chains.map(({ chain_id, display_name }) => [chain_id, display_name]))
  } catch {
    // The names only make a table easier to read.
    return new Map()
  }
}

export async function callOperation(terminal: Terminal, given: Invocation): Promise<number> {
  const { command, options, positional } = given
  const form = formOf(options)
  const client = clientOf(terminal, options)
  const input = inputOf(command, options, positional)
  if (command.isStream && input.stream !== false) {
    const events = client.follow(command.name, input, { signal: terminal.signal })
    let left = countOf('--items', options.items) ?? Number.POSITIVE_INFINITY
    for await (const event of events) {
      terminal.out(isJson(form) ? `${JSON.stringify(event)}\n` : `${eventLine(event.data)}\n`)
      if (--left <= 0) break
    }
    return exitCodes.success
  }
  const idempotencyKey =
    textOf(options.idempotencyKey) ?? (input.idempotency_key === undefined ? crypto.randomUUID() : undefined)
  const call = { idempotencyKey, signal: terminal.signal }
  const waits = input.wait === true && command.waitSeconds !== undefined
  // The first call is only accepted; the call below waits under its idempotency key, so both make one task.
  if (waits && terminal.isInteractive) {
    const { wait: _, ...accepted } = input
    const task = (await client.call(command.name, accepted, call)) as Partial<Task>
    if (task.task_id)
      await showProgress(terminal, client, task.task_id, Number(input.timeout ?? command.waitSeconds))
  }
  const { data: answer, replayed } = await client
    .call(command.name, input, call)
    .withResponse()
    .catch((error: unknown) => {
      if (error instanceof ConnectionError && command.isKeyed && idempotencyKey)
        terminal.err(`portico: repeat with --idempotency-key ${idempotencyKey}\n`)
      throw error
    })
  if (replayed && !(waits && terminal.isInteractive))
    terminal.err('portico: an earlier call under this idempotency key answers\n')
  await printAnswer(terminal, client, { answer, form, view: command.view })
  return waits ? taskCode(answer as Partial<Task>) : exitCodes.success
}

async function showProgress(
  terminal: Terminal,
  client: Portico,
  taskId: string,
  seconds: number,
): Promise<void> {
  const progress = progressLine(terminal)
  const options = { timeoutMs: seconds * 1_000, signal: terminal.signal }
  await client.tasks
    .waitFor(taskId, { ...options, onUpdate: (task) => progress.show(statusText(task)) })
    .finally(progress.end)
}

function taskCode({ status }: Partial<Task>): number {
  if (status === 'pending' || status === 'running') return exitCodes.taskRunning
  return status === 'failed' || status === 'cancelled' ? exitCodes.taskFailed : exitCodes.success
}
