import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { Fault } from '#kernel/contract/fault.ts'

const formBytesMax = 8 * 1_024

/** Mounts routes without a body parser, because the provider reads its bodies itself. */
export const withoutParsers =
  (mount: (scope: FastifyInstance) => void) =>
  (fastify: FastifyInstance): void => {
    fastify.register(async (scope) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
      mount(scope)
    })
  }

export type Form = Record<string, string>

export async function readForm(request: IncomingMessage): Promise<Form> {
  if (!/^application\/x-www-form-urlencoded(?:;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new Fault('unsupported_media_type', 'A form is sent as application/x-www-form-urlencoded.')
  return Object.fromEntries(new URLSearchParams(await readText(request, formBytesMax)))
}

export async function readText(request: IncomingMessage, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Fault('body_too_large', 'The body is too large.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
