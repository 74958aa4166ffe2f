/** Tasks at the prediction market, each of which loses its gateway at a given point. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { oncePerProcess } from '../harness/once-per-process.ts'
import {
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  predictionVenue,
  setUp,
  statusOf,
  type VenueRecord,
} from '../journeys/predmkt-calls.ts'
import { type Person, personOf } from '../journeys/users.ts'
import { polygon, worldOf } from '../journeys/world.ts'
import { bySize, isShort, proofSeed } from '../proof/support/seed.ts'
import { createCrashApp } from './crash-app.ts'
import { killAtSample } from './failpoints.ts'
import { randomOf } from './venue-traders.ts'

export type PredmktPoints = Awaited<ReturnType<typeof createPredmktPoints>>
export type Attempt = {
  at: string
  /** The gateway that dies. */
  victim: Gateway
  /** Begins the points. */
  arm: () => void
  /** The user; where the victim is alone, at the victim. */
  person: Person
}
export type Case = {
  title: string
  shortPoint: string
  needed: readonly RegExp[]
  /** For slow cases: the maximum number of kill points, except in the nightly run. */
  pointsMax?: number
  /**
   * No other gateway runs until the victim is dead, because what is tried is no request: any gateway may do it, as what
   * follows from a price.
   */
  isAlone?: boolean
  /** Does the work at the gateway, and what it left at another one; then checks that it had one effect. */
  run(points: PredmktPoints, attempt: Attempt): Promise<unknown>
}

const pointPattern =
  /^(db:(task_accept|task_step|task_reserve|user_event_append|policy_lock|update nonce_sequence|select task|commit|select effect|select tx_attempt|insert prediction_\w+|update prediction_\w+|select prediction_\w+)|net:(polymarket|polygon|relay|lifi|base))/
const passesOf = (name: string) => (/task_step|net:/.test(name) ? 3 : 1)
const pointsMax = bySize({ short: 1, full: 6, nightly: Number.POSITIVE_INFINITY })
const env = {
  FAUCET_URL: 'off',
  LEASE_MS: '500',
  POLICY_DAY_USD_MAX: '10000000',
  SPONSOR_USER_DAY: '5',
  // The points of a whole file take longer than the usual life of a token.
  TOKEN_TTL_SECONDS: '3600',
}
export const price = 0.4
/** A market of each protocol, whose prices stay where they are put. */
const slugs = ['ben-summer-wins-the-mayoral-race', 'beta-is-the-largest-company']

export const afterStep = [/^db:task_step:before/, /^net:polymarket:after/]

