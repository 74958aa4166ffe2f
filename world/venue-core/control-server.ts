import { createServer, type IncomingMessage, type Server } from 'node:http'
import { isForeignOrigin } from '#world/origin-check.ts'
import type { InjectedFailure, InjectedFailures } from './injected-failures.ts'
import { RequestError } from './request-error.ts'

export type ControlBody = Record<string, unknown>
export type ControlRoute<Deps> = (deps: Deps, body: ControlBody, query: URLSearchParams) => unknown
export type ControlRoutes<Deps> = Readonly<Record<string, ControlRoute<Deps>>>

type Common = {
  engine: { venue: { state: { nowMs: number } }; submit: (command: { kind: 'tick' }) => unknown }
  faults: InjectedFailures
  stream: { drop: () => number }
}

export const controlNumber = (value: unknown, name: string): number => {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new RequestError(`${name} must be a number`)
}

/** What the control port of each venue has. */
export const commonControls: ControlRoutes<Common> = {
  'POST /tick': ({ engine }) => {
    engine.submit({ kind: 'tick' })
    return { nowMs: engine.venue.state.nowMs }
  },
  'GET /usage': () => ({ ...process.cpuUsage(), residentBytes: process.memoryUsage.rss() }),
  'GET /faults': ({ faults }) => faults.list(),
  'POST /faults': ({ faults }, { seed, ...fault }) => ({
    id: faults.add(fault as InjectedFailure, typeof seed === 'number' ? seed : 1),
  }),
  'DELETE /faults': ({ faults }, { id }) => {
    faults.remove(typeof id === 'number' ? id : undefined)
    return {}
  },
  'POST /ws/drop': ({ stream }) => ({ dropped: stream.drop() }),
}

const readJson = async (request: IncomingMessage): Promise<ControlBody> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const text = Buffer.concat(parts).toString('utf8')
  return text === '' ? {} : JSON.parse(text)
}

type Options<Deps> = {
  routes: ControlRoutes<Deps>
  deps: Deps & { engine: { afterPersist: (run: () => void) => void } }
  stringify?: (value: unknown) => string
}

/** Bound to loopback, and never on the venue's own port. */
export const serveControl = <Deps>({ routes, deps, stringify = JSON.stringify }: Options<Deps>): Server => {
  const run = async (request: IncomingMessage): Promise<{ status: number; reply: unknown }> => {
    const url = new URL(request.url ?? '/', 'http://control')
    const route = routes[`${request.method} ${url.pathname}`]
    if (!route) return { status: 404, reply: { error: 'No such control' } }
    try {
      return { status: 200, reply: (await route(deps, await readJson(request), url.searchParams)) ?? {} }
    } catch (error) {
      if (error instanceof RequestError || error instanceof SyntaxError)
        return { status: 400, reply: { error: error.message } }
      throw error
    }
  }
  return createServer((request, response) => {
    if (isForeignOrigin(request)) return void response.writeHead(403).end()
    run(request)
      .then(({ status, reply }) =>
        deps.engine.afterPersist(() => {
          response.writeHead(status, { 'content-type': 'application/json' }).end(stringify(reply))
        }),
      )
      .catch((error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
        response.writeHead(500).end()
      })
  })
}
