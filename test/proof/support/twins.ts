/** Two users in the same state, on one gateway: one is served over HTTP, the other by another door. */
import { doorDepsOf, openDoors } from '#app.ts'
import type { Invocation } from '#invoke/invocation.ts'
import { defaultLimits, type Limits } from '#invoke/rate-limits.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { testDatabase } from '../../harness/cluster.ts'
import { eventually, http } from '../../harness/gateway.ts'
import { type Door, type DoorReply, loopback } from '../../harness/in-process-door.ts'
import { openInstance } from '../../harness/instance.ts'
import { processWorld } from '../../harness/process-world.ts'
import { venueControl } from '../../harness/venue-gateway.ts'
import { predictionVenue } from '../../journeys/predmkt-calls.ts'
import type { Scheme, SchemeUser } from './door-schemes.ts'
import { httpDoor } from './http-door.ts'
import { type IdentityRecords, openIdentityRecords } from './identity-records.ts'

type Json = Record<string, unknown>
export type Twin = {
  door: Door
  user: SchemeUser
  userId: string
  /** What later requests refer to. */
  known: Json
}
export type Authorization = (twin: Twin) => string | undefined | Promise<string | undefined>
export type Question = {
  name: string
  input?: Json | ((known: Json) => Json)
  key?: string
  authorization?: Authorization
  itemsMax?: number
}
export type Replies = [http: DoorReply, other: DoorReply]
export type Twins = {
  operations: readonly Operation[]
  invocation: Invocation
  rows: IdentityRecords
  twins: readonly [Twin, Twin]
  /** The same request through both doors. */
  ask(question: Question): Promise<Replies>
  /** How many requests were compared. */
  count(): number
} & AsyncDisposable

const ownToken: Authorization = async ({ user }) => `Bearer ${await user.token()}`

export type CreateDoor = (of: {
  operations: readonly Operation[]
  invocation: Invocation
  url: string
}) => Door

/** `points`: of each rate limit. */
export async function openTwins(points: number, createDoor: CreateDoor, scheme: Scheme): Promise<Twins> {
  await using parts = new AsyncDisposableStack()
  const home = parts.use(await testDatabase())
  const { control, ...urls } = await processWorld()
  parts.use(await stillWorld(control))
  const env = {
    HYPERLIQUID_WEIGHT_PER_MINUTE: '0',
    // A sign-in is fresh for as long as the comparison takes, and what waits becomes effective in it.
    FRESH_SIGN_IN_SECONDS: '3600',
    COOLING_SECONDS: '10',
  }
  let url = ''
  const lines: string[] = []
  const instance = parts.use(
    await openInstance({
      databaseUrl: home.url,
      urls: { ...urls, coinbase: urls.prices, relay: urls.solver },
      env,
      baseUrl: () => url,
      printLine: (line) => lines.push(line),
    }),
  )
  // The other doors have no key of a backend.
  const operations = instance.features.operations.filter(({ entry }) => entry.access !== 'backend')
  const { invocation, http } = parts.use(
    await openDoors({
      ...doorDepsOf(instance),
      baseUrl: () => url,
      limits: limitsOf(points),
      load: { delayMsMax: 60_000 },
    }),
  )
  url = await http.listen({ host: loopback, port: 0 })
  instance.runtime.start()
  const rows = parts.use(await openIdentityRecords(home.url))
  const enrol = scheme.open({ url, rows, lines })
  const twins = [
    await createTwin(await enrol(), rows, httpDoor(operations, url)),
    await createTwin(await enrol(), rows, createDoor({ operations, invocation, url })),
  ] as const
  let count = 0
  const owned = parts.move()
  return {
    operations,
    invocation,
    rows,
    twins,
    ask({ name, input = {}, key, authorization = ownToken, itemsMax = 1 }) {
      count++
      const [http, other] = twins.map(async (twin) =>
        twin.door(name, typeof input === 'function' ? input(twin.known) : input, {
          authorization: await authorization(twin),
          itemsMax,
          ...(key !== undefined && { key }),
        }),
      )
      return Promise.all([http!, other!])
    },
    count: () => count,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Prices and yields stand still: a second later they are the same. */
async function stillWorld(control: string): Promise<AsyncDisposable> {
  const venue = venueControl(control)
  const predictions = predictionVenue(control)
  const setVault = async (change: object) => {
    const { status, body } = await http(`${control}/vault`, { method: 'POST', body: change })
    if (status !== 200) throw new Error(JSON.stringify(body))
  }
  const before = (await http<{ drip_bps_per_year: number }>(`${control}/vault`)).body
  await setVault({ drip_bps_per_year: 0 })
  await venue('POST', '/settings', { walking: false })
  const markets = await predictions<{ slug: string; fair: string }[]>('GET', '/markets')
  const setPrices = async (pin: boolean) => {
    for (const { slug, fair } of markets)
      await predictions('POST', '/price', { market: slug, price: Number(fair), pin })
  }
  await setPrices(true)
  return {
    async [Symbol.asyncDispose]() {
      await setVault({ drip_bps_per_year: before.drip_bps_per_year })
      await venue('POST', '/settings', { walking: true })
      await setPrices(false)
    },
  }
}

/** In windows that no test outlasts. */
const limitsOf = (points: number): Limits => ({
  ...defaultLimits,
  ...Object.fromEntries(Object.keys(defaultLimits).map((name) => [name, { points, windowSeconds: 3_600 }])),
})

async function createTwin(user: SchemeUser, rows: IdentityRecords, door: Door): Promise<Twin> {
  const found = await rows.db.query<{ id: string }>('select id from app_user where agent_id = $1', [
    user.agentId,
  ])
  const userId = found.rows[0]!.id
  const live = `select 1 from task where user_id = $1 and status in ('pending', 'running')`
  // Until the faucet's grant is there the balance covers nothing.
  await eventually(
    async () => ((await rows.db.query(live, [userId])).rowCount === 0 ? true : undefined),
    'the faucet grant',
    60_000,
  )
  return { door, user, userId, known: {} }
}
