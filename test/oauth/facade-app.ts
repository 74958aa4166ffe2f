/** A gateway whose people sign in at an external identity provider. */
import type { Overrides } from '#compose/compose.ts'
import { type Account, type IdentityProvider, startIdentityProvider } from '#world/identity/identity.ts'
import { type Browser, createBrowser, createOAuthApp, type Page } from './oauth-app.ts'

export const client = { client_id: 'portico', client_secret: 'a secret of forty characters, for the test' }

export async function createFacadeApp(overrides?: Overrides) {
  await using parts = new AsyncDisposableStack()
  const identity = parts.use(await startIdentityProvider())
  const app = parts.use(await openFacade(identity, overrides))
  const owned = parts.move()
  return { ...app, identity, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
export type FacadeApp = Awaited<ReturnType<typeof createFacadeApp>>

async function openFacade(identity: IdentityProvider, overrides?: Overrides) {
  const env = {
    AUTH_MODE: 'facade',
    IDENTITY_ISSUER: identity.issuer,
    IDENTITY_CLIENT_ID: client.client_id,
    IDENTITY_CLIENT_SECRET: client.client_secret,
  }
  const app = await createOAuthApp({ env, ...(overrides && { overrides }) })
  identity.addClient({ ...client, redirect_uris: [`${app.base}/oauth/callback`] })
  return app
}

/** A person with one browser, whose jar of cookies at the gateway is another than that at the provider. */
export function federatedPerson(app: Pick<FacadeApp, 'identity'>, subject: string, account?: Account) {
  app.identity.accounts.set(subject, account ?? { email: `${subject}@example.com`, email_verified: true })
  const gateway: Browser = createBrowser()
  const provider: Browser = createBrowser()
  const addressIn = ({ html }: Page): string =>
    /http-equiv="refresh" content="0;url=([^"]*)"/.exec(html)?.[1]?.replaceAll('&amp;', '&') ?? ''

  /** Leaves the sign-in page; the answer is where the provider sends the browser back to. */
  const leave = async (page: Page, choice: Record<string, string> = { subject }): Promise<string> => {
    const departure = await gateway.submit(page, 'continue')
    const opened = await provider.open(addressIn(departure))
    if (!opened.url.startsWith(app.identity.issuer)) return opened.url
    const form = /action="([^"]*)"/.exec(opened.html)?.[1]
    if (!form) throw new Error(`no sign-in at ${opened.url}: ${opened.status} ${opened.html}`)
    const url = new URL(form, opened.url)
    return (await provider.open(url.href, { method: 'POST', body: new URLSearchParams(choice) })).url
  }
  return {
    gateway,
    provider,
    addressIn,
    leave,
    /** Signs in on this page; the answer is what the gateway shows next. */
    signIn: async (page: Page): Promise<Page> => gateway.open(await leave(page)),
  }
}
