import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '#kernel/caller.ts'

/** What the door knows of one request beside the request itself. */
export type Visit = {
  caller: Caller | null
  /** Aborted when the client leaves, or when the server closes and the visit may end early. */
  controller: AbortController
  startedMs: number
}

/** Live visits, and which of them the closing server may cut short. */
export function visits() {
  const known = new WeakMap<FastifyRequest, Visit>()
  const cuttable = new Set<AbortController>()
  let closing = false
  return {
    begin(request: FastifyRequest, reply: FastifyReply): Visit {
      const visit: Visit = { caller: null, controller: new AbortController(), startedMs: performance.now() }
      known.set(request, visit)
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) visit.controller.abort()
      })
      return visit
    },
    of(request: FastifyRequest): Visit {
      const visit = known.get(request)
      if (!visit) throw new Error('a request without a visit')
      return visit
    },
    /** Runs what a closing server need not wait for: a wait for a task, which goes on without its caller. */
    async cuttable<T>(visit: Visit, run: () => Promise<T>): Promise<T> {
      cuttable.add(visit.controller)
      if (closing) visit.controller.abort()
      try {
        return await run()
      } finally {
        cuttable.delete(visit.controller)
      }
    },
    isClosing: () => closing,
    close(): void {
      closing = true
      for (const controller of cuttable) controller.abort()
    },
  }
}
export type Visits = ReturnType<typeof visits>
