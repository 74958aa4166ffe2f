/** Deeds at the venue, each of which loses its gateway at a point of its own. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bearer, eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { creditAtVenue } from '../harness/venue-gateway.ts'
import { isNightly, proofSeed } from '../proof/support/seed.ts'
import { type Customer, ledgerDrift, openScene } from './scene.ts'
import { frozenAccounts, judge, type Told, type VenueCall, venueOf } from './venue-record.ts'
import { markets, randomOf } from './venue-traders.ts'

export type Stand = {
  customer: Customer
  venue: VenueCall
  scene: Awaited<ReturnType<typeof openScene>>
  /** What has been asked for and told of, in this order. */
  told: Told[]
}
export type Deed = {
  /** The kind of its tasks. */
  kind: string
  path: string
  /** What is asked for by the n-th key of a customer, after `before`. */
  body(n: number, stand: Stand): object
  /** What the deeds need before the first of them. */
  prepare?(stand: Stand, ask: Ask): Promise<void>
  /** What each of them needs anew. */
  before?(stand: Stand, ask: Ask): Promise<void>
  /** Its tasks ask the venue for nothing. */
  isLocal?: boolean
  /** A task that takes long is killed at so many points, which the seed chooses; at night at all of them. */
  pointsMax?: number
  /** What belongs to this kind alone; orders are judged for each that has one. */
  judge?(stand: Stand, last: Told): Promise<void>
}
export type Ask = (path: string, key: string, body: object) => Promise<Told>

/** Statements and calls that belong to the task; the rest is the noise of a living process. */
export const ofTheTask =
  /^(db:(task_accept|task_open|task_write|outbox_add|policy_lock|update lane|select task|commit|insert policy|update policy|select effect|select carrier|insert venue_order|insert venue_credit|insert trigger_order|update trigger_order)|net:(hyperliquid|arbitrum))/
/** Of what a task does often, this many passes; each kind of point at least once. */
const passesOf = (name: string) =>
  isNightly ? 50 : name.startsWith('net:') ? 3 : /task_write/.test(name) ? 2 : 1
const lanes = 3
const roundsMost = 4
const endMs = 40_000

const post = (url: string, customer: Customer, path: string, key: string, body: object) =>
  http<Told>(`${url}/v1/${path}?wait=true&timeout=20`, {
    method: 'POST',
    body,
    headers: { ...bearer(customer), 'idempotency-key': key },
    timeoutMs: 25_000,
  })

/** Its reply may break off a moment before its end is told. */
const fellBy = ({ child }: Gateway) =>
  eventually(async () => child.signalCode ?? undefined, 'the death', 1_000).then(
    (signal) => signal === 'SIGKILL',
    () => false,
  )

/** The answer to a key once its task has ended. */
async function ended(gateway: Gateway, customer: Customer, path: string, key: string, body: object) {
  return eventually(
    async () => {
      const { status, body: told } = await post(gateway.url, customer, path, key, body)
      assert.ok(status === 200 || status === 202, `${path} ${key}: ${status} ${JSON.stringify(told)}`)
      return status === 200 && told.outcome !== null && told.outcome !== 'unknown' ? told : undefined
    },
    `the end of ${path} ${key}`,
    endMs,
  )
}

export async function newTrader({ url }: Pick<Gateway, 'url'>, venue: VenueCall): Promise<Customer> {
  const agent = await newAgent(url)
  const { wallets } = (
    await http<{ wallets: { address: string; chain_type: string }[] }>(`${url}/v1/wallets`, {
      headers: bearer(agent),
    })
  ).body
  const address = wallets.find(({ chain_type }) => chain_type === 'evm')!.address
  await creditAtVenue(venue, { evm: address, amount: '100000' })
  return { ...agent, address }
}

/** Of each deed, drawn by the seed; the nightly run takes all points. */
const pointsMax = 12
const kindOf = (point: string) => point.slice(0, point.indexOf('@'))

/** Each name at passes that are spread over all of its passes; which ones, the seed tells. */
function chosen(names: string[], random: () => number): string[] {
  const counts = new Map<string, number>()
  for (const name of names) if (ofTheTask.test(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) => {
    const most = Math.min(count, passesOf(name))
    const stride = count / most
    const passes = Array.from({ length: most }, (_, n) => 1 + Math.floor((n + random()) * stride))
    return [...new Set(passes)].map((pass) => `${name}@${pass}`)
  })
}

type Sample = { needed: readonly RegExp[]; max: number; random: () => number }

function sampled(points: readonly string[], { needed, max, random }: Sample): string[] {
  const isNeeded = (point: string) => needed.some((each) => each.test(point))
  const ranked = points
    .map((point) => ({ point, at: (isNeeded(point) ? 0 : 1) + random() }))
    .sort((a, b) => a.at - b.at)
  const kept = new Set(ranked.slice(0, max).map(({ point }) => point))
  return points.filter((point) => kept.has(point))
}

