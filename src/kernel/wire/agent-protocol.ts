import { fits } from '#kernel/contract/fits-schema.ts'
import * as T from '#kernel/contract/schema.ts'
import { Nullable, OneOf, OpenObject } from '#kernel/contract/wire-types.ts'
import { planWords, stopReasons } from './chat-answerer.ts'
import { isRecord, type Json, type JsonObject } from './json.ts'

/**
 * `portico-agent.v1` is the WebSocket protocol between a gateway and the service that answers its chats; see
 * docs/agent-protocol.md. A message has one frame in each line; unknown types and fields are ignored.
 */

export const agentProtocol = 'portico-agent.v1'
export const agentPath = '/agent/v1'

export const frameBytesMax = 1_048_576
export const framesPerMessageMax = 2_000
export const runsPerConnectionMax = 256
/** The service sends no further event of a run while this much of the run is not acknowledged. */
export const windowMax = { events: 1_000, bytes: 65_536 }
/** At most this many requests of one run may be unanswered. */
export const openRequestsMax = 32
export const filePartBytes = 196_608
export const fileBytesMax = 5 * 1_048_576
export const namesPerPage = 1_000
export const memoryBytesMax = 262_144
export const answerCharactersMax = 200_000

export const liveness = { pingEveryMs: 10_000, deadAfterMs: 25_000 }
/** How long the service continues a run after the gateway has disconnected. */
export const runHeldMs = 30_000
/** How long the gateway tries to reconnect to a run: less than the service continues the run without a gateway. */
export const resumeMsMax = 20_000
export const startMsMax = 5_000
export const runMsMax = 900_000

const cancelReasons = ['user', 'client_gone', 'deadline', 'shutdown', 'failed'] as const
const closeReasons = ['ended', 'superseded', 'expired', 'shutdown'] as const
const refusals = ['overloaded', 'unknown_run', 'invalid'] as const

const text = (maxLength: number, description?: string) =>
  T.String({ maxLength, ...(description && { description }) })
const Seq = T.Integer({ minimum: 1, maximum: 1_000_000_000 })
const SeqOrNone = T.Integer({ minimum: 0, maximum: 1_000_000_000 })
const RunId = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'One try of the gateway to have the turn answered',
})
const AnyJson = T.Unsafe<Json>({})
const Data = T.Unsafe<JsonObject>({ type: 'object' })
const Name = T.String({ minLength: 1, maxLength: 128 })
const NoteName = text(64)
const Tokens = T.Integer({ minimum: 0, maximum: 1_000_000_000 })

export const gatewayFrames = {
  hello: T.Object({ gateway: text(128), version: text(64) }),
  start: T.Object({
    run_id: RunId,
    chat_id: text(64, 'The turn: a later run of the same turn ends the earlier one'),
    agent: text(64),
    query: text(32_000),
    asked_at: text(40),
    said: text(answerCharactersMax, 'What an earlier run of the turn has said'),
    memory: Nullable(Data),
    credits_max: T.Integer({ minimum: 0 }),
    ms_max: T.Integer({ minimum: 0, maximum: runMsMax, description: 'Time that the run has' }),
    names_version: text(64, 'Digest of the names of chains, tokens and markets'),
  }),
  resume: T.Object({ run_id: RunId, after_seq: SeqOrNone }),
  cancel: T.Object({ run_id: RunId, reason: OneOf(cancelReasons) }),
  ack: T.Object({ run_id: RunId, seq: SeqOrNone }),
  tool_response: T.Object({
    run_id: RunId,
    seq: Seq,
    ok: T.Boolean(),
    output: T.Optional(AnyJson),
    fetched_at: T.Optional(text(40)),
    code: T.Optional(text(64)),
    message: T.Optional(text(16_000)),
    thrown: T.Optional(T.Boolean({ description: 'The request itself failed, and is no result of a tool' })),
  }),
} as const

export const serviceFrames = {
  hello: T.Object({
    instance: text(128),
    version: text(64),
    agents: T.Array(text(64), { maxItems: 100 }),
    runs_max: T.Integer({ minimum: 1, maximum: 100_000 }),
  }),
  accepted: T.Object({ run_id: RunId }),
  rejected: T.Object({
    run_id: RunId,
    code: OneOf(refusals),
    message: text(1_000),
    retry_after_ms: T.Integer({ minimum: 0, maximum: 60_000 }),
  }),
  event: T.Object({ run_id: RunId, seq: Seq, event: text(64), data: Data }),
  ack: T.Object({ run_id: RunId, seq: Seq }),
  closed: T.Object({ run_id: RunId, reason: OneOf(closeReasons) }),
} as const

const CitationData = T.Object({
  n: T.Integer({ minimum: 1, maximum: 10_000 }),
  tool: text(128),
  pointer: text(1_000),
  fetched_at: text(40),
})

