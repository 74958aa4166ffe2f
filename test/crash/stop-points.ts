/** Tasks whose instance is stopped at a given point for some leases, while a cancel arrives at another instance. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { oncePerProcess } from '../harness/once-per-process.ts'
import { bySize, isNightly, isShort, proofSeed } from '../proof/support/seed.ts'
import { type Customer, createCrashApp, newCustomer } from './crash-app.ts'
import { newTrader, taskPointPattern } from './venue-points.ts'
import { frozenAccounts, type VenueCall, venueOf } from './venue-record.ts'
import { markets, randomOf } from './venue-traders.ts'

type StopPointApp = Awaited<ReturnType<typeof createCrashApp>>
export type CancelContext = {
  app: StopPointApp
  venue: VenueCall
  customer: Customer
  /** Runs a task to its end on the instance that never stops. */
  run(path: string, body: object): Promise<EndedTask>
}
type EndedTask = {
  task_id: string
  status: string
  outcome: string | null
  result: Record<string, unknown> | null
}
export type CancelCase = {
  kind: string
  path: string
  prepare(context: CancelContext): Promise<void>
  /** The request of one more task; may create its preconditions. */
  body(context: CancelContext): Promise<object>
  /** How many of the tasks with these ids the chain or the venue has executed. */
  landed(context: CancelContext, taskIds: string[]): Promise<number>
  /** Each task needs a user of its own. */
  isOncePerUser?: boolean
}
type StoredTask = { id: string; status: string; outcome: string | null }

const leaseMs = 500
/** Cancels of each kind; in a short run of each suite, shared by its kinds, of which the seed draws as many. */
const pointsMax = bySize({ short: 3, full: 4, nightly: Number.POSITIVE_INFINITY })
const casesOfRun = (cases: readonly CancelCase[]): readonly CancelCase[] => {
  if (!isShort) return cases
  const random = randomOf(proofSeed(`kinds of cancels, of ${cases.length}`))
  return cases
    .map((each) => ({ each, at: random() }))
    .sort((a, b) => a.at - b.at)
    .slice(0, pointsMax)
    .map(({ each }) => each)
}
const leasesStopped = bySize({ short: [0, 1, 2], full: [0, 1, 2], nightly: [0, 1, 2, 3, 4] })
/**
 * A task that is locked when its lease ends is claimed by the next poll, up to 8 s later, and an unknown outcome is looked up
 * after pauses that double: on a busy machine both take several turns.
 */
const endsWithinMs = 60_000
const isTaskPoint = (name: string) => taskPointPattern.test(name) || name.startsWith('net:base')

/** The state of a process by its first letter; `T` is stopped. */
const stateOf = (pid: number) =>
  execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' }).trim()

