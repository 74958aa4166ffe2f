/** Tasks at the venue, each of which loses its gateway at a given point. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { bearer, eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { oncePerProcess } from '../harness/once-per-process.ts'
import { creditAtVenue } from '../harness/venue-gateway.ts'
import { bySize, isNightly, isShort, proofSeed } from '../proof/support/seed.ts'
import { type Customer, createCrashApp } from './crash-app.ts'
import { oneOfEach, statesOf } from './point-states.ts'
import { frozenAccounts, type TaskReply, type VenueCall, venueOf, verifyRecord } from './venue-record.ts'
import { markets, randomOf } from './venue-traders.ts'

export type CaseContext = {
  customer: Customer
  venue: VenueCall
  app: Awaited<ReturnType<typeof createCrashApp>>
  /** The requests so far and their answers, in this order. */
  replies: TaskReply[]
}
export type TaskCase = {
  /** The kind of its tasks. */
  kind: string
  path: string
  /** The request of the n-th key of a customer, after `before`. */
  body(n: number, context: CaseContext): object
  /** Preconditions of all tasks of the case. */
  prepare?(context: CaseContext, send: SendRequest): Promise<void>
  /** Preconditions of each task. */
  before?(context: CaseContext, send: SendRequest): Promise<void>
  /** Its tasks send the venue no request. */
  isLocal?: boolean
  /** For slow cases: the maximum number of kill points, except in the nightly run. */
  pointsMax?: number
  /** Checks of this kind alone; orders are checked for each kind that has one. */
  verify?(context: CaseContext, last: TaskReply): Promise<void>
}
export type SendRequest = (path: string, key: string, body: object) => Promise<TaskReply>

/** Statements and calls that belong to the task; others belong to the running process. */
export const taskPointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|nonce_take_alone|user_event_append|policy_lock|update nonce_sequence|select task|commit|insert policy|update policy|select effect|select tx_attempt|insert venue_order|insert claimed_transfer|insert trigger_order|update trigger_order)|net:(hyperliquid|arbitrum|relay|lifi))/
/** For points with many passes, this many of them; each kind of point at least once. */
const passesOf = (name: string) =>
  isNightly ? 50 : name.startsWith('net:') ? 3 : /task_step/.test(name) ? 2 : 1
const concurrency = bySize({ short: 1, full: 3, nightly: 3 })
const roundsMax = 4
/** An order that never arrived has ended only after its expiry, the lag of reads and a second look: 30 s on an idle machine. */
const endMs = 180_000
const firstAnswerMs = 60_000
const deathMs = 30_000
/** Seconds that a request waits for the end of its task. */
const waitSeconds = 20
/** With it, all deadlines of one point are below the limit of a file, which would hide the cause. */
const replyMs = 2 * waitSeconds * 1_000

type PostReply = Awaited<ReturnType<typeof post>>
const post = (url: string, customer: Customer, path: string, key: string, body: object) =>
  http<TaskReply & { code?: string }>(`${url}/v1/${path}?wait=true&timeout=${waitSeconds}`, {
    method: 'POST',
    body,
    headers: { ...bearer(customer), 'idempotency-key': key },
    timeoutMs: replyMs,
  })

/** Nothing was accepted: on a busy machine an instance turns requests away for a while. */
const isShed = ({ status, body }: PostReply): boolean => status === 503 && body.code === 'overloaded'

const hasEnded = ({ status, body: { outcome } }: PostReply): boolean =>
  status === 200 && outcome !== null && outcome !== 'unknown'

/** The connection may break a moment before the end of the process is reported. */
const deathSignal = ({ child }: Gateway) =>
  eventually(async () => child.signalCode ?? undefined, 'the death', deathMs).then(
    (signal) => signal === 'SIGKILL',
    () => false,
  )

/** The answer to a key once its task has ended. */
async function waitForEnd(gateway: Gateway, customer: Customer, path: string, key: string, body: object) {
  return eventually(
    async () => {
      const reply = await post(gateway.url, customer, path, key, body)
      if (isShed(reply)) return undefined
      const { status } = reply
      assert.ok(status === 200 || status === 202, `${path} ${key}: ${status} ${JSON.stringify(reply.body)}`)
      return hasEnded(reply) ? reply.body : undefined
    },
    `the end of ${path} ${key}`,
    endMs,
  )
}

const isOpen = (reply: PostReply): boolean =>
  isShed(reply) || ((reply.status === 200 || reply.status === 202) && !hasEnded(reply))

