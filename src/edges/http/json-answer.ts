import type { FastifyReply, FastifyRequest } from 'fastify'
import { type CommonHeaders, type HeaderPairs, pushBudget } from './headers.ts'
import type { RequestContexts } from './request-context.ts'

type More = { status?: number; pairs?: HeaderPairs }
export type SendJson = (request: FastifyRequest, reply: FastifyReply, text: string, more?: More) => void

const jsonType = 'application/json; charset=utf-8'

/** All headers are written at once: to set them one by one costs more than routing the request. */
export const createJsonSender =
  (common: CommonHeaders, contexts: RequestContexts): SendJson =>
  (request, reply, text, { status = 200, pairs: own = [] } = {}) => {
    const pairs = common.pairs(request)
    pushBudget(pairs, contexts.get(reply).admitted?.budget)
    pairs.push(...own, 'content-type', jsonType, 'content-length', String(Buffer.byteLength(text)))
    if (contexts.isClosing()) pairs.push('connection', 'close')
    reply.hijack()
    reply.raw.writeHead(status, pairs)
    if (request.method === 'HEAD') reply.raw.end()
    else reply.raw.end(text)
  }
