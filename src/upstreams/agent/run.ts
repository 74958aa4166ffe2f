import { setTimeout as pause } from 'node:timers/promises'
import { Fault, type FaultCode, faults } from '#kernel/contract/fault.ts'
import {
  type AgentEventData,
  type AgentEventRead,
  type GatewayFrame,
  isRequest,
  memoryBytesMax,
  ProtocolError,
  type ReadFrame,
  readEvent,
  type ServiceFrame,
} from '#kernel/wire/agent-protocol.ts'
import type { Emit, Tools, Turn, TurnEnd } from '#kernel/wire/chat-answerer.ts'
import { createReceived } from './received-events.ts'
import { type AttachmentDeps, createAttachment, lostRun } from './run-connection.ts'
import { createRequests, type GatewayNames, type Request } from './service-requests.ts'
import { createAnswers } from './unacknowledged-answers.ts'

/** Runs one turn at the agent service: its events go to the turn in order, and its requests to the turn's tools. */

export type RunInput = {
  runId: string
  turn: Turn
  names: GatewayNames
  msMax: number
  tools: Tools
  emit: Emit
  signal: AbortSignal
}
type End = Extract<AgentEventRead, { event: 'done' | 'error' }>

/** How long the service may take to end a run that was cancelled. */
const cancelMs = 5_000
/** How long running calls may take once a run has failed. */
const settleMs = 25_000

export function runAtService(deps: AttachmentDeps, input: RunInput): Promise<TurnEnd> {
  const { runId, tools, names, emit, signal } = input
  const ended = Promise.withResolvers<TurnEnd>()
  const received = createReceived()
  const requests = createRequests(tools, names)
  const answers = createAnswers(runId, (frame) => attachment.send(frame))
  const working = new Set<Promise<unknown>>()
  let end: { seq: number; read: End } | undefined
  let hasEnded = false
  let doneSeq = 0
  let acking: NodeJS.Immediate | undefined

  const leave = () => {
    hasEnded = true
    clearImmediate(acking)
    requests.close()
    attachment.close()
    signal.removeEventListener('abort', onAbort)
  }
  /** Calls that are still running are finished first, so that a later run finds their results. */
  const reject = (error: unknown) =>
    void Promise.race([Promise.allSettled(working), whenAborted(signal), pause(settleMs)]).then(() =>
      ended.reject(error),
    )
  const fail = (error: unknown) => {
    if (hasEnded) return
    attachment.send({ type: 'cancel', run_id: runId, reason: 'failed' })
    leave()
    reject(error instanceof ProtocolError ? broken(error) : error)
  }
  const sendAck = () => {
    acking = undefined
    attachment.send({ type: 'ack', run_id: runId, seq: doneSeq })
  }
  const done = (seq: number) => {
    const upTo = received.done(seq)
    if (upTo === undefined || hasEnded) return
    doneSeq = upTo
    if (end?.seq !== upTo) {
      acking ??= setImmediate(sendAck)
      return
    }
    sendAck()
    leave()
    if (end.read.event === 'done') ended.resolve(endOf(end.read.data))
    else reject(failureOf(end.read.data))
  }
  const workOn = (work: Promise<unknown>) => {
    const watched = work.catch(fail).finally(() => working.delete(watched))
    working.add(watched)
  }
  const request = async (seq: number, read: Request): Promise<void> => {
    try {
      answers.answer(seq, await requests.perform(read))
    } catch (error) {
      // An error that is no Fault, for example because another instance has taken over the task, is not answered to the
      // service, but ends the run.
      if (!(error instanceof Fault)) throw error
      answers.answer(seq, { ok: false, thrown: true, code: error.code, message: error.message })
    }
  }
  const take = (seq: number, read: AgentEventRead | undefined): void => {
    if (read?.event === 'chunk') {
      workOn(emit.chunk(read.data.text).then(() => done(seq)))
      return
    }
    if (read && isRequest(read.event)) {
      answers.open(seq)
      workOn(request(seq, read as Request))
    }
    if (read?.event === 'planning') emit.planning(read.data.v4_event, read.data.data)
    if (read?.event === 'done' || read?.event === 'error') end = { seq, read: checkedEnd(read) }
    done(seq)
  }
  const onFrame = ({ frame, bytes }: ReadFrame<ServiceFrame>) => {
    if (hasEnded) return
    try {
      if (frame.type === 'ack') answers.received(frame.seq)
      if (frame.type === 'closed') fail(lostRun(frame.reason))
      if (frame.type !== 'event' || !received.take(frame.seq, bytes)) return
      if (end) throw new ProtocolError('an event after the end')
      take(frame.seq, readEvent(frame))
    } catch (error) {
      fail(error)
    }
  }
  const onAccepted = () => {
    answers.resend()
    if (doneSeq > 0) sendAck()
    if (signal.aborted) onAbort()
  }
  const onAbort = () => {
    if (!attachment.isAttached()) return fail(signal.reason)
    attachment.send({ type: 'cancel', run_id: runId, reason: reasonOf(signal) })
    setTimeout(() => fail(signal.reason), cancelMs).unref()
  }
  const attachment = createAttachment(deps, {
    runId,
    start: startOf(input),
    lastSeq: received.last,
    onFrame,
    onAccepted,
    onFailed: fail,
  })
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) fail(signal.reason)
  else attachment.begin()
  return ended.promise
}

const startOf = ({ runId, turn, names, msMax }: RunInput): GatewayFrame => ({
  type: 'start',
  run_id: runId,
  chat_id: turn.chatId,
  agent: turn.agent,
  query: turn.query,
  asked_at: turn.askedAt.toISOString(),
  said: turn.said,
  memory: turn.memory,
  credits_max: turn.creditsMax,
  ms_max: msMax,
  names_version: names.version,
})

function checkedEnd(read: End): End {
  if (read.event === 'done' && Buffer.byteLength(JSON.stringify(read.data.memory)) > memoryBytesMax)
    throw new ProtocolError('the memory is too large')
  return read
}

const endOf = ({ stop_reason, citations, memory, usage }: AgentEventData['done']): TurnEnd => ({
  stopReason: stop_reason,
  ...(usage && { usage: { inputTokens: usage.input_tokens, outputTokens: usage.output_tokens } }),
  citations: citations.map(({ n, tool, pointer, fetched_at }) => ({ n, tool, pointer, fetched_at })),
  memory,
})

/** Returns a Fault for a code of the catalogue other than `internal`; any other code was the service's bug. */
function failureOf({ code, message }: AgentEventData['error']): Error {
  if (code === 'internal' || !Object.hasOwn(faults, code))
    return new Error(`the agent service failed: ${message}`)
  return new Fault(code as FaultCode, message)
}

const broken = (cause: ProtocolError) =>
  new Fault('upstream_changed', 'The agent service does not follow the protocol', { cause })

const whenAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

const reasons = {
  cancelled: 'user',
  suspended: 'user',
  client_gone: 'client_gone',
  deadline: 'deadline',
} as const

function reasonOf({ reason }: AbortSignal): (typeof reasons)[keyof typeof reasons] | 'shutdown' {
  const cause = reason instanceof Error ? String(reason.cause) : ''
  return Object.hasOwn(reasons, cause) ? reasons[cause as keyof typeof reasons] : 'shutdown'
}
