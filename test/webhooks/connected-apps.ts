/** Two instances that sign people in and post webhooks, and people with apps that register some. */
import type { Composed } from '#compose/compose.ts'
import { query } from '#store/query.ts'
import { eventually, http } from '../harness/gateway.ts'
import {
  createBrowser,
  createOAuthApp,
  password as firstPassword,
  type OAuthInstance,
  openOAuthInstance,
} from '../oauth/oauth-app.ts'
import {
  authorizeUrl,
  connectingPerson,
  redirectUri,
  signUpUser,
  type Tokens,
  tokenRequest,
  verifier,
} from '../oauth/session.ts'

const overrides = { webhookPollMs: 100 }

export type Webhook = {
  webhook_id: string
  url: string
  secret: string
  client_id: string | null
  delivered_through: string
}
type LoggedEvent = { id: string; type: string; data: Record<string, unknown> }
export type Reply<Body> = { status: number; body: Body }
type Options = { at?: string; key?: string }
export type ConnectedApp = {
  clientId: string
  tokens: Tokens
  authorization: string
  ask<Body = Record<string, unknown>>(route: string, body?: object, options?: Options): Promise<Reply<Body>>
  register(url: string, options?: Options & { types?: string[] }): Promise<Webhook>
  webhooks(): Promise<Webhook[]>
  events(type: string): Promise<LoggedEvent[]>
}

/** Calls with the token of an app, or of a key pair. */
export function askerOf(
  base: string,
  authorization: string,
): Pick<ConnectedApp, 'ask' | 'register' | 'webhooks' | 'events'> {
  const ask = async <Body>(route: string, body?: object, { at = base, key }: Options = {}) => {
    const [method = '', path = ''] = route.split(' ')
    const headers = { authorization, ...(key && { 'idempotency-key': key }) }
    return http<Body>(at + path, { method, headers, ...(body && { body }) })
  }
  return {
    ask,
    async register(url, { types, ...options } = {}) {
      const made = await ask<Webhook>('POST /v1/webhooks', { url, ...(types && { types }) }, options)
      if (made.status !== 200) throw new Error(`no webhook: ${JSON.stringify(made.body)}`)
      return made.body
    },
    webhooks: async () => (await ask<{ webhooks: Webhook[] }>('GET /v1/webhooks')).body.webhooks,
    events: async (type) =>
      (await ask<{ events: LoggedEvent[] }>(`GET /v1/notifications?types=${type}`)).body.events,
  }
}

const start = (composed: Composed, parts: AsyncDisposableStack): void => {
  composed.runtime.start()
  parts.use(composed.features.webhooks.start((event) => event))
}

export async function createConnectedApps() {
  await using parts = new AsyncDisposableStack()
  const main = parts.use(await createOAuthApp({ overrides }))
  const { base, databaseUrl, database } = main
  const other: OAuthInstance = parts.use(await openOAuthInstance({ databaseUrl, baseUrl: base, overrides }))
  for (const { composed } of [main, other]) start(composed, parts)
  const owned = parts.move()
  const appOf = (clientId: string, tokens: Tokens): ConnectedApp => {
    const authorization = `Bearer ${tokens.access_token}`
    return { clientId, tokens, authorization, ...askerOf(base, authorization) }
  }
  return {
    main,
    /** Another instance on the same database. */
    other,
    rows: <Row extends object>(text: string, values: unknown[] = []) =>
      query<Row>(database.pool, text, values),
    /** A person with an account, and the apps that this person has connected. */
    async newPerson(names: readonly string[] = ['first']) {
      const person = connectingPerson(main)
      const apps: ConnectedApp[] = []
      for (const _ of names) {
        const { clientId, tokens } = await person.connect({ asks: 'manage', allows: ['manage'] })
        apps.push(appOf(clientId, tokens))
      }
      const { body } = await signUpUser(main, apps[0]!.authorization)
      return {
        ...person,
        userId: (body as { user_id: string }).user_id,
        apps: apps as [ConnectedApp, ConnectedApp],
      }
    },
    /** The same app in another browser, which gets a grant of its own. */
    async connectAgain(
      { email, password = firstPassword }: { email: string; password?: string },
      clientId: string,
    ): Promise<ConnectedApp> {
      const browser = createBrowser()
      const scope = 'openid email offline_access manage'
      const page = await browser.open(authorizeUrl(main, clientId, { scope }))
      const consent = await browser.submit(page, 'sign-in', { email, password })
      const done = await browser.submit(consent, 'allow', { manage: 'yes' })
      const tokens = await tokenRequest(main, {
        grant_type: 'authorization_code',
        client_id: clientId,
        code: new URL(done.url).searchParams.get('code') ?? '',
        redirect_uri: redirectUri,
        code_verifier: verifier,
      })
      return appOf(clientId, tokens)
    },
    /** Each lowers a limit further, and so is an event of the person. */
    happen: lowerings(),
    /** Keeps the locks of a statement until the call that it returns. */
    async hold(text: string, values: unknown[]): Promise<() => Promise<void>> {
      const holder = await database.pool.connect()
      let isHeld = true
      const release = async () => {
        if (!isHeld) return
        isHeld = false
        await holder.query('commit')
        holder.release(true)
      }
      owned.defer(release)
      await holder.query('begin')
      await holder.query(text, values)
      return release
    },
    /** Until as many statements wait for locks. */
    untilBlocked: (count: number) =>
      eventually(async () => {
        const { rows } = await database.pool.query(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
        return rows.length >= count ? true : undefined
      }, `${count} statements wait for locks`),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
export type ConnectedApps = Awaited<ReturnType<typeof createConnectedApps>>

function lowerings() {
  let usd = 900
  return async ({ ask }: Pick<ConnectedApp, 'ask'>, at?: string): Promise<void> => {
    const { status, body } = await ask(
      'PUT /v1/policy',
      { per_day_usd: String(--usd) },
      at === undefined ? {} : { at },
    )
    if (status !== 200) throw new Error(JSON.stringify(body))
  }
}
