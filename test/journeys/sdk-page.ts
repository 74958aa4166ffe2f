/** The script of a page that uses the package in a browser. A test calls its functions; the answers are JSON. */
import {
  AuthenticationError,
  beginSignIn,
  ConflictError,
  ConnectionError,
  completeSignIn,
  createKeyPair,
  NotFoundError,
  type OAuthTokens,
  oauthSession,
  type PendingSignIn,
  type Portico,
  PorticoError,
  portico,
  registerAgent,
  signOut,
  ValidationError,
  webTokenStore,
} from 'portico-sdk'

type PageStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>
declare const location: { href: string; origin: string; pathname: string; assign(url: string): void }
declare const sessionStorage: PageStorage
type Fetch = typeof globalThis.fetch

const classes = { AuthenticationError, ConflictError, ConnectionError, NotFoundError, ValidationError }

export type Failed = { class: string; status: number; code: string; fields: string[]; request_id: boolean }
/** How a call failed; undefined where it did not. */
const failureOf = (call: Promise<unknown>): Promise<Failed | undefined> =>
  call.then(
    () => undefined,
    (error: unknown) => {
      if (!(error instanceof PorticoError)) throw error
      const named = Object.entries(classes).find(([, each]) => error instanceof each)
      return {
        class: named?.[0] ?? 'none',
        status: error.status,
        code: error.code,
        fields: error.errors.map(({ loc }) => loc.join('.')),
        request_id: error.request_id !== undefined,
      }
    },
  )

let client: Portico
const seen: { ids: string[]; end?: string } = { ids: [] }
const leaving = new AbortController()

const byKeyPair = {
  async register(baseUrl: string) {
    const keyPair = await createKeyPair()
    const agent = await registerAgent({ baseUrl, keyPair, agentName: 'page' })
    const again = await registerAgent({ baseUrl, keyPair })
    client = portico({ baseUrl, auth: agent })
    const { data, request_id } = await client.user.show().withResponse()
    return { agent, again, shown: data.agent_id, hasRequestId: request_id !== null }
  },

  /** The first task is the grant of the faucet. */
  async firstFunds() {
    for (;;) {
      const [grant] = (await client.tasks.list()).items
      if (grant) return (await client.tasks.waitFor(grant.task_id)).outcome
    }
  },

  async deposit(amount_usdc: string, idempotencyKey: string) {
    const { data, replayed, idempotency_key } = await client.earn
      .deposit({ amount_usdc }, { idempotencyKey })
      .withResponse()
    const states: string[] = []
    const task = await client.tasks.waitFor(data.task_id, { onUpdate: ({ status }) => states.push(status) })
    const { task_id, status, outcome } = task
    return { task_id, status, outcome, replayed, idempotency_key, last: states.at(-1) }
  },

  /** The gateway executes the first attempt, and its answer is lost. */
  async depositWithLostAnswer(agent: { agentId: string; secretKey: string }, baseUrl: string) {
    const tries: (string | null)[] = []
    const fetch: Fetch = async (url, init) => {
      const reply = await globalThis.fetch(url, init)
      if (!String(url).includes('/v1/earn/deposit')) return reply
      tries.push(new Headers(init?.headers).get('x-retry-count'))
      if (tries.length === 1) throw new TypeError('Failed to fetch')
      return reply
    }
    const losing = portico({ baseUrl, auth: agent, fetch })
    const { data, replayed } = await losing.earn.deposit({ amount_usdc: '2', wait: true }).withResponse()
    return { status: data.status, outcome: data.outcome, replayed, tries }
  },

  async positions() {
    const amounts: (string | null)[] = []
    for await (const { amount_deposited_usdc } of client.earn.positions({ limit: 1 }))
      amounts.push(amount_deposited_usdc)
    return amounts.sort()
  },

  async failures() {
    return [
      await failureOf(client.earn.deposit({ amount_usdc: '0' })),
      await failureOf(client.earn.deposit({ amount_usdc: '20000' })),
      await failureOf(client.tasks.get({ task_id: 'none' })),
    ]
  },

  /** Of a page whose origin the gateway does not allow, or of a token that is none. */
  failureOfShow: (baseUrl: string, token: string) =>
    failureOf(portico({ baseUrl, auth: { token }, maxRetries: 0 }).user.show()),

  follow() {
    const read = async () => {
      const options = { signal: leaving.signal }
      for await (const { data } of client.notifications.stream({ after: '0' }, options))
        seen.ids.push(data.id)
    }
    read().then(
      () => {
        seen.end = 'ended'
      },
      (error: Error) => {
        seen.end = `${error.name}: ${error.message}`
      },
    )
  },
  seen: () => seen,
  leave: () => leaving.abort(new Error('left')),
}

const store = () => webTokenStore()
const signedIn = (baseUrl: string) => portico({ baseUrl, auth: oauthSession(store()) })

const byPerson = {
  async beginSignIn(baseUrl: string, scope: string) {
    const { url, pending } = await beginSignIn({
      baseUrl,
      redirectUri: `${location.origin}/callback`,
      clientName: 'Page',
      scope,
    })
    sessionStorage.setItem('pending', JSON.stringify(pending))
    return url
  },
  async completeSignIn(baseUrl: string) {
    const pending: PendingSignIn = JSON.parse(sessionStorage.getItem('pending')!)
    await store().write(await completeSignIn(pending, location.href))
    client = signedIn(baseUrl)
    const { agent_id } = await client.auth.signup()
    return agent_id
  },
  showMe: async (baseUrl: string) => (await signedIn(baseUrl).user.show()).agent_id,
  tokens: () => store().read(),
  /** As if their time were over. */
  async endTokens() {
    const tokens: OAuthTokens | undefined = await store().read()
    if (tokens) await store().write({ ...tokens, endsAtMs: 0 })
  },
  /** Tokens that were written back after their sign-in had ended. */
  async writeTokens(tokens: OAuthTokens) {
    await store().write(tokens)
  },
  signOut: () => signOut(store()),
  failureOfSession: (baseUrl: string) => failureOf(signedIn(baseUrl).user.show()),
}

const app = { ...byKeyPair, ...byPerson }
export type SdkPage = typeof app
Object.assign(globalThis, { app })
