/** The HTTP server with operations of its own: tests reach its rules over a real socket, without the product. */
import { connect, type Socket } from 'node:net'
import { type DoorDeps, openDoors } from '#app.ts'
import type { Invoke, InvokeOptions } from '#durable/accept/operation-call.ts'
import type { HttpEdge } from '#edges/http/http.ts'
import { defaultLimits, type Limits } from '#invoke/rate-limits.ts'
import { systemClock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { act, group, implement, type Operation, read, stream, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { DecIn, Nullable, OneOf, OpenObject } from '#kernel/contract/wire-types.ts'
import { type Log, silentLog } from '#kernel/log.ts'
import type { Admission } from '#kernel/task/task.ts'

const Leg = T.Object({ price: DecIn({ exclusiveMinimum: 0 }), part: T.Optional(DecIn()) }, { $id: 'Leg' })

export const contract = group('probe', 'Operations of a test.', {
  list: read('GET /v1/probe', {
    summary: 'List',
    access: 'read',
    query: T.Object({
      skip: T.Optional(T.Integer({ minimum: 0, default: 0 })),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 10 })),
      flag: T.Optional(T.Boolean({ default: false })),
      status: T.Optional(OneOf(['open', 'closed'])),
      least: T.Optional(DecIn({ minimum: 1 })),
      names: T.Optional(T.Array(T.String({ minLength: 1 }), { maxItems: 3 })),
    }),
    output: OpenObject,
  }),
  open: read('GET /v1/probe/open', { summary: 'Open to all', access: 'public', output: OpenObject }),
  get: read('GET /v1/probe/{probe_id}', {
    summary: 'Get one',
    access: 'read',
    params: T.Object({ probe_id: T.String({ minLength: 1, maxLength: 128 }) }),
    output: T.Object({ probe_id: T.String(), at: T.String() }, { $id: 'Probe' }),
  }),
  byUuid: read('GET /v1/uuid/{id}', {
    summary: 'Get by uuid',
    access: 'read',
    params: T.Object({ id: T.String({ format: 'uuid' }) }),
    output: OpenObject,
  }),
  check: read('POST /v1/probe/check', {
    summary: 'Check',
    access: 'read',
    body: T.Object(
      {
        name: T.String({
          minLength: 2,
          maxLength: 4,
          pattern: '^[a-z]+$',
          description: 'Lower-case letters',
          examples: ['abc'],
        }),
        count: T.Integer({ minimum: 1, maximum: 50, default: 1 }),
        ratio: T.Optional(T.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 })),
        kind: T.Optional(T.Union([T.Literal('a'), T.Literal('b'), T.Literal('c')])),
        side: T.Optional(OneOf(['buy', 'sell'])),
        note: T.Optional(Nullable(T.String({ maxLength: 5 }))),
        user: T.Optional(T.String({ format: 'uuid' })),
        flag: T.Optional(T.Boolean()),
        rows: T.Optional(T.Array(T.Object({ 'a/b': T.Integer() }), { minItems: 1, maxItems: 2 })),
        free: T.Optional(OpenObject),
      },
      { $id: 'ProbeCheckRequest' },
    ),
    output: OpenObject,
  }),
  save: act('PUT /v1/probe', {
    summary: 'Save',
    access: 'manage',
    body: Nullable(T.Object({ title: T.Optional(T.String({ default: 'none' })) }, { $id: 'ProbeSave' })),
    bodyOptional: true,
    output: OpenObject,
    faults: ['conflict'],
  }),
  pay: task('POST /v1/pay', {
    summary: 'Pay',
    access: 'trade',
    waitSeconds: 60,
    body: T.Object(
      {
        amount_usdc: DecIn({ exclusiveMinimum: 0, places: 6 }),
        legs: T.Optional(T.Union([Leg, T.Array(Leg)])),
        memo: T.Optional(Nullable(DecIn())),
      },
      { $id: 'PayRequest' },
    ),
    output: OpenObject,
    faults: ['insufficient_balance'],
  }),
  cancel: act('POST /v1/pay/{task_id}/cancel', {
    summary: 'Cancel',
    access: 'trade',
    rate: 'exit',
    params: T.Object({ task_id: T.String() }),
    output: OpenObject,
  }),
  sign: act('POST /v1/sign', {
    summary: 'Sign in',
    access: 'public',
    rate: 'auth',
    body: T.Object({ agent_id: T.String() }, { $id: 'SignRequest' }),
    output: OpenObject,
  }),
  ease: act('POST /v1/ease', {
    summary: 'Ask for nothing',
    access: 'manage',
    body: T.Object({ note: T.String({ default: 'none' }) }, { $id: 'EaseRequest' }),
    output: OpenObject,
  }),
  prove: act('POST /v1/prove', {
    summary: 'Prove who you are',
    access: 'public',
    rate: 'auth',
    counts: 'failures',
    body: T.Object({ agent_id: T.String() }, { $id: 'ProveRequest' }),
    output: OpenObject,
    faults: ['invalid_signature'],
  }),
  watch: stream('GET /v1/watch', {
    summary: 'Watch',
    access: 'read',
    query: T.Object({ mode: T.Optional(T.String()) }),
    event: OpenObject,
  }),
  talk: stream('POST /v1/talk', {
    summary: 'Talk',
    access: 'chat',
    body: T.Object({ query: T.String() }, { $id: 'TalkRequest' }),
    event: OpenObject,
  }),
  image: read('POST /chat/image/', { summary: 'With a slash', access: 'read', output: OpenObject }),
  break: act('POST /v1/break', {
    summary: 'Fail as requested',
    access: 'manage',
    body: T.Object({ how: T.String(), extras: T.Optional(OpenObject) }, { $id: 'BreakRequest' }),
    output: OpenObject,
  }),
})

