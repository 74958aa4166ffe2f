import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import {
  type AgentEvent,
  type AgentEventData,
  type GatewayFrame,
  runHeldMs,
  type ServiceFrame,
} from '#kernel/wire/agent-protocol.ts'
import { type Line, toLine } from '#kernel/wire/agent-socket.ts'
import type { Agent, Answerer, Emit, Turn, TurnEnd } from '#kernel/wire/chat-answerer.ts'
import { createEventQueue } from './event-queue.ts'
import { createNamesReader, type NamesReader } from './fetch-gateway-names.ts'
import { createOpenRequests } from './open-requests.ts'
import { remoteTools } from './remote-tools.ts'

/** One run of a turn: its answerer calls the tools of the gateway that started it, and sends its events there. */

export type AnswererOf = (names: NamesReader) => Answerer
type Start = Extract<GatewayFrame, { type: 'start' }>
type CloseReason = Extract<ServiceFrame, { type: 'closed' }>['reason']
/** The connection that has started or resumed a run last; frames of the run go there. */
export type Peer = { send(line: Line): void }

export type ServiceRun = {
  chatId: string
  /** Sends the events after `afterSeq` to a connection; returns false if these events are no longer known. */
  attach(peer: Peer, afterSeq: number): boolean
  detach(peer: Peer): void
  isAttachedTo(peer: Peer): boolean
  begin(): void
  cancel(reason: string): void
  ack(seq: number): void
  respond(response: Extract<GatewayFrame, { type: 'tool_response' }>): void
  close(reason: CloseReason): void
}
export type RunDeps = {
  answererOf: AnswererOf
  log: Log
  runHeldMs?: number
}

/** How long an answerer may take to notice that it has to end. */
const stopMs = 10_000
const pieceCharacters = 16_000

export function createRun(deps: RunDeps, start: Start, onClosed: () => void): ServiceRun {
  const { run_id: runId } = start
  const queue = createEventQueue(runId)
  const stopping = new AbortController()
  let peer: Peer | undefined
  let endSeq: number | undefined
  let isClosed = false
  /** One timer runs while the gateway is away, the other while a stopped answerer ends. */
  const timers: { away?: NodeJS.Timeout; stop?: NodeJS.Timeout } = {}

  const add = <Event extends AgentEvent>(event: Event, data: AgentEventData[Event]) => queue.add(event, data)
  const requests = createOpenRequests({ add: (event, data) => queue.add(event, data).seq })
  const closeIn = (ms: number) => setTimeout(() => close('expired'), ms).unref()
  const close = (reason: CloseReason) => {
    if (isClosed) return
    isClosed = true
    for (const timer of [limit, timers.away, timers.stop]) clearTimeout(timer)
    peer?.send(toLine({ type: 'closed', run_id: runId, reason }))
    peer = undefined
    stop(reason)
    queue.detach()
    onClosed()
  }
  const stop = (reason: string) => {
    stopping.abort(new Error('The run ends', { cause: reason }))
    requests.close()
    queue.release()
    if (!isClosed) timers.stop ??= closeIn(stopMs)
  }
  const limit = setTimeout(() => stop('deadline'), start.ms_max).unref()

  const end = <Event extends 'done' | 'error'>(event: Event, data: AgentEventData[Event]) => {
    if (isClosed) return
    endSeq = add(event, data).seq
  }
  const answer = async (): Promise<void> => {
    const emit = createEmit(add, () => isClosed)
    const answerer = deps.answererOf(createNamesReader(start.names_version, requests.ask))
    end('done', endData(await answerer.run(turnOf(start), remoteTools(requests.ask), emit, stopping.signal)))
  }
  return {
    chatId: start.chat_id,
    attach(next, afterSeq) {
      if (isClosed) return false
      peer = next
      clearTimeout(timers.away)
      return queue.attach((line) => next.send(line), afterSeq)
    },
    detach(from) {
      if (peer !== from) return
      peer = undefined
      queue.detach()
      timers.away = closeIn(deps.runHeldMs ?? runHeldMs)
    },
    isAttachedTo: (other) => peer === other,
    begin() {
      answer()
        .catch((error: unknown) => {
          const isKnown = error instanceof Fault
          if (!isKnown && !stopping.signal.aborted) deps.log.error({ error }, 'the answerer of a run failed')
          end(
            'error',
            isKnown ? { code: error.code, message: error.message.slice(0, 4_000) } : unknownFailure,
          )
        })
        // The run ends if its queue has no room for the last event.
        .catch(() => close('expired'))
    },
    cancel: (reason) => stop(reason),
    ack(seq) {
      queue.ack(seq)
      if (endSeq !== undefined && queue.ackedSeq() >= endSeq) close('ended')
    },
    respond(response) {
      peer?.send(toLine({ type: 'ack', run_id: runId, seq: response.seq }))
      requests.respond(response)
    },
    close,
  }
}

const unknownFailure = { code: 'internal', message: 'the answerer failed' }

const turnOf = ({ chat_id, agent, query, asked_at, said, memory, credits_max }: Start): Turn => ({
  chatId: chat_id,
  agent: agent as Agent,
  query,
  askedAt: new Date(asked_at),
  said,
  memory,
  creditsMax: credits_max,
})

const endData = ({ stopReason, usage, citations, memory }: TurnEnd): AgentEventData['done'] => ({
  stop_reason: stopReason,
  ...(usage && { usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens } }),
  citations,
  memory,
})

function createEmit(
  add: <Event extends 'planning' | 'chunk'>(
    event: Event,
    data: AgentEventData[Event],
  ) => { sent: Promise<void> },
  isClosed: () => boolean,
): Emit {
  return {
    planning(v4_event, data) {
      if (!isClosed()) add('planning', { v4_event, data })
    },
    async chunk(given) {
      let sent: Promise<void> = Promise.resolve()
      for (const text of piecesOf(given)) if (!isClosed()) ({ sent } = add('chunk', { text }))
      await sent
    },
  }
}

/** Cuts a text into pieces without splitting a character. */
function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const isSplit = /[\ud800-\udbff]/.test(text.charAt(at + pieceCharacters - 1))
    const end = at + pieceCharacters - (isSplit ? 1 : 0)
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}
