import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WebRequest, WebRoute } from '#invoke/web-route.ts'
import { type ByteStream, openByteStream } from './byte-stream.ts'
import { addHeaders } from './headers.ts'
import type { HttpDeps } from './operation-route.ts'
import { faultOf } from './problem.ts'
import { signalOf } from './request-context.ts'

type WebDeps = Pick<HttpDeps, 'contexts' | 'common' | 'sse'>

export function mountWebRoute(fastify: FastifyInstance, route: WebRoute, deps: WebDeps): void {
  const { contexts } = deps
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
  const mount = (scope: FastifyInstance) =>
    scope.route({
      method: [...route.methods],
      url: route.path,
      bodyLimit: route.bodyBytesMax,
      exposeHeadRoute: false,
      onRequest: (request, reply, next) => {
        route.admit(webRequest(request, reply)).then((state) => {
          states.set(request, state)
          limitBody(request, route.bodyMsMax)
          next()
        }, next)
      },
      async errorHandler(error, request, reply) {
        const fault = faultOf(error)
        // The request was admitted and is not answered yet, so the error is about the body.
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
        if (!isStream(response)) return sendResponse(response, reply)
        context.mode = 'stream'
        for (const [name, value] of response.headers) reply.header(name, value)
        addHeaders(reply, deps.common.pairs(request))
        const stream = openByteStream(reply.code(response.status), deps.sse)
        // The request counts as interruptible until its stream ends: a closing server then ends the stream and does not
        // wait for it.
        void contexts.interruptible(context, () => stream.ended)
        await pump(response, stream)
        return reply
      },
    })
  if (!route.isRaw) return void mount(fastify)
  // The parser of bytes holds for this route alone.
  fastify.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, async (_: FastifyRequest, bytes: Buffer) => bytes)
    mount(scope)
  })
}

function limitBody({ raw }: FastifyRequest, msMax: number | undefined): void {
  if (msMax === undefined) return
  const timer = setTimeout(() => raw.socket.destroy(), msMax)
  timer.unref()
  for (const event of ['end', 'close']) raw.once(event, () => clearTimeout(timer))
}

const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

async function sendResponse(response: Response, reply: FastifyReply): Promise<FastifyReply> {
  reply.code(response.status)
  for (const [name, value] of response.headers) reply.header(name, value)
  return response.body ? reply.send(Buffer.from(await response.arrayBuffer())) : reply.send()
}

/** Copies the body of a response to a stream, and reads the body only as fast as the client reads the stream. */
async function pump({ body }: Response, stream: ByteStream): Promise<void> {
  const reader = body!.getReader()
  // When the client leaves, the rest of the response is cancelled.
  void stream.ended.then(() => reader.cancel()).catch(() => undefined)
  try {
    let found = await reader.read()
    while (!found.done && (await stream.write(found.value))) found = await reader.read()
  } finally {
    stream.finish()
  }
}