async function createStopPoints() {
  const app = await createCrashApp()
  const venue = venueOf(app.control)
  const file = join(tmpdir(), `portico-stop-${process.pid}`)
  const log = join(tmpdir(), `portico-stop-log-${process.pid}`)
  for (const path of [file, log]) writeFileSync(path, '')
  const env = { POLICY_DAY_USD_MAX: '100000000', LEASE_MS: String(leaseMs) }
  const [stopping, other] = await Promise.all([
    app.gateway({ ...env, FAILPOINT_STOP: file, FAILPOINT_LOG: log }),
    app.gateway(env),
  ])
  await venue('POST', '/settings', { walking: false })
  for (const [coin, price] of Object.entries(markets)) await venue('POST', '/price', { coin, price })
  await venue('POST', '/price', { coin: '@1', price: markets.HYPE })

  const post = (url: string, customer: Customer, path: string, key: string, body: object) =>
    http<EndedTask>(`${url}/v1/${path}`, {
      method: 'POST',
      headers: { ...bearer(customer), 'idempotency-key': key },
      body,
      timeoutMs: 30_000,
    })
  let keys = 0
  const contextOf = (customer: Customer): CancelContext => ({
    app,
    venue,
    customer,
    async run(path, body) {
      const key = `run-${keys++}`
      return eventually(
        async () => {
          const answer = await post(other.url, customer, `${path}?wait=true&timeout=20`, key, body)
          assert.ok(answer.status < 400 || answer.status >= 500, `${path}: ${JSON.stringify(answer.body)}`)
          const { outcome } = answer.body
          return answer.status === 200 && outcome !== null && outcome !== 'unknown' ? answer.body : undefined
        },
        `the end of ${path}`,
        60_000,
      )
    },
  })
  const createContext = async (cancelCase: CancelCase): Promise<CancelContext> => {
    const isEarn = cancelCase.path.startsWith('earn/') || cancelCase.path === 'perp/fund'
    const customer = isEarn ? await newCustomer(other.url) : await newTrader(other, venue)
    const context = contextOf(customer)
    await cancelCase.prepare(context)
    return context
  }
  const readTasks = async ({ customer }: CancelContext, kind: string): Promise<StoredTask[]> =>
    (
      await app.admin.query<StoredTask>(
        `select t.id, t.status, t.outcome from task t join app_user u on u.id = t.user_id
         where u.agent_id = $1 and t.kind = $2 order by t.id`,
        [customer.agentId, kind],
      )
    ).rows
  const arm = (point: string) => {
    writeFileSync(file, point)
    stopping.child.kill('SIGUSR2')
    // Statements outside of tasks may have reached the point before.
    stopping.child.kill('SIGCONT')
  }
  const isStopped = () => stateOf(stopping.pid).startsWith('T')

  /** A cancel that waits for a lock has certainly begun. */
  const cancelUnderWay = async (cancel: Promise<unknown>) => {
    let isAnswered = false
    void cancel.finally(() => {
      isAnswered = true
    })
    await eventually(async () => {
      const { rows } = await app.admin.query(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%task_cancel%'`,
      )
      return isAnswered || rows.length > 0 ? true : undefined
    }, 'the cancel has been answered or waits')
  }

  /** The points of one task, each with its first pass and some with their second. */
  const pointsOf = async (cancelCase: CancelCase, context: CancelContext, random: () => number) => {
    writeFileSync(log, '')
    const body = await cancelCase.body(context)
    arm('')
    const { body: accepted } = await post(
      stopping.url,
      context.customer,
      cancelCase.path,
      `log-${keys++}`,
      body,
    )
    await ended(accepted.task_id, 'recorded')
    const counts = new Map<string, number>()
    for (const name of readFileSync(log, 'utf8').split('\n'))
      if (isTaskPoint(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
    const points = [...counts].flatMap(([name, count]) =>
      [1, 2].filter((pass) => pass <= count && (pass === 1 || isNightly)).map((pass) => `${name}@${pass}`),
    )
    // First where the task exists, so that a cancel meets it also in a short run.
    const signing = [
      /task_step:before/,
      /nonce_sequence:after|nonce_take_alone:after|task_accept:before/,
    ].flatMap((each) => points.filter((point) => each.test(point)))
    const others = points.filter((point) => !signing.includes(point))
    const order = [
      ...signing,
      ...others
        .map((point) => ({ point, at: random() }))
        .sort((a, b) => a.at - b.at)
        .map(({ point }) => point),
    ]
    assert.ok(order.length > 3, order.join(' '))
    return order
  }

  const ended = (taskId: string, at: string) =>
    eventually(
      async () =>
        (
          await app.admin.query<StoredTask>(
            `select id, status, outcome from task where id = $1 and status not in ('pending', 'running')`,
            [taskId],
          )
        ).rows[0],
      `${at}: the end of ${taskId}`,
      endsWithinMs,
    )

  /** Returns the answer to the cancel, or undefined where the point was not passed before the task existed. */
  const stopAt = async (cancelCase: CancelCase, context: CancelContext, point: string, leases: number) => {
    const at = `${cancelCase.kind} ${point}, stopped for ${leases} leases`
    const { customer } = context
    const before = (await readTasks(context, cancelCase.kind)).length
    const body = await cancelCase.body(context)
    arm(point)
    const request = post(stopping.url, customer, cancelCase.path, `stop-${keys++}`, body).catch(
      () => undefined,
    )
    let isAnswered = false
    void request.finally(() => {
      isAnswered = true
    })
    const newest = async () => (await readTasks(context, cancelCase.kind))[before]
    const isSettled = async () => {
      if (isStopped()) return true
      const task = isAnswered ? await newest() : undefined
      return isAnswered && (task === undefined || task.outcome !== null) ? true : undefined
    }
    await eventually(isSettled, `${at}: it stops or ends`, endsWithinMs)
    const wasStopped = isStopped()
    const task = await newest()
    const cancel =
      task &&
      http(`${other.url}/v1/tasks/${task.id}/cancel`, {
        method: 'POST',
        headers: bearer(customer),
        timeoutMs: 20_000,
      })
    if (cancel) await cancelUnderWay(cancel)
    const continueAtMs = performance.now() + leases * leaseMs
    while (performance.now() < continueAtMs) await delay(10)
    arm('')
    await request
    const answer = await cancel
    const made = await newest()
    if (!made) return { wasStopped, answer: undefined }
    const end = await ended(made.id, at)
    if (answer) {
      assert.ok(answer.status === 200 || answer.status === 409, `${at}: ${JSON.stringify(answer.body)}`)
      if (answer.status === 200)
        assert.deepEqual([end.status, end.outcome], ['cancelled', 'not_executed'], at)
      else assert.notEqual(end.status, 'cancelled', at)
    }
    assert.equal((await readTasks(context, cancelCase.kind)).length, before + 1, `${at}: one task`)
    return { wasStopped, answer: answer?.status }
  }

  let raced = 0
  const race = async (cancelCase: CancelCase, share: number) => {
    const startedMs = performance.now()
    const random = randomOf(proofSeed(`cancels of ${cancelCase.kind}`))
    let context = await createContext(cancelCase)
    const points = (await pointsOf(cancelCase, context, random)).slice(0, share)
    const tally = { points: points.length, stopped: 0, accepted: 0, refused: 0, absent: 0 }
    const verify = async (at: string) => {
      const executed = (await readTasks(context, cancelCase.kind)).filter(
        ({ outcome }) => outcome === 'executed',
      )
      const ids = (await readTasks(context, cancelCase.kind)).map(({ id }) => id)
      assert.equal(await cancelCase.landed(context, ids), executed.length, at)
    }
    for (const point of points) {
      if (cancelCase.isOncePerUser) context = await createContext(cancelCase)
      const leases = leasesStopped[raced++ % leasesStopped.length]!
      const { wasStopped, answer } = await stopAt(cancelCase, context, point, leases)
      if (wasStopped) tally.stopped += 1
      tally[answer === 200 ? 'accepted' : answer === 409 ? 'refused' : 'absent'] += 1
      await verify(`${cancelCase.kind} ${point}, stopped for ${leases} leases`)
    }
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
    return { tally, seconds }
  }

  return {
    async raceAll(cases: readonly CancelCase[], say: (line: string) => void): Promise<void> {
      const reached = { points: 0, stopped: 0 }
      for (const cancelCase of casesOfRun(cases)) {
        const share = isShort ? Math.ceil(pointsMax / cases.length) : pointsMax
        const { tally, seconds } = await race(cancelCase, share)
        // The points of a run differ from run to run, so that some are never reached again.
        if (!isShort) assert.ok(tally.stopped >= tally.points / 3, JSON.stringify(tally))
        reached.points += tally.points
        reached.stopped += tally.stopped
        say(`${cancelCase.kind}: ${JSON.stringify(tally)}; ${seconds} s`)
      }
      assert.ok(reached.stopped >= reached.points / 3, JSON.stringify(reached))
      assert.equal(await ledgerDrift(app.admin), 0)
      assert.deepEqual(await frozenAccounts(app.admin), [])
    },
    async [Symbol.asyncDispose]() {
      stopping.child.kill('SIGCONT')
      await Promise.all([stopping.stop(), other.stop()])
      await app[Symbol.asyncDispose]()
    },
  }
}

/** The cases of all files of a process use the same two instances. */
export const stopPoints = oncePerProcess(createStopPoints)
