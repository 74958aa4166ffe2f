/** A gateway with the image service of the local world, and a backend that calls it. */
import assert from 'node:assert/strict'
import pg from 'pg'
import { operatorOf } from '../harness/admin.ts'
import { leaveCredits } from '../harness/backend.ts'
import { type Agent, type Answer, bearer, freshGateway, http, newAgent } from '../harness/gateway.ts'

export type Picture = { url: string; width: number; height: number; content_type: string }
export type ImageBody = {
  images: Picture[]
  timings: { inference: number }
  seed: number
  has_nsfw_concepts: boolean[]
  prompt: string
  credits_available: number
  /** Of an error. */
  code: string
  detail: unknown
}
export type Account = { agent: Agent; userId: string; credits(): Promise<number> }
export type AskOptions = {
  key?: string | undefined
  backendKey?: string | undefined
  path?: string
  url?: string
}

export async function createImageApp(env: Record<string, string> = {}) {
  await using parts = new AsyncDisposableStack()
  const gateway = parts.use(await freshGateway({ RATE_IMAGE: '0', ...env }))
  const admin = new pg.Pool({ connectionString: gateway.databaseUrl, max: 2 })
  parts.defer(() => admin.end())
  const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, ENVIRONMENT: 'local' })
  const keyOf = (rows: { key: string }[]): string => rows[0]!.key
  const createKey = async (name: string, ...more: string[]): Promise<string> =>
    keyOf(await operator.rows<{ key: string }>('backend-keys', 'create', name, ...more, '--why', 'a test'))
  const backendKey = await createKey('studio')
  const world = async (method: string, path: string, body?: unknown) => {
    const reply = await http(gateway.world + path, { method, ...(body !== undefined && { body }) })
    assert.equal(reply.status, 200, `${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const owned = parts.move()
  return {
    gateway,
    admin,
    operator,
    backendKey,
    createKey,
    world,
    ask: (
      body: object,
      { key, backendKey: given = backendKey, path = '/chat/image/', url = gateway.url }: AskOptions = {},
    ) =>
      http<ImageBody>(url + path, {
        method: 'POST',
        body,
        headers: { 'x-backend-key': given, ...(key !== undefined && { 'idempotency-key': key }) },
      }),
    async account(): Promise<Account> {
      const agent = await newAgent(gateway.url)
      const { body } = await http<{ user_id: string }>(`${gateway.url}/v1/user`, { headers: bearer(agent) })
      return { agent, userId: body.user_id, credits: () => creditsOf(gateway.url, agent) }
    },
    leave: (userId: string, credits: number) => leaveCredits(admin, userId, credits),
    async requests(): Promise<{ body: Record<string, unknown> }[]> {
      const { requests } = (await world('GET', '/images/requests')) as {
        requests: { body: Record<string, unknown> }[]
      }
      return requests
    },
    /** Requests that the set failure of the service has met. */
    async refused(): Promise<number | undefined> {
      const { faults } = (await world('GET', '/faults')) as { faults: { target: string; hits: number }[] }
      return faults.find(({ target }) => target === 'images')?.hits
    },
    async reset(): Promise<void> {
      await world('DELETE', '/images/settings')
      await world('DELETE', '/images/requests')
      await world('DELETE', '/faults?target=images')
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
export type ImageApp = Awaited<ReturnType<typeof createImageApp>>

export async function creditsOf(url: string, agent: Agent): Promise<number> {
  const { body } = await http<{ credits_available: number }>(`${url}/v1/credits`, { headers: bearer(agent) })
  return body.credits_available
}

export async function bytesOf(picture: Picture): Promise<Buffer> {
  const reply = await fetch(picture.url)
  assert.equal(reply.status, 200, await (reply.status === 200 ? '' : reply.text()))
  assert.equal(reply.headers.get('content-type'), picture.content_type)
  return Buffer.from(await reply.arrayBuffer())
}

/** Fails where the call did not make images. */
export function made({ status, body }: Answer<ImageBody>): ImageBody {
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
