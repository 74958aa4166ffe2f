/** The product with its doors on a database of its own, without upstreams; and a person with a browser. */
import { doorDepsOf, openAgentService, openDoors } from '#app.ts'
import { type Composed, compose, type Overrides } from '#compose/compose.ts'
import type { UpstreamUrls } from '#compose/upstream-urls.ts'
import type { Config } from '#config.ts'
import type { Clock } from '#kernel/clock.ts'
import { coreDeps, testOverrides } from '../harness/core.ts'
import { noUpstreams } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'

const unlimited = Object.fromEntries(
  ['RATE_AUTH', 'RATE_READ', 'RATE_MONEY', 'RATE_EXIT', 'RATE_STREAM', 'RATE_REFUSED'].map((name) => [
    name,
    '0',
  ]),
)

export type OAuthInstance = Awaited<ReturnType<typeof openOAuthInstance>>

type Settings = {
  databaseUrl: string
  env?: Record<string, string>
  /** Settings that the environment may not give. */
  config?: Partial<Config>
  overrides?: Overrides
  baseUrl?: string
  /** The name in its address, where passkeys need one. */
  hostname?: string
  /** None by default. */
  urls?: UpstreamUrls
}

/** One instance with its HTTP server. `baseUrl`: of another instance, whose issuer it shares. */
export async function openOAuthInstance({
  databaseUrl,
  env,
  config,
  overrides,
  baseUrl,
  hostname = '127.0.0.1',
  urls = noUpstreams,
}: Settings) {
  await using parts = new AsyncDisposableStack()
  const emails: string[] = []
  const time = { offsetMs: 0 }
  const clock: Clock = { now: () => new Date(Date.now() + time.offsetMs) }
  let base = baseUrl ?? ''
  const core = coreDeps({ databaseUrl, env: { ...unlimited, ...env }, ...(config && { config }) })
  const { agentAddress } = parts.use(
    openAgentService({ ...core, loadAnswererOf: () => composed.loadAnswererOf() }),
  )
  const composed: Composed = parts.use(
    await compose(
      {
        ...core,
        agentAddress,
        baseUrl: () => base,
        printLine: (line) => emails.push(line),
        urls,
      },
      { ...testOverrides, clock, ...overrides },
    ),
  )
  const { http } = parts.use(await openDoors(doorDepsOf(composed)))
  if (composed.mails.mailer) parts.use(composed.mails.mailer.start())
  composed.runtime.start()
  const address = await http.listen({ host: '127.0.0.1', port: 0 })
  base ||= address.replace('127.0.0.1', hostname)
  const owned = parts.move()
  return {
    composed,
    time,
    emails,
    /** Where this instance listens. */
    address,
    /** The issuer. */
    base,
    /** The code of the last message to this address. */
    codeFor(email: string): string {
      const start = `email  ${email}: `
      const codes = emails.flatMap((line) =>
        line.startsWith(start) ? (/\b\d{8}\b/.exec(line.slice(start.length)) ?? []) : [],
      )
      const code = codes.at(-1)
      if (!code) throw new Error(`no code for ${email}`)
      return code
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

export async function createOAuthApp(settings: Omit<Settings, 'databaseUrl'> = {}) {
  await using parts = new AsyncDisposableStack()
  const { url: databaseUrl, database } = parts.use(await ownDatabase())
  const main = parts.use(await openOAuthInstance({ databaseUrl, ...settings }))
  const owned = parts.move()
  return { ...main, database, databaseUrl, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
export type OAuthApp = Awaited<ReturnType<typeof createOAuthApp>>

export type Page = { status: number; url: string; html: string; headers: Headers }

/** As a browser sends them with the form. */
const hiddenFields = (form: string): Record<string, string> =>
  Object.fromEntries(
    [...form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  )

/**
 * Follows redirects and keeps cookies as a browser does, and stops where a client takes over.
 * `origin`: the public one of the instances; a redirect to it stays at the instance that gave it.
 */
export function createBrowser({ origin = '' }: { origin?: string } = {}) {
  const cookies = new Map<string, { value: string; path: string }>()
  const keep = (headers: Headers) => {
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
      const at = pair.indexOf('=')
      const path = attributes.find((each) => /^path=/i.test(each))?.slice(5) ?? '/'
      const expires = attributes.find((each) => /^expires=/i.test(each))?.slice(8)
      const name = pair.slice(0, at)
      const isGone = expires !== undefined && Date.parse(expires) < Date.now()
      if (isGone) cookies.delete(`${path} ${name}`)
      else cookies.set(`${path} ${name}`, { value: `${name}=${pair.slice(at + 1)}`, path })
    }
  }
  const cookiesFor = (url: URL) =>
    [...cookies.values()]
      .filter(
        ({ path }) =>
          url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`),
      )
      .map(({ value }) => value)
      .join('; ')
  const request = async (url: string, init: RequestInit = {}): Promise<Page> => {
    const target = new URL(url)
    const headers = new Headers(init.headers)
    const cookie = cookiesFor(target)
    if (cookie) headers.set('cookie', cookie)
    headers.set('accept', 'text/html')
    const reply = await fetch(target, { ...init, headers, redirect: 'manual' })
    keep(reply.headers)
    const location = reply.headers.get('location')
    if (reply.status >= 300 && reply.status < 400 && location) {
      const absolute = new URL(location, target)
      const next =
        absolute.origin === origin ? new URL(absolute.pathname + absolute.search, target) : absolute
      if (next.origin !== target.origin)
        return { status: reply.status, url: next.href, html: '', headers: reply.headers }
      return request(next.href)
    }
    return { status: reply.status, url: target.href, html: await reply.text(), headers: reply.headers }
  }
  return {
    cookies,
    open: (url: string, init?: RequestInit) => request(url, init),
    /** Submits the form of a page that leads to this step. */
    submit(
      page: Page,
      step: string,
      fields: Record<string, string> = {},
      headers: Record<string, string> = {},
    ) {
      const [, action, shown = ''] =
        new RegExp(`action="([^"]*/${step})"[^>]*>([\\s\\S]*?)</form>`).exec(page.html) ?? []
      if (!action)
        throw new Error(`no form for ${step} on ${page.url}: ${page.status} ${page.html.slice(-900)}`)
      const url = new URL(action, page.url)
      return request(url.href, {
        method: 'POST',
        body: new URLSearchParams({ ...hiddenFields(shown), ...fields }),
        headers: { origin: origin || url.origin, ...headers },
      })
    },
  }
}
export type Browser = ReturnType<typeof createBrowser>

export const password = 'correct horse battery'

/** Signs up on the page of a new interaction; the answer is the consent page. */
export async function signUp(
  app: Pick<OAuthInstance, 'codeFor'>,
  browser: Browser,
  page: Page,
  email: string,
): Promise<Page> {
  const form = await browser.open(`${page.url}?view=sign-up`)
  const sent = await browser.submit(form, 'sign-up', { email, password })
  return browser.submit(sent, 'code', { email, code: app.codeFor(email) })
}
