import type { GatewayFrame } from '#kernel/wire/agent-protocol.ts'
import { toLine } from '#kernel/wire/agent-socket.ts'
import { createRun, type Peer, type RunDeps, type ServiceRun } from './turn-run.ts'

type FrameOf<Type extends GatewayFrame['type']> = Extract<GatewayFrame, { type: Type }>
export type Runs = {
  start(frame: FrameOf<'start'>, peer: Peer, isFull: boolean): void
  resume(frame: FrameOf<'resume'>, peer: Peer): void
  /** Returns the run with this id, if it is attached to this connection. */
  of(runId: string, peer: Peer): ServiceRun | undefined
  detach(peer: Peer): void
  count(): number
  close(): void
}

const retryAfterMs = 250

export function createRuns(deps: RunDeps & { runsMax: number }): Runs {
  const runs = new Map<string, ServiceRun>()
  const byChat = new Map<string, ServiceRun>()

  const refuse = (peer: Peer, run_id: string, code: 'overloaded' | 'unknown_run', message: string) =>
    peer.send(toLine({ type: 'rejected', run_id, code, message, retry_after_ms: retryAfterMs }))
  const attach = (run: ServiceRun, peer: Peer, run_id: string, afterSeq: number) => {
    peer.send(toLine({ type: 'accepted', run_id }))
    if (!run.attach(peer, afterSeq)) run.close('expired')
  }
  return {
    start(frame, peer, isFull) {
      const { run_id, chat_id } = frame
      const known = runs.get(run_id)
      if (known) return attach(known, peer, run_id, 0)
      if (isFull || runs.size >= deps.runsMax) return refuse(peer, run_id, 'overloaded', 'too many runs')
      const run: ServiceRun = createRun(deps, frame, () => {
        runs.delete(run_id)
        if (byChat.get(chat_id) === run) byChat.delete(chat_id)
      })
      // Another instance, or another attempt, has taken the turn of this chat over, so the earlier run is closed.
      byChat.get(chat_id)?.close('superseded')
      runs.set(run_id, run)
      byChat.set(chat_id, run)
      attach(run, peer, run_id, 0)
      run.begin()
    },
    resume({ run_id, after_seq }, peer) {
      const run = runs.get(run_id)
      if (run) attach(run, peer, run_id, after_seq)
      else refuse(peer, run_id, 'unknown_run', 'there is no such run')
    },
    of(runId, peer) {
      const run = runs.get(runId)
      return run?.isAttachedTo(peer) ? run : undefined
    },
    detach(peer) {
      for (const run of runs.values()) run.detach(peer)
    },
    count: () => runs.size,
    close() {
      for (const run of [...runs.values()]) run.close('shutdown')
    },
  }
}
