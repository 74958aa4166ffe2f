import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Admitted } from '#invoke/invocation.ts'
import type { RequestMode } from './http-metrics.ts'

/** State of the HTTP server for one request. */
export type RequestContext = {
  /** Absent until the request is admitted. */
  admitted: Admitted | undefined
  startedMs: number
  mode: RequestMode
  /** Aborted when the client leaves, or when the server closes and the request may end early. */
  readonly signal: AbortSignal
  abort(): void
}

/** The signal is created on first use: most requests are answered before a client could leave. */
function createContext(startedMs: number): RequestContext {
  let controller: AbortController | undefined
  let aborted = false
  return {
    admitted: undefined,
    startedMs,
    mode: 'plain',
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

const contextKey = Symbol('visit')
type ContextRequest = FastifyRequest & { [contextKey]?: RequestContext }

/** Live requests, and which of them the closing server may end early. */
export function requestContexts() {
  const interruptible = new Set<RequestContext>()
  let closing = false
  return {
    /** `ended` is called once, when the answer is sent or the client has left. */
    begin(
      request: ContextRequest,
      reply: FastifyReply,
      ended: (context: RequestContext) => void,
    ): RequestContext {
      const context = createContext(performance.now())
      request[contextKey] = context
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) context.abort()
        ended(context)
      })
      return context
    },
    get(request: ContextRequest): RequestContext {
      const context = request[contextKey]
      if (!context) throw new Error('a request without a visit')
      return context
    },
    /** Runs work that a closing server does not wait for: a wait for a task, which continues without its caller. */
    async interruptible<T>(context: RequestContext, run: () => Promise<T>): Promise<T> {
      interruptible.add(context)
      if (closing) context.abort()
      try {
        return await run()
      } finally {
        interruptible.delete(context)
      }
    },
    isClosing: () => closing,
    close(): void {
      closing = true
      for (const context of interruptible) context.abort()
    },
  }
}
export type RequestContexts = ReturnType<typeof requestContexts>
