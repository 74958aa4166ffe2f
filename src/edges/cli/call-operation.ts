import { type Portico, portico, type Task } from '#sdk/client.ts'
import { ConnectionError } from '#sdk/errors.ts'
import { answerText, type Form } from './answer-text.ts'
import type { Command } from './commands.ts'
import { connectionOf } from './credentials.ts'
import { exitCodes } from './exit-codes.ts'
import { inputOf, type Options } from './operation-input.ts'
import type { Terminal } from './terminal.ts'

export type Invocation = { command: Command; options: Options; positional: readonly string[] }

export const formOf = ({ json, jsonl }: Options): Form =>
  jsonl === true ? 'jsonl' : json === undefined ? 'table' : 'json'

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export function clientOf(terminal: Terminal, { baseUrl, retries }: Options): Portico {
  return portico({
    ...connectionOf(terminal, textOf(baseUrl)),
    ...(typeof retries === 'string' && { maxRetries: Number(retries) }),
  })
}

export async function callOperation(terminal: Terminal, given: Invocation): Promise<number> {
  const { command, options, positional } = given
  const form = formOf(options)
  const client = clientOf(terminal, options)
  const input = inputOf(command, options, positional)
  if (command.isStream && input.stream !== false) {
    const events = client.follow(command.name, input, { signal: terminal.signal })
    let left = options.items === undefined ? Number.POSITIVE_INFINITY : Number(options.items)
    for await (const event of events) {
      terminal.out(form === 'table' ? eventLine(event.data) : `${JSON.stringify(event)}\n`)
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
  terminal.out(answerText(answer, form))
  return waits ? taskCode(answer as Partial<Task>) : exitCodes.success
}

async function showProgress(
  terminal: Terminal,
  client: Portico,
  taskId: string,
  seconds: number,
): Promise<void> {
  await client.tasks.waitFor(taskId, {
    timeoutMs: seconds * 1_000,
    signal: terminal.signal,
    onUpdate: ({ status, state, progress }) => {
      const step = progress ? `, ${progress.step} of ${progress.of}: ${progress.text}` : ''
      terminal.err(`${taskId} ${status} ${state}${step}\n`)
    },
  })
}

function taskCode({ status }: Partial<Task>): number {
  if (status === 'pending' || status === 'running') return exitCodes.taskRunning
  return status === 'failed' || status === 'cancelled' ? exitCodes.taskFailed : exitCodes.success
}

function eventLine(event: unknown): string {
  const { id, type, task_id, created_at } = event as Readonly<Record<string, unknown>>
  return `${created_at ?? ''}  ${id ?? ''}  ${type ?? ''}  ${task_id ?? ''}\n`
}