export type RecordedCall = {
  name: string
  input: Record<string, unknown>
  options: InvokeOptions
  caller: Caller | null
}
type Streams = Record<string, (signal: AbortSignal, lastEventId?: string) => AsyncIterable<unknown>>

const admission = async (): Promise<Admission> => ({ data: {}, first: 'never' })
const echo = async (input: unknown): Promise<object> => ({ ...(input as object) })

export const operations: Operation[] = implement(contract, {
  list: echo,
  open: echo,
  byUuid: echo,
  check: echo,
  save: echo,
  ease: echo,
  cancel: echo,
  sign: echo,
  image: echo,
  get: async ({ probe_id }) => ({ probe_id, at: 'now', secret: 'never shown' }),
  prove: async ({ agent_id }) => {
    if (agent_id !== 'right') throw new Fault('invalid_signature', 'The signature is wrong')
    return {}
  },
  pay: { admit: admission, steps: {} },
  async *watch() {},
  async *talk() {},
  break: async ({ how, extras = {} }) => {
    if (how === 'bug') throw new Error('an internal detail')
    throw new Fault(how as 'conflict', `Failed as requested: ${how}`, { extras: { ...extras } })
  },
})

export type HttpApp = {
  url: string
  edge: HttpEdge
  seen: RecordedCall[]
  lines: { facts: Record<string, unknown>; sentence: string }[]
  close(): Promise<void>
}

export const tokens = {
  all: 'Bearer agt_all',
  reader: 'Bearer agt_reader',
} as const

async function authenticate(authorization: string | undefined): Promise<Caller> {
  const scheme = 'keypair' as const
  if (authorization === tokens.all) {
    const scopes = new Set(['read', 'chat', 'trade', 'earn', 'withdraw', 'manage'] as const)
    return { userId: 'u1', agentId: 'agt_1', scheme, scopes }
  }
  if (authorization === tokens.reader) {
    return { userId: 'u2', agentId: 'agt_2', scheme, scopes: new Set(['read'] as const) }
  }
  if (authorization === 'Bearer agt_down') throw new Fault('unavailable', 'The store is away')
  throw authorization === undefined
    ? new Fault('unauthorized', 'A credential is required')
    : new Fault('invalid_token', 'The token is not valid')
}