/** The events of a run. A `tool_response` with the same number answers each request among them. */
export const agentEvents = {
  planning: T.Object({
    v4_event: OneOf(planWords),
    data: T.Object({ id: text(128), text: text(4_000) }),
  }),
  chunk: T.Object({ text: text(answerCharactersMax) }),
  tool_call: T.Object({
    id: Name,
    name: Name,
    arguments: OpenObject,
    from_model: T.Optional(T.Boolean({ description: 'Left out: true' })),
  }),
  file: T.Object({
    name: text(200),
    content_type: text(100),
    size: T.Integer({ minimum: 0, maximum: fileBytesMax }),
    part: T.Integer({ minimum: 1, maximum: 64 }),
    parts: T.Integer({ minimum: 1, maximum: 64 }),
    base64: text(Math.ceil(filePartBytes / 3) * 4),
  }),
  note_get: T.Object({ name: NoteName }),
  note_put: T.Object({ name: NoteName, note: Data }),
  note_failed: T.Object({ name: NoteName }),
  describe: T.Object({}),
  history: T.Object({}),
  names: T.Object({ from: SeqOrNone }),
  done: T.Object({
    stop_reason: OneOf(stopReasons),
    usage: T.Optional(T.Object({ input_tokens: Tokens, output_tokens: Tokens })),
    citations: T.Array(CitationData, { maxItems: 1_000 }),
    memory: Nullable(Data),
  }),
  error: T.Object({ code: text(64), message: text(4_000) }),
} as const

export type AgentEvent = keyof typeof agentEvents
export type AgentEventData = { [Name in AgentEvent]: T.Static<(typeof agentEvents)[Name]> }
const requests = [
  'tool_call',
  'file',
  'note_get',
  'note_put',
  'note_failed',
  'describe',
  'history',
  'names',
] as const satisfies AgentEvent[]
export type AgentRequest = (typeof requests)[number]
export const isRequest = (event: string): event is AgentRequest =>
  (requests as readonly string[]).includes(event)

type FrameOf<Table extends Record<string, T.TSchema>> = {
  [Type in keyof Table]: { type: Type } & T.Static<Table[Type]>
}[keyof Table]
export type GatewayFrame = FrameOf<typeof gatewayFrames>
export type ServiceFrame = FrameOf<typeof serviceFrames>
/** A frame that was read; `bytes` is the size of its line, as both sides count it for the window. */
export type ReadFrame<Frame> = { frame: Frame; bytes: number }

/** The error of a connection whose other side does not follow the protocol; the connection then ends. */
export class ProtocolError extends Error {}

function readLines<Table extends Record<string, T.TSchema>>(
  table: Table,
  message: string,
): ReadFrame<FrameOf<Table>>[] {
  const lines = message.split('\n', framesPerMessageMax + 1)
  if (lines.length > framesPerMessageMax) throw new ProtocolError('a message has too many frames')
  return lines.flatMap((line) => {
    const frame = parse(line)
    const { type } = frame
    if (typeof type !== 'string' || !Object.hasOwn(table, type)) return []
    const schema = table[type]
    if (!schema || !fits(schema, frame)) throw new ProtocolError(`a frame ${type} has another form`)
    return [{ frame: frame as FrameOf<Table>, bytes: Buffer.byteLength(line) }]
  })
}
export const readGatewayFrames = (message: string): ReadFrame<GatewayFrame>[] =>
  readLines(gatewayFrames, message)
export const readServiceFrames = (message: string): ReadFrame<ServiceFrame>[] =>
  readLines(serviceFrames, message)

/** Checks the data of an event; returns undefined for an event that this version does not know. */
export function readEvent({ event, data }: { event: string; data: JsonObject }): AgentEventRead | undefined {
  if (!Object.hasOwn(agentEvents, event)) return undefined
  if (!fits(agentEvents[event as AgentEvent], data))
    throw new ProtocolError(`an event ${event} has another form`)
  return { event, data } as AgentEventRead
}
export type AgentEventRead = {
  [Event in AgentEvent]: { event: Event; data: AgentEventData[Event] }
}[AgentEvent]

/** The JSON escapes that the database refuses: the character 0, and halves of a surrogate pair. */
const suspicious = /\\u(?:0000|d[89a-f])/i

function parse(line: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line)
    if (!isRecord(value)) throw new ProtocolError('a frame is an object')
    return suspicious.test(line) ? (storable(value) as Record<string, unknown>) : value
  } catch (error) {
    throw error instanceof ProtocolError ? error : new ProtocolError('a frame is no JSON', { cause: error })
  }
}

function storable(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('\0', '').toWellFormed()
  if (Array.isArray(value)) return value.map(storable)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [storable(key) as string, storable(field)]),
  )
}