/** The answer once the task has ended, or the last one before the deadline; undefined where the gateway does not answer. */
async function firstAnswer(ask: () => Promise<PostReply>): Promise<PostReply | undefined> {
  let reply: PostReply | undefined
  const isFinal = async () => {
    reply = await ask().catch(() => undefined)
    return reply === undefined || !isOpen(reply)
  }
  await eventually(isFinal, 'the first answer', firstAnswerMs).catch(() => undefined)
  return reply
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

/** What a short run, which kills at one point of a suite, leaves out. */
export const testInFull = isShort ? () => undefined : test

/** A short run kills a task of one of the cases of a suite, drawn by the seed. */
export const casesOfRun = (suite: string, cases: readonly TaskCase[]): readonly TaskCase[] =>
  isShort ? [cases[Math.floor(randomOf(proofSeed(`case of ${suite}`))() * cases.length)]!] : cases

/** Points of each case, of different states, drawn by the seed. */
const pointsMax = bySize({ short: 1, full: 8, nightly: Number.POSITIVE_INFINITY })
const kindOf = (point: string) => point.slice(0, point.indexOf('@'))

/** Each name at passes that are spread over all of its passes; the seed selects them. */
function choosePasses(names: string[], random: () => number): string[] {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) => {
    const passesMax = Math.min(count, passesOf(name))
    const stride = count / passesMax
    const passes = Array.from({ length: passesMax }, (_, n) => 1 + Math.floor((n + random()) * stride))
    return [...new Set(passes)].map((pass) => `${name}@${pass}`)
  })
}

/** All that an instance passed, and what of it belongs to the task. */
type Passed = { passed: string[]; names: string[] }

/** Of the chosen points, one for each state that a kill leaves behind. */
function distinctPoints(chosen: readonly string[], { passed }: Passed, { needed, random }: Sample): string[] {
  const states = statesOf(passed, {
    pattern: taskPointPattern,
    passesOf: () => Number.POSITIVE_INFINITY,
  }).flatMap((points) => {
    const ofState = points.filter((point) => chosen.includes(point))
    return ofState.length > 0 ? [ofState] : []
  })
  return oneOfEach(states, needed, random)
}

type Sample = { needed: readonly RegExp[]; max: number; random: () => number }

function samplePoints(points: readonly string[], { needed, max, random }: Sample): string[] {
  const shuffled = points
    .map((point) => ({ point, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ point }) => point)
  const isNeeded = (point: string) => needed.some((each) => each.test(point))
  const oneOfEach = needed.flatMap((each) => shuffled.find((point) => each.test(point)) ?? [])
  const others = shuffled.toSorted((a, b) => Number(isNeeded(b)) - Number(isNeeded(a)))
  const sampleSet = new Set([...new Set([...oneOfEach, ...others])].slice(0, max))
  return points.filter((point) => sampleSet.has(point))
}

