import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Admitted } from '#invoke/invocation.ts'
import type { RequestMode } from './request-metrics.ts'

export type RequestContext = {
  request: FastifyRequest
  operation: string | undefined
  admitted: Admitted | undefined
  startedMs: number
  mode: RequestMode
  isAborted: boolean
  controller: AbortController | undefined
}

/** The signal aborts when the client leaves, or when the server closes and the request may end early. */
export function signalOf(context: RequestContext): AbortSignal {
  context.controller ??= new AbortController()
  if (context.isAborted) context.controller.abort()
  return context.controller.signal
}

export function abort(context: RequestContext): void {
  context.isAborted = true
  context.controller?.abort()
}

const contextKey = Symbol('context')
type ContextResponse = ServerResponse & { [contextKey]?: RequestContext }
type Ended = (context: RequestContext, response: ServerResponse) => void

/** Tracks the live requests, and which of them a closing server may end early. */
export function requestContexts(ended: Ended) {
  const interruptible = new Set<RequestContext>()
  let closing = false
  /** All responses share one listener, because a listener of its own would allocate a function for each request. */
  function end(this: ContextResponse): void {
    const context = this[contextKey]
    if (!context) return
    if (!this.writableFinished) abort(context)
    ended(context, this)
  }
  return {
    begin(request: FastifyRequest, { raw }: FastifyReply): void {
      const response: ContextResponse = raw
      response[contextKey] = {
        request,
        operation: undefined,
        admitted: undefined,
        startedMs: performance.now(),
        mode: 'plain',
        isAborted: false,
        controller: undefined,
      }
      response.on('close', end)
    },
    /** Returns the context of a request, or undefined if the request line could not be routed. */
    find: ({ raw }: FastifyReply): RequestContext | undefined => (raw as ContextResponse)[contextKey],
    get({ raw }: FastifyReply): RequestContext {
      const context = (raw as ContextResponse)[contextKey]
      if (!context) throw new Error('a request without a context')
      return context
    },
    /** Runs work that a closing server does not wait for, such as a wait for a task, which continues by itself. */
    async interruptible<T>(context: RequestContext, run: () => Promise<T>): Promise<T> {
      interruptible.add(context)
      if (closing) abort(context)
      try {
        return await run()
      } finally {
        interruptible.delete(context)
      }
    },
    isClosing: () => closing,
    close(): void {
      closing = true
      for (const context of interruptible) abort(context)
    },
  }
}
export type RequestContexts = ReturnType<typeof requestContexts>
