import { setTimeout as pause } from 'node:timers/promises'
import { withJitter } from '#kernel/async/backoff.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import {
  type GatewayFrame,
  type ReadFrame,
  resumeMsMax,
  type ServiceFrame,
  startMsMax,
} from '#kernel/wire/agent-protocol.ts'
import { type Attached, type Link, ServiceRefused } from './service-connection.ts'

/** Connects one run to the service, and again after each loss of the connection. */

export type AttachmentDeps = { link: Link; random: Pick<Random, 'fraction'> }
type Parts = {
  runId: string
  start: GatewayFrame
  lastSeq: () => number
  onFrame(read: ReadFrame<ServiceFrame>): void
  /** Called each time the service has accepted the run: at its start, and after each lost connection. */
  onAccepted(): void
  onFailed(error: unknown): void
}
type Refused = Extract<ServiceFrame, { type: 'rejected' }>
type Reply = Extract<ServiceFrame, { type: 'accepted' }> | Refused | 'lost'
export type Attachment = {
  begin(): void
  send(frame: GatewayFrame): void
  isAttached(): boolean
  close(): void
}

const replyMs = 5_000
const retryMs = 50

export const lostRun = (why: string) =>
  new Fault('unavailable', `The agent service has lost the answer: ${why}`)

export function createAttachment({ link, random }: AttachmentDeps, parts: Parts): Attachment {
  const { runId, start, lastSeq, onAccepted, onFailed } = parts
  let attached: Attached | undefined
  let isAccepted = false
  let isStarted = false
  let isClosed = false
  let reply: PromiseWithResolvers<Reply> | undefined

  const receiver = {
    onFrame(read: ReadFrame<ServiceFrame>) {
      const { frame } = read
      if (frame.type === 'accepted' || frame.type === 'rejected') reply?.resolve(frame)
      else parts.onFrame(read)
    },
    onLost() {
      const wasAccepted = isAccepted
      attached = undefined
      isAccepted = false
      reply?.resolve('lost')
      if (wasAccepted && !isClosed) void connect(resumeMsMax)
    },
  }
  const request = async (): Promise<Reply> => {
    attached?.detach()
    const waiting = Promise.withResolvers<Reply>()
    reply = waiting
    const found = await link.attach(runId, receiver)
    attached = found
    if (isClosed) {
      found.detach()
      return 'lost'
    }
    found.send(isStarted ? { type: 'resume', run_id: runId, after_seq: lastSeq() } : start)
    const timer = setTimeout(() => waiting.resolve('lost'), replyMs)
    return waiting.promise.finally(() => clearTimeout(timer))
  }
  /** Tries to connect until the service accepts the run or refuses it for good, or until `msMax` is over. */
  const connect = async (msMax: number): Promise<void> => {
    const limitMs = performance.now() + msMax
    let problem: unknown = new Fault('unavailable', 'The agent service does not answer')
    while (!isClosed && performance.now() < limitMs) {
      try {
        const found = await request()
        if (isClosed) return
        if (found !== 'lost') {
          if (found.type === 'accepted') {
            isStarted = true
            isAccepted = true
            return onAccepted()
          }
          problem = refusalOf(found)
          if (found.code !== 'overloaded' || found.retry_after_ms >= limitMs - performance.now()) break
          await pause(withJitter(found.retry_after_ms, random))
        }
      } catch (error) {
        if (error instanceof ServiceRefused || !(error instanceof Fault)) return onFailed(error)
        problem = error
      }
      await pause(withJitter(retryMs, random))
    }
    if (!isClosed) onFailed(problem)
  }
  return {
    begin: () => void connect(startMsMax),
    send: (frame) => attached?.send(frame),
    isAttached: () => isAccepted,
    close() {
      isClosed = true
      attached?.detach()
      attached = undefined
      reply?.resolve('lost')
    },
  }
}

const refusalOf = ({ code, message }: Refused): Fault =>
  code === 'unknown_run'
    ? lostRun('it was restarted; ask again')
    : new Fault('unavailable', `The agent service refuses: ${message}`)
