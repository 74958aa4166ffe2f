import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WebRequest, WebRoute } from '#invoke/web-route.ts'
import type { HttpDeps } from './operation-route.ts'
import { faultOf } from './problem.ts'
import { signalOf } from './request-context.ts'

type WebDeps = Pick<HttpDeps, 'contexts'>

/** Serves a path of another door. */
export function mountWebRoute(fastify: FastifyInstance, route: WebRoute, { contexts }: WebDeps): void {
  const states = new WeakMap<FastifyRequest, unknown>()
  const webRequest = (request: FastifyRequest, reply: FastifyReply): WebRequest => ({
    method: request.method,
    url: request.url,
    headers: request.headers,
    id: request.id,
    address: request.ip,
    get signal() {
      return signalOf(contexts.get(reply))
    },
  })
  fastify.route({
    method: [...route.methods],
    url: route.path,
    bodyLimit: route.bodyBytesMax,
    exposeHeadRoute: false,
    onRequest: (request, reply, next) => {
      route.admit(webRequest(request, reply)).then((state) => {
        states.set(request, state)
        next()
      }, next)
    },
    async errorHandler(error, request, reply) {
      const fault = faultOf(error)
      // Admitted and not answered yet: it is about the body.
      if (!fault || !states.has(request)) throw error
      const state = states.get(request)
      states.delete(request)
      return sendResponse(await route.refuseBody(fault, state), reply)
    },
    async handler(request, reply) {
      const context = contexts.get(reply)
      const state = states.get(request)
      states.delete(request)
      const response = await route.answer(webRequest(request, reply), request.body, state)
      if (isStream(response)) {
        context.mode = 'stream'
        const ended = new Promise<void>((resolve) => reply.raw.once('close', resolve))
        // Not awaited: a closing server ends the stream instead of waiting for it.
        void contexts.interruptible(context, () => ended)
      }
      return sendResponse(response, reply)
    },
  })
}

const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

async function sendResponse(response: Response, reply: FastifyReply): Promise<FastifyReply> {
  reply.code(response.status)
  for (const [name, value] of response.headers) reply.header(name, value)
  if (!response.body) return reply.send()
  if (!isStream(response)) return reply.send(Buffer.from(await response.arrayBuffer()))
  // Proxies would hold events back.
  reply.header('x-accel-buffering', 'no')
  return reply.send(Readable.fromWeb(response.body as ReadableStream))
}
