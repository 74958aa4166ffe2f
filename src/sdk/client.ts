import type { Api } from './api.ts'
import { type Call, callOf, listCallOf } from './call.ts'
import { type FollowOptions, follow, type StreamEvent } from './event-stream.ts'
import { type OperationRow, operations } from './operations.ts'
import { pause } from './retry.ts'
import { type Auth, createTokenSource, type RequestToken } from './token-source.ts'
import { type CallOptions, createTransport, type Input, type Transport } from './transport.ts'

export type PorticoOptions = {
  /** The address of the gateway. Default: `http://127.0.0.1:8080`. */
  baseUrl?: string | undefined
  /** A key pair, a token, or a function that returns tokens. Public operations need none. */
  auth?: Auth | undefined
  /** The time limit of each attempt. Default: 60,000. */
  timeoutMs?: number | undefined
  /** How often a call is repeated after 408, 429, 5xx and lost connections. Default: 2. */
  maxRetries?: number | undefined
  fetch?: typeof globalThis.fetch | undefined
}

export type Task = Awaited<ReturnType<Api['tasks']['get']>>
export type WaitOptions = {
  /** The longest wait, after which the task is returned in its present state. Default: 600,000. */
  timeoutMs?: number | undefined
  signal?: AbortSignal | undefined
  /** Called with the task whenever it has changed. */
  onUpdate?: ((task: Task) => void) | undefined
}

export type Portico = Api & {
  tasks: {
    /** Polls until the task has completed, failed or been cancelled; read `outcome` before a new attempt. */
    waitFor: (task_id: string, options?: WaitOptions) => Promise<Task>
  }
  /** Calls any operation by its name, such as `earn_deposit`. */
  call: (name: string, input?: Input, options?: CallOptions) => Call<unknown>
  /** Follows any stream by its name, such as `notifications_stream`. */
  follow: (name: string, input?: Input, options?: FollowOptions) => AsyncGenerator<StreamEvent>
}

const defaults = { baseUrl: 'http://127.0.0.1:8080', timeoutMs: 60_000, maxRetries: 2 }
const rows = new Map(operations.map((row) => [row.name, row]))

/**
 * A client of a gateway.
 * @example
 * const client = portico({ baseUrl, auth: { agentId, secretKey } })
 * const task = await client.earn.deposit({ amount_usdc: '25', wait: true })
 */
export function portico(options: PorticoOptions = {}): Portico {
  const transport = transportOf(options)
  const call = (name: string, input: Input = {}, given: CallOptions = {}) =>
    callOf(transport.call(rowNamed(name), input, given))
  const followNamed = (name: string, input: Input = {}, given: FollowOptions = {}) =>
    followRow(transport, rowNamed(name), input, given)
  const client: Record<string, Record<string, unknown>> = {}
  for (const row of operations) {
    client[row.group] ??= {}
    client[row.group]![row.key] = methodOf(transport, row)
  }
  const typed = client as Api
  const waitFor = (task_id: string, given: WaitOptions = {}) => waitForEnd(typed, task_id, given)
  return { ...typed, tasks: { ...typed.tasks, waitFor }, call, follow: followNamed }
}

function transportOf({ baseUrl, auth, timeoutMs, maxRetries, fetch }: PorticoOptions): Transport {
  const address = (baseUrl ?? defaults.baseUrl).replace(/\/+$/, '')
  if (!/^https?:\/\//.test(address)) throw new TypeError(`baseUrl has to be an http address, not ${address}`)
  const requestToken: RequestToken = async (request) => {
    const { data } = await transport.call(rowNamed('auth_token'), request, { maxRetries: 0 })
    return data as Awaited<ReturnType<RequestToken>>
  }
  const transport = createTransport({
    baseUrl: address,
    timeoutMs: timeoutMs ?? defaults.timeoutMs,
    maxRetries: maxRetries ?? defaults.maxRetries,
    fetch: fetch ?? ((...given) => globalThis.fetch(...given)),
    tokens: auth && createTokenSource(auth, requestToken),
  })
  return transport
}

function rowNamed(name: string): OperationRow {
  const row = rows.get(name)
  if (!row) throw new TypeError(`There is no operation ${name}`)
  return row
}

function methodOf(transport: Transport, row: OperationRow) {
  if (row.kind === 'stream')
    return (input: Input = {}, options: FollowOptions = {}) => followRow(transport, row, input, options)
  return (input: Input = {}, options: CallOptions = {}) => {
    const readPage = (asked: Input) => transport.call(row, asked, options)
    const first = readPage(input)
    return row.list ? listCallOf(first, { list: row.list, input, readPage }) : callOf(first)
  }
}

function followRow(transport: Transport, row: OperationRow, given: Input, options: FollowOptions) {
  const input = row.hasEnd && given.stream === false ? { ...given, stream: true } : given
  const idempotencyKey = options.idempotencyKey ?? (row.isKeyed ? crypto.randomUUID() : undefined)
  return follow(
    (lastEventId, signal) => transport.open(row, input, { signal, lastEventId, idempotencyKey }),
    { ...options, hasEnd: row.hasEnd },
  )
}

const ended: readonly string[] = ['completed', 'failed', 'cancelled']
const pollMs = { first: 250, most: 2_000 }

async function waitForEnd(
  { tasks }: Api,
  task_id: string,
  { timeoutMs = 600_000, signal, onUpdate }: WaitOptions,
): Promise<Task> {
  const endsAtMs = Date.now() + timeoutMs
  let seen = ''
  for (let ms = pollMs.first; ; ms = Math.min(ms * 1.5, pollMs.most)) {
    const task = await tasks.get({ task_id }, { signal })
    if (task.updated_at !== seen) onUpdate?.(task)
    seen = task.updated_at
    const leftMs = endsAtMs - Date.now()
    if (ended.includes(task.status) || leftMs <= 0) return task
    await pause(Math.min(ms, leftMs), signal)
  }
}
