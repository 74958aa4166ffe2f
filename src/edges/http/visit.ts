import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '#kernel/caller.ts'
import type { Fault } from '#kernel/fault.ts'

/** What the door knows of one request beside the request itself. */
export type Visit = {
  caller: Caller | null
  /** Answered instead of a failure, where failures are counted and have used up their budget. */
  refusalOfFailure: Fault | undefined
  startedMs: number
  /** Aborted when the client leaves, or when the server closes and the visit may end early. */
  readonly signal: AbortSignal
  abort(): void
}

/** The signal is made for those who ask for it: most requests are answered before anyone could leave. */
function visitFrom(startedMs: number): Visit {
  let controller: AbortController | undefined
  let aborted = false
  return {
    caller: null,
    refusalOfFailure: undefined,
    startedMs,
    get signal() {
      controller ??= new AbortController()
      if (aborted) controller.abort()
      return controller.signal
    },
    abort() {
      aborted = true
      controller?.abort()
    },
  }
}

const visitKey = Symbol('visit')
type Visited = FastifyRequest & { [visitKey]?: Visit }

/** Live visits, and which of them the closing server may cut short. */
export function visits() {
  const cuttable = new Set<Visit>()
  let closing = false
  return {
    /** `ended` is called once, when the answer is out or the client is gone. */
    begin(request: Visited, reply: FastifyReply, ended: (visit: Visit) => void): Visit {
      const visit = visitFrom(performance.now())
      request[visitKey] = visit
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) visit.abort()
        ended(visit)
      })
      return visit
    },
    of(request: Visited): Visit {
      const visit = request[visitKey]
      if (!visit) throw new Error('a request without a visit')
      return visit
    },
    /** Runs what a closing server need not wait for: a wait for a task, which goes on without its caller. */
    async cuttable<T>(visit: Visit, run: () => Promise<T>): Promise<T> {
      cuttable.add(visit)
      if (closing) visit.abort()
      try {
        return await run()
      } finally {
        cuttable.delete(visit)
      }
    },
    isClosing: () => closing,
    close(): void {
      closing = true
      for (const visit of cuttable) visit.abort()
    },
  }
}
export type Visits = ReturnType<typeof visits>
