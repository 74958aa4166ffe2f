import { injectFailure, readBody } from '#world/fault-injection.ts'
import type { FailureInjector } from '#world/injected-failures.ts'
import { type ListeningServer, listen } from '#world/listen.ts'
import { type Fields, HttpError, numberField, type Route, rejectUnknownFields } from '#world/router.ts'

/** A payment provider that sells subscriptions, with the protocol of Stripe and pages for the payer. */

type Listen = { preferredPort: number; injector: FailureInjector }
type Options = { dir: string; nowMs: () => number }
type Service = Awaited<ReturnType<typeof openService>>

const tickMs = 100
const errorsMax = 1_000

/** Calls that fail with a 500: before they act, or afterwards, when only their answer is lost. */
type ErrorDial = { count: number; acts: boolean }

async function openService({ dir, nowMs }: Options, errors: ErrorDial, hostUrl: () => string) {
  const [
    { createApi },
    { createShop },
    { createEvents },
    { createPages },
    { openStore },
    { tick },
    catalogue,
  ] = await Promise.all([
    import('./api.ts'),
    import('./shop.ts'),
    import('./events.ts'),
    import('./pages.ts'),
    import('./store.ts'),
    import('./renewals.ts'),
    import('./catalogue.ts'),
  ])
  const store = await openStore(dir)
  for (const each of [...catalogue.products, ...catalogue.prices])
    if (!store.find(each.object, each.id)) store.add(each)
  const events = createEvents({ store, nowMs })
  const shop = createShop({ store, nowMs, emit: events.emit, hostUrl })
  const nextError = () => {
    if (errors.count === 0) return undefined
    errors.count -= 1
    return errors.acts ? ('after' as const) : ('before' as const)
  }
  const timer = setInterval(() => {
    tick(shop)
    events.tick()
  }, tickMs)
  timer.unref()
  return {
    store,
    events,
    api: createApi({ shop, events, nowMs, nextError }),
    pages: createPages({ shop, nowMs }),
    async close() {
      clearInterval(timer)
      await store.close()
    },
  }
}

export const localPaymentServer = (options: Options) => {
  const errors: ErrorDial = { count: 0, acts: false }
  let port = 0
  let service: Promise<Service> | undefined
  const hostUrl = () => `http://127.0.0.1:${port}`
  const open = () => {
    service ??= openService(options, errors, hostUrl)
    return service
  }
  const start = async ({ preferredPort, injector }: Listen): Promise<ListeningServer> => {
    const server = await listen(
      (incoming, answer) => {
        const handle = async () => {
          const body = (await readBody(incoming)).toString()
          const { pathname: path, search } = new URL(incoming.url ?? '/', 'http://world')
          const method = incoming.method ?? 'GET'
          const injection = await injectFailure(injector.next([`${method} ${path}`]), incoming, answer)
          if (injection.type === 'answered') return
          const { api, pages } = await open()
          if (!path.startsWith('/v1/')) {
            if (pages({ method, path, form: new URLSearchParams(body), answer })) return
            return void answer.writeHead(404, { 'content-type': 'text/plain' }).end('There is nothing here.')
          }
          const key = incoming.headers['idempotency-key']
          const version = incoming.headers['stripe-version']
          const reply = api({
            method,
            path,
            query: search.slice(1),
            body,
            key: typeof key === 'string' ? key : undefined,
            authorization: incoming.headers.authorization,
            version: typeof version === 'string' ? version : undefined,
            hostUrl: hostUrl(),
          })
          if (injection.dropReply) return void incoming.socket.destroy()
          answer.writeHead(reply.status, reply.headers).end(reply.body)
        }
        handle().catch(() => incoming.socket.destroy())
      },
      { preferredPort },
    )
    port = server.port
    // What an earlier run has sold renews without a request.
    setTimeout(() => void open().catch(() => {}), tickMs).unref()
    return {
      port,
      async close() {
        await server.close()
        await (await service?.catch(() => undefined))?.close()
      },
    }
  }
  return { start, routes: controlRoutes(errors, open) }
}

function controlRoutes(errors: ErrorDial, open: () => Promise<Service>): Route[] {
  const toEvents =
    (method: string): Route['run'] =>
    async (request, parts) => {
      const { events } = await open()
      return events.routes.find((route) => route.method === method)?.run(request, parts)
    }
  const setErrors = (fields: Fields) => {
    rejectUnknownFields(fields, ['count', 'acts'])
    errors.count = Math.trunc(numberField(fields, 'count', 0, errorsMax))
    if (fields.acts !== undefined && typeof fields.acts !== 'boolean')
      throw new HttpError(400, 'acts must be true or false.')
    errors.acts = fields.acts === true
    return { ...errors }
  }
  return [
    ...['GET', 'PUT', 'DELETE'].map((method) => ({
      method,
      path: /^\/stripe\/events$/,
      run: toEvents(method),
    })),
    { method: 'GET', path: /^\/stripe\/errors$/, run: () => ({ ...errors }) },
    { method: 'PUT', path: /^\/stripe\/errors$/, run: ({ fields }) => setErrors(fields) },
  ]
}