async function createPredmktPoints() {
  const app = await createCrashApp({
    ownWorld: 'the markets of this one are resolved, and its prices are set',
  })
  const launched = new Set<Gateway>()
  const launch = async (more: Record<string, string>) => {
    const gateway = await app.gateway({ ...env, ...more })
    launched.add(gateway)
    return gateway
  }
  let survivor: Gateway | undefined = await launch({})
  const { url } = survivor
  const { port } = new URL(url)
  /** The other gateway, always at the same address. */
  const revive = async (): Promise<void> => {
    survivor ??= await launch({ PORT: port })
  }
  const leaveAlone = async (): Promise<void> => {
    await survivor?.kill()
    survivor = undefined
  }
  const world = await worldOf(app.control)
  const venue = predictionVenue(app.control)
  const newPerson = async (): Promise<Person> => personOf(url, await newAgent(url))
  const newTrader = async (usd: string): Promise<Person> => {
    const trader = await newPerson()
    await setUp(trader)
    await world.fund(polygon, trader.evm, 'USDC', usd)
    await executed(trader, '/predmkt/fund-safe', { amount_usd: usd })
    return trader
  }
  const person = await newTrader('900')
  await world.fund(polygon, person.evm, 'USDC', '5000')
  const { safe_address: wallet } = await statusOf(person)
  const marketAt = async (slug: string): Promise<Market> => {
    await venue('POST', '/price', { market: slug, price })
    return marketBy(person, slug)
  }
  const markets = await Promise.all(slugs.map(marketAt))
  let runs = 0

  const points = {
    app,
    world,
    venue,
    person,
    wallet,
    revive,
    newPerson,
    newTrader,
    marketAt,
    /** The first one is of the first protocol, which every client trades. */
    markets,
    /** One market after the other. */
    nextMarket: (): Market => markets[runs++ % markets.length]!,
    nextKey: (at: string): string => `${runs++}-${at.replaceAll(' ', '-')}`,

    /** Units of dollars and shares that the chain shows: of the funded wallet, and of the user's own account. */
    async held(outcomeId = '', of = wallet, owner = person.evm) {
      const { pusd, shares } = await venue<{ pusd: string; shares: Record<string, string> }>(
        'GET',
        `/balances?wallet=${of}&tokens=${outcomeId}`,
      )
      const usdc = await world.balance(polygon, owner, world.manifest.contracts[polygon]!.usdc)
      return { pusd: micros(pusd), shares: micros(shares[outcomeId] ?? '0'), usdc }
    },
    ordersOf: async (side: string) =>
      (await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)).orders.filter(
        (each) => each.side === side,
      ),
    /** How many batches the wallet of the user has run. */
    async relayNonce(owner: string, type = 'WALLET'): Promise<bigint> {
      const { relayer } = world.manifest.urls.polymarket
      const reply = await http<{ nonce: string }>(`${relayer}/nonce?address=${owner}&type=${type}`)
      return BigInt(reply.body.nonce)
    },
    count: async (sql: string, values: unknown[] = []): Promise<number> =>
      Number((await app.admin.query<{ count: string }>(sql, values)).rows[0]!.count),

    /** The answer to a key once its task has ended; any gateway gives it. */
    async completed(path: string, body: object, { key, who = person }: { key: string; who?: Person }) {
      const task = await eventually(
        async () => {
          const reply = await who.call<Ended>(`POST ${path}?wait=true&timeout=20`, { body, key })
          assert.ok(reply.status === 200 || reply.status === 202, `${key}: ${JSON.stringify(reply.body)}`)
          return reply.body.status === 'pending' || reply.body.status === 'running' ? undefined : reply.body
        },
        `the end of ${path} ${key}`,
        120_000,
      )
      assert.deepEqual(
        [task.status, task.outcome],
        ['completed', 'executed'],
        `${key}: ${JSON.stringify(task)}`,
      )
      return task
    },

    /** Sends a request to a gateway that may die of it, and the same request to the other one. */
    async request(
      { at, victim, arm }: Attempt,
      path: string,
      body: object,
      { who = person }: { who?: Person } = {},
    ): Promise<Ended> {
      const key = points.nextKey(at)
      arm()
      await who
        .call(`POST ${path}?wait=true&timeout=60`, { body, key, at: victim.url })
        .catch(() => undefined)
      return points.completed(path, body, { key, who })
    },

    /** Waits for what the gateway does by itself; once it is dead, another one does it. */
    async afterwards<T>(
      { at, victim }: Attempt,
      poll: () => Promise<T | undefined>,
      what: string,
    ): Promise<T> {
      const first = await eventually(
        async () => {
          if (victim.child.signalCode === 'SIGKILL') return 'dead' as const
          const found = await poll()
          return found === undefined ? undefined : { found }
        },
        `${at}: ${what}, or the death of the gateway`,
        120_000,
      )
      if (first !== 'dead') return first.found
      await revive()
      return eventually(poll, `${at}: ${what}`, 120_000)
    },

    async killAt({ title, run, isAlone = false, ...sample }: Case): Promise<string> {
      const startMs = performance.now()
      await (isAlone ? leaveAlone() : revive())
      const reached = await killAtSample({
        suite: `points of a ${title} at the prediction market`,
        pattern: pointPattern,
        passesOf,
        launch,
        ...sample,
        max: Math.min(pointsMax, sample.pointsMax ?? pointsMax),
        async run(at, victim, arm) {
          if (isAlone) await leaveAlone()
          const who = isAlone ? await personOf(victim.url, person) : person
          await run(points, { at, victim, arm, person: who })
          return victim.child.signalCode === 'SIGKILL'
        },
      })
      await revive()
      assert.equal(await ledgerDrift(app.admin), 0)
      const inFlight = 'select count(*) from prediction_account where relayer_task_id is not null'
      assert.equal(await points.count(inFlight), 0)
      return `${title}: ${reached}; ${((performance.now() - startMs) / 1_000).toFixed(0)} s`
    },

    async [Symbol.asyncDispose]() {
      for (const gateway of launched) if (gateway !== survivor) await gateway.kill()
      await revive()
      await survivor?.stop()
      await app[Symbol.asyncDispose]()
    },
  }
  return points
}

/** The files of a process use one world and one user. */
const predmktPoints = oncePerProcess(createPredmktPoints)

/** A short run kills a task of one of the cases, drawn by the seed. */
export function killInCases(suite: string, cases: readonly Case[]): void {
  const chosen = isShort
    ? [cases[Math.floor(randomOf(proofSeed(`case of ${suite}`))() * cases.length)]!]
    : cases
  for (const each of chosen)
    test(`killed at any point of a ${each.title}, it happens exactly once`, async (t) => {
      const points = await predmktPoints()
      t.diagnostic(await points.killAt(each))
    })
}