export async function openVenuePoints() {
  const scene = await openScene()
  const venue = venueOf(scene.control)
  const env = { FAUCET_URL: 'off', POLICY_DAY_USD_MAX: '100000000' }
  const survivor = await scene.gateway(env)
  const launched: Promise<Gateway>[] = []
  const launch = (failpoint: Record<string, string>) => {
    const gateway = scene.gateway({ ...env, ...failpoint })
    gateway.catch(() => undefined)
    launched.push(gateway)
    return gateway
  }
  await venue('POST', '/settings', { walking: false })
  for (const [coin, price] of Object.entries(markets)) await venue('POST', '/price', { coin, price })
  await venue('POST', '/price', { coin: '@1', price: markets.HYPE })

  const askOf =
    (customer: Customer): Ask =>
    (path, key, body) =>
      ended(survivor, customer, path, key, body)
  const newStand = async (deed: Deed): Promise<Stand> => {
    const customer = await newTrader(survivor, venue)
    const ask = askOf(customer)
    assert.equal((await ask('perp/setup', 'setup', {})).outcome, 'executed')
    const stand = { customer, venue, scene, told: [] }
    await deed.prepare?.(stand, ask)
    return stand
  }
  const settled = async (deed: Deed, stand: Stand, last: Told, at: string) => {
    assert.deepEqual([last.status, last.outcome], ['completed', 'executed'], `${at}: ${JSON.stringify(last)}`)
    stand.told.push(last)
    await judge(stand, last, at)
    await deed.judge?.(stand, last)
  }

  const pointsOf = async (deed: Deed, stand: Stand, random: () => number): Promise<string[]> => {
    const file = join(tmpdir(), `portico-failpoints-${process.pid}-${deed.kind}`)
    writeFileSync(file, '')
    const recorded = await launch({ FAILPOINT_LOG: file })
    await deed.before?.(stand, askOf(stand.customer))
    recorded.child.kill('SIGUSR2')
    const told = await ended(recorded, stand.customer, deed.path, 'recorded', deed.body(0, stand))
    const passed = readFileSync(file, 'utf8').split('\n')
    const names = deed.isLocal ? passed.filter((name) => !name.startsWith('net:')) : passed
    await settled(deed, stand, told, 'recorded')
    // What it has compiled is kept for those that are killed.
    await recorded.stop()
    return chosen(names, random)
  }

  /** Where the death left the task; `none` where nothing was promised yet. */
  const stepOf = async ({ customer }: Stand, key: string): Promise<string> => {
    const { rows } = await scene.admin.query<{ step: string; status: string }>(
      `select step, status from task where idempotency_key = $1 and user_id =
         (select user_id from wallet where lower(address) = lower($2))`,
      [key, customer.address],
    )
    const [task] = rows
    return task === undefined ? 'none' : task.status === 'completed' ? 'end' : task.step
  }

  /** The doomed one takes the request and dies at its point; the survivor has to bring it to its one end. */
  const dieAt = async (
    deed: Deed,
    stand: Stand,
    point: string,
    doomed: Gateway,
  ): Promise<string | undefined> => {
    const key = `${stand.told.length}-${point.replaceAll(' ', '-')}`
    await deed.before?.(stand, askOf(stand.customer))
    const body = deed.body(stand.told.length, stand)
    doomed.child.kill('SIGUSR2')
    const first = await post(doomed.url, stand.customer, deed.path, key, body).catch(() => undefined)
    const died = first === undefined && (await fellBy(doomed))
    await doomed.kill()
    const step = await stepOf(stand, key)
    const told = await ended(survivor, stand.customer, deed.path, key, body).catch((cause: unknown) => {
      throw new Error(
        `${point} (${step}): the survivor (${survivor.child.exitCode ?? survivor.child.signalCode}) said\n${survivor.lines.slice(-12).join('\n')}`,
        { cause },
      )
    })
    await settled(deed, stand, told, `${deed.kind} ${point} (${step})`)
    return died ? step : undefined
  }

  return {
    async killAll(deed: Deed): Promise<string> {
      const startedMs = performance.now()
      const random = randomOf(proofSeed(`points of ${deed.kind}`))
      const stands = await Promise.all(Array.from({ length: lanes }, () => newStand(deed)))
      const all = await pointsOf(deed, stands[0]!, random)
      const stored = [/^db:task_(accept|open):after/, /^db:task_write:before/]
      const needed = deed.isLocal ? stored : [...stored, /^net:hyperliquid:after/]
      for (const each of needed)
        assert.ok(
          all.some((point) => each.test(point)),
          `${each} is not among ${all.join(' ')}`,
        )
      const points = isNightly ? all : sampled(all, { needed, max: deed.pointsMax ?? pointsMax, random })
      const steps = new Map<string, number>()
      const reached = new Set<string>()
      const survive = async (left: string[]) => {
        const start = () => {
          const point = left.shift()
          return point === undefined ? undefined : { point, gateway: launch({ FAILPOINT: point }) }
        }
        const lane = async (stand: Stand) => {
          // The next one starts while the last one is being survived.
          for (let now = start(), next: typeof now; now; now = next) {
            const doomed = await now.gateway
            next = start()
            const step = await dieAt(deed, stand, now.point, doomed)
            if (step === undefined) continue
            steps.set(step, (steps.get(step) ?? 0) + 1)
            reached.add(now.point)
          }
        }
        await Promise.all(stands.map(lane))
      }
      const kinds = [...new Set(points.map(kindOf))]
      const missed = () => kinds.filter((kind) => ![...reached].some((point) => kindOf(point) === kind))
      await survive([...points])
      // No two runs pass a place equally often, and what two instances share either may do.
      for (let round = 0; round < roundsMost && missed().length > 0; round++)
        await survive(missed().map((kind) => `${kind}@1`))
      assert.deepEqual(missed(), [], 'kinds of points that nobody died at')
      assert.equal(await ledgerDrift(scene.admin), 0)
      assert.deepEqual(await frozenAccounts(scene.admin), [])
      const where = [...steps].map(([step, deaths]) => `${step} ${deaths}`).join(', ')
      const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
      return `${deed.kind}: ${points.length} points, ${reached.size} reached; deaths by step: ${where}; ${seconds} s`
    },
    async [Symbol.asyncDispose]() {
      const all = await Promise.allSettled(launched)
      await Promise.all(all.map((each) => (each.status === 'fulfilled' ? each.value.kill() : undefined)))
      await survivor.stop()
      await scene[Symbol.asyncDispose]()
    },
  }
}
