import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Guard, serveDocument } from './document-routes.ts'

/** The page that a browser gets at the root path. */
export type Landing = { html: () => string; headers: Record<string, string> }

/** The root path has a page for a browser, and gives a program its first links. */
export function serveRoot(
  fastify: FastifyInstance,
  guard: Guard,
  { baseUrl, landing }: { baseUrl: () => string; landing: Landing },
): void {
  const show = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (prefersHtml(request.headers.accept)) await reply.headers(landing.headers).send(landing.html())
  }
  const text = () => JSON.stringify(links(baseUrl()))
  serveDocument(fastify, { guards: [guard, varyOnAccept, show], path: '/', text })
}

async function varyOnAccept(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { vary } = reply.getHeaders()
  reply.header('vary', vary === undefined ? 'Accept' : `${vary}, Accept`)
}

const links = (base: string) => ({
  name: 'Portico',
  summary: 'A unified trading and research gateway for agents and people',
  docs: `${base}/docs`,
  openapi: `${base}/openapi.json`,
  capabilities: `${base}/capabilities`,
  health: `${base}/health`,
  error_catalog: `${base}/error-catalog.json`,
  llms: `${base}/llms.txt`,
  skill: `${base}/skill.md`,
  api_catalog: `${base}/.well-known/api-catalog`,
  first_call: {
    operation: 'auth_register',
    method: 'POST',
    path: '/v1/auth/register',
    body: { public_key: 'base64 of the 32 bytes of an Ed25519 public key' },
    next: 'Sign the challenge and send it with auth_verify, then obtain a token with auth_token',
  },
})

type MediaRange = { type: string; quality: number }

const rangesOf = (accept: string): MediaRange[] =>
  accept
    .slice(0, 1_024)
    .split(',')
    .map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
      return { type, quality: quality === undefined ? 1 : Number(quality) || 0 }
    })

/** Returns the weight of a media type by the most specific range of `Accept` that covers the type. */
function qualityOf(ranges: readonly MediaRange[], type: string): number {
  for (const wanted of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const found = ranges.find((range) => range.type === wanted)
    if (found) return found.quality
  }
  return 0
}

/** Returns whether `Accept` prefers HTML to JSON, as browsers do; a program accepts anything or names JSON. */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined) return false
  const ranges = rangesOf(accept)
  return qualityOf(ranges, 'text/html') > qualityOf(ranges, 'application/json')
}