/** Runs reads directly, remembers keys, waits for tasks until the signal or the timeout ends the wait. */
const callOf = (seen: RecordedCall[], streams: Streams): Invoke => {
  const known = new Map<string, unknown>()
  return async ({ operation, input, caller, options, request }) => {
    seen.push({ name: operation.name, input, options, caller })
    if (operation.entry.kind === 'stream') {
      const made = streams[String(input.mode ?? input.query ?? 'none')]
      if (!made) throw new Fault('not_found', 'No such stream')
      return { kind: 'stream', items: made(request.signal, request.lastEventId) as never }
    }
    const { key } = options
    if (key !== undefined && known.has(key))
      return { kind: 'answer', body: known.get(key), replayed: true, key }
    const body =
      operation.entry.kind === 'task' ? await wait(options, request.signal) : await plain(operation, input)
    if (key !== undefined) known.set(key, body)
    return { kind: 'answer', body, replayed: false, ...(key !== undefined && { key }) }
  }
}

async function plain(operation: Operation, input: Record<string, unknown>): Promise<unknown> {
  const run = operation.run as unknown as (input: Record<string, unknown>) => Promise<unknown>
  return run(input)
}

async function wait({ wait: shouldWait, timeoutMs }: InvokeOptions, signal: AbortSignal): Promise<unknown> {
  if (!shouldWait) return { task_id: 't1', status: 'pending' }
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, timeoutMs)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
  return { task_id: 't1', status: 'running' }
}

export const noLimits: Limits = Object.fromEntries(
  Object.keys(defaultLimits).map((name) => [name, { points: 0, windowSeconds: 60 }]),
) as Limits

export async function createHttpApp(deps: Partial<DoorDeps> & { streams?: Streams } = {}): Promise<HttpApp> {
  const seen: RecordedCall[] = []
  const lines: HttpApp['lines'] = []
  const note = (facts: object, sentence: string) => {
    lines.push({ facts: facts as Record<string, unknown>, sentence })
  }
  const log: Log = { ...silentLog, info: note, warn: note, error: note }
  let url = 'http://127.0.0.1'
  const doors = await openDoors({
    operations,
    execute: callOf(seen, deps.streams ?? {}),
    authenticate,
    limits: noLimits,
    load: { delayMsMax: 60_000 },
    health: async () => ({ body: { status: 'ok' }, down: false }),
    baseUrl: () => url,
    trustProxy: [],
    corsOrigins: ['https://app.example'],
    version: '0.0.0',
    isLocal: true,
    log,
    clock: systemClock,
    ...deps,
  })
  url = await doors.http.listen({ host: '127.0.0.1', port: 0 })
  return {
    url,
    edge: doors.http,
    seen,
    lines,
    close: () => doors[Symbol.asyncDispose](),
  }
}

export type Answer = { status: number; headers: Headers; body: Record<string, unknown>; text: string }

/** One call with a full credential, unless the headers say otherwise; a plain object is sent as JSON. */
export async function sendRequest(
  url: string,
  route: string,
  sent?: {
    body?: unknown
    raw?: string | Uint8Array<ArrayBuffer>
    headers?: Record<string, string | undefined>
  },
): Promise<Answer> {
  const [method = 'GET', path = '/'] = route.split(' ')
  const wanted = { authorization: tokens.all as string, ...sent?.headers }
  const headers = Object.entries(wanted).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const json = sent?.body !== undefined
  const body = json ? JSON.stringify(sent.body) : sent?.raw
  const response = await fetch(url + path, {
    method,
    headers: [...(json ? [['content-type', 'application/json'] as [string, string]] : []), ...headers],
    ...(body !== undefined && { body }),
    redirect: 'manual',
  })
  const text = await response.text()
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson && text !== '' ? (JSON.parse(text) as Record<string, unknown>) : {},
  }
}

/** Sends raw bytes that no client would send; resolves with everything until the connection ends. */
export async function rawExchange(url: string, bytes: string | Uint8Array): Promise<string> {
  const socket = connectTo(url)
  const chunks: Buffer[] = []
  const { promise, resolve } = Promise.withResolvers<string>()
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => undefined)
  socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
  socket.write(bytes)
  return promise
}

export function connectTo(url: string): Socket {
  const { hostname, port } = new URL(url)
  return connect({ host: hostname, port: Number(port) })
}