async function createVenuePoints() {
  const app = await createCrashApp()
  const venue = venueOf(app.control)
  const env = { FAUCET_URL: 'off', POLICY_DAY_USD_MAX: '100000000' }
  const log = join(tmpdir(), `portico-failpoints-${process.pid}`)
  writeFileSync(log, '')
  // The surviving gateway also records the points of each case: another gateway would be one more start for each.
  const survivor = await app.gateway({ ...env, FAILPOINT_LOG: log })
  survivor.child.kill('SIGUSR2')
  const launched: Promise<Gateway>[] = []
  const launch = (failpoint: Record<string, string>) => {
    const gateway = app.gateway({ ...env, ...failpoint })
    gateway.catch(() => undefined)
    launched.push(gateway)
    return gateway
  }
  await venue('POST', '/settings', { walking: false })
  for (const [coin, price] of Object.entries(markets)) await venue('POST', '/price', { coin, price })
  await venue('POST', '/price', { coin: '@1', price: markets.HYPE })

  const senderFor =
    (customer: Customer): SendRequest =>
    (path, key, body) =>
      waitForEnd(survivor, customer, path, key, body)
  const createContext = async (taskCase: TaskCase): Promise<CaseContext> => {
    const customer = await newTrader(survivor, venue)
    const send = senderFor(customer)
    assert.equal((await send('perp/setup', 'setup', {})).outcome, 'executed')
    const context = { customer, venue, app, replies: [] }
    await taskCase.prepare?.(context, send)
    return context
  }
  const waitForReplies = async (taskCase: TaskCase, context: CaseContext, last: TaskReply, at: string) => {
    assert.deepEqual([last.status, last.outcome], ['completed', 'executed'], `${at}: ${JSON.stringify(last)}`)
    context.replies.push(last)
    await verifyRecord(context, last, at)
    await taskCase.verify?.(context, last)
  }

  /** What the survivor passed while it ran one task; what the gateway does beside it, such as a schedule, is among it. */
  const recordPasses = async (taskCase: TaskCase, context: CaseContext): Promise<Passed> => {
    const { customer, replies } = context
    const key = `recorded-${replies.length}`
    await taskCase.before?.(context, senderFor(customer))
    const passedBefore = readFileSync(log).length
    const body = taskCase.body(replies.length, context)
    const reply = await waitForEnd(survivor, customer, taskCase.path, key, body)
    const passed = readFileSync(log).subarray(passedBefore).toString().split('\n')
    const names = taskCase.isLocal ? passed.filter((name) => !name.startsWith('net:')) : passed
    await waitForReplies(taskCase, context, reply, key)
    return { passed, names: names.filter((name) => taskPointPattern.test(name)) }
  }

  /** The state in which the kill left the task; `none` where nothing was accepted yet. */
  const stepOf = async ({ customer }: CaseContext, key: string): Promise<string> => {
    const { rows } = await app.admin.query<{ step: string; status: string }>(
      `select step, status from task where idempotency_key = $1 and user_id =
         (select user_id from wallet where lower(address) = lower($2))`,
      [key, customer.address],
    )
    const [task] = rows
    return task === undefined ? 'none' : task.status === 'completed' ? 'end' : task.step
  }

  /** One gateway takes the request and dies at its point; the other one must complete the task. */
  const dieAt = async (
    taskCase: TaskCase,
    context: CaseContext,
    point: string,
    victim: Gateway,
  ): Promise<{ diedAt: string | undefined; hasEnded: boolean }> => {
    const key = `${context.replies.length}-${point.replaceAll(' ', '-')}`
    await taskCase.before?.(context, senderFor(context.customer))
    const body = taskCase.body(context.replies.length, context)
    victim.child.kill('SIGUSR2')
    const first = await firstAnswer(() => post(victim.url, context.customer, taskCase.path, key, body))
    const died = first === undefined && (await deathSignal(victim))
    await victim.kill()
    const step = await stepOf(context, key)
    const reply = await waitForEnd(survivor, context.customer, taskCase.path, key, body).catch(
      (cause: unknown) => {
        throw new Error(
          `${point} (${step}): the other gateway (${survivor.child.exitCode ?? survivor.child.signalCode}) said\n${survivor.lines.slice(-12).join('\n')}`,
          { cause },
        )
      },
    )
    await waitForReplies(taskCase, context, reply, `${taskCase.kind} ${point} (${step})`)
    return { diedAt: died ? step : undefined, hasEnded: first !== undefined && hasEnded(first) }
  }

  return {
    async killAll(taskCase: TaskCase): Promise<string> {
      const startedMs = performance.now()
      const random = randomOf(proofSeed(`points of ${taskCase.kind}`))
      const contexts = await Promise.all(Array.from({ length: concurrency }, () => createContext(taskCase)))
      const recorded = await recordPasses(taskCase, contexts[0]!)
      const all = choosePasses(recorded.names, random)
      const stored = [/^db:task_accept:after/, /^db:task_step:before/]
      const needed = taskCase.isLocal ? stored : [...stored, /^net:hyperliquid:after/]
      for (const each of needed)
        assert.ok(
          all.some((point) => each.test(point)),
          `${each} is not among ${all.join(' ')}`,
        )
      const share = isShort ? pointsMax : (taskCase.pointsMax ?? pointsMax)
      const sample = { needed, max: share, random }
      const points = isNightly ? all : samplePoints(distinctPoints(all, recorded, sample), sample)
      const steps = new Map<string, number>()
      const reached = new Set<string>()
      /** How many tasks an instance ran to their end without a pass of this kind. */
      const without = new Map<string, number>()
      const survive = async (left: string[]) => {
        const start = () => {
          const point = left.shift()
          return point === undefined ? undefined : { point, gateway: launch({ FAILPOINT: point }) }
        }
        const worker = async (context: CaseContext) => {
          // The next gateway starts while the other one completes the task.
          for (let now = start(), next: typeof now; now; now = next) {
            const victim = await now.gateway
            next = start()
            const { diedAt, hasEnded: isEnded } = await dieAt(taskCase, context, now.point, victim)
            const kind = kindOf(now.point)
            if (isEnded) without.set(kind, (without.get(kind) ?? 0) + 1)
            if (diedAt === undefined) continue
            steps.set(diedAt, (steps.get(diedAt) ?? 0) + 1)
            reached.add(now.point)
          }
        }
        await Promise.all(contexts.map(worker))
      }
      const kinds = [...new Set(points.map(kindOf))]
      const missed = () => kinds.filter((kind) => ![...reached].some((point) => kindOf(point) === kind))
      await survive([...points])
      // No two runs pass a point equally often, and either of two instances may do shared work.
      for (let round = 0; round < roundsMax && missed().length > 0; round++)
        await survive(missed().map((kind) => `${kind}@1`))
      // What no second task passes either was not of the first one, nor was what instances that ended their task never
      // passed: the instance that compares the account does that, such as events of orders that ended at the venue.
      const again = missed().length > 0 ? (await recordPasses(taskCase, contexts[0]!)).names : []
      const isOfOthers = (kind: string) => (without.get(kind) ?? 0) > roundsMax
      const unreached = missed().filter((kind) => again.includes(kind) && !isOfOthers(kind))
      assert.deepEqual(unreached, [], 'kinds of points without a kill')
      assert.equal(await ledgerDrift(app.admin), 0)
      assert.deepEqual(await frozenAccounts(app.admin), [])
      const where = [...steps].map(([step, deaths]) => `${step} ${deaths}`).join(', ')
      const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
      return `${taskCase.kind}: ${points.length} points, ${reached.size} reached; kills by step: ${where}; ${seconds} s`
    },
    async [Symbol.asyncDispose]() {
      const all = await Promise.allSettled(launched)
      await Promise.all(all.map((each) => (each.status === 'fulfilled' ? each.value.kill() : undefined)))
      await survivor.stop()
      await app[Symbol.asyncDispose]()
    },
  }
}

/** The cases of all files of a process use the same gateways, each with its own customers. */
export const venuePoints = oncePerProcess(createVenuePoints)
