/** Engines on one database, with the steps of a test. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '#config.ts'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import type { Engine } from '#durable/engine.ts'
import type { MessageBus } from '#durable/events/notifier.ts'
import { createCommitter } from '#durable/run/step-committer.ts'
import type { DatabaseTime } from '#durable/time/detect-lost-commits.ts'
import type { PriceTriggers } from '#engines/trigger-orders/price-triggers.ts'
import { type Clock, systemClock as clock } from '#kernel/clock.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { group, implement, type Operation, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { systemRandom as random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Admission, JsonObject, Step, StepResult, TaskKind, TaskView } from '#kernel/task/task.ts'
import type { Database } from '#store/database.ts'
import type { WitnessFile } from '#store/database-witness-file.ts'
import { query } from '#store/query.ts'
import type { TestDatabase } from '../harness/cluster.ts'
import { openTestCore } from '../harness/core.ts'
import { deadlineMs, eventually } from '../harness/gateway.ts'
import { ownDatabase } from '../harness/own-database.ts'

const claimPollMsDefault = 50
/** Below the limit of a statement, which would end a wait for a row that stays locked. */
const unblockedMsMax = 10_000
export const nonceSequence = { kind: 'test', chain: '1', signer: 'signer' }
export const newUser = () => uuidv7(new Date(), random)
const contract = group('test', 'Operations of a test.', {
  run: task('POST /test/run', {
    summary: 'Runs the steps of the test',
    access: 'trade',
    waitSeconds: 60,
    body: T.Object({}),
    output: TaskResponse,
  }),
})
const request = { id: 'r', address: '127.0.0.1', signal: new AbortController().signal }

export type TestKind = {
  steps: Record<string, Step>
  stepTimeoutMs?: number
  version?: number
  looksUp?: boolean
}
export type Admit = (input: unknown, asker: Asker) => Promise<Admission>
export type Answer = {
  task_id: string
  status: string
  outcome: string | null
  state: string
  error: { code: string } | null
  approval?: { approval_id: string; expires_at: string } | null
  message: string
}
type InstanceOptions = {
  poolMax?: number
  slots?: number
  leaseMs?: number
  claimPollMs?: number
  internal?: TaskKind[]
  admit?: Admit
  createBus?: (database: Database) => MessageBus
  clock?: Clock
  log?: Log
  witnessFile?: WitnessFile
  /** Runs before the first heartbeat, as the start of the product does. */
  openTime?: (time: DatabaseTime) => Promise<void>
  config?: Partial<Config>
  replicationGraceMs?: number
}

/** The first step signs; its effect is live until a step reports the outcome. */
export const signingStep = (next: string): Step => {
  const build = async (nonce: bigint, id: string) => ({
    effect: { kind: 'test', externalId: id, policyReceipt: 'none', intent: {}, signed: {} },
    txAttempt: { externalId: `${id}:${nonce}`, raw: `signed ${nonce}`, nonce },
  })
  return async ({ id }) => ({ sign: { nonceSequence, build: async () => (nonce) => build(nonce, id) }, next })
}
export const executed: StepResult = { end: 'completed', outcome: 'executed', result: {} }
export const confirmed = ({ effects }: TaskView): StepResult => ({
  end: 'completed',
  outcome: 'executed',
  result: {},
  effects: effects.map(({ id, txAttempts }) => ({
    effectId: id,
    status: 'confirmed',
    attemptExternalId: txAttempts[0]!.externalId,
  })),
})

/** The result of what must not wait for rows that stay locked until afterwards. */
export async function unblocked<T>(promise: Promise<T>): Promise<T> {
  const ended = await Promise.race([promise, delay(unblockedMsMax, 'late' as const, { ref: false })])
  assert.notEqual(ended, 'late', 'it waited for the row of another user')
  return ended as T
}

/** Duration of a long step. */
export async function workFor(ms: number): Promise<void> {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs) await delay(10)
}

export type Instance = {
  taskEngine: Engine
  priceTriggers: PriceTriggers
  database: Database
  heartbeats: Database
  run(userId: string, options?: { timeoutMs?: number; key?: string; via?: 'chat' }): Promise<Answer>
} & AsyncDisposable

export type TaskSummary = {
  id: string
  kind: string
  kind_version: number
  status: string
  state: string
  outcome: string | null
  step: string
  /** Null also once the task has ended. */
  owner: string | null
  version: number
  attempts: number
}

/** Of a database that is dropped with it. */
export async function openFixture(given?: Pick<TestDatabase, 'url' | 'drop'>) {
  const db = await ownDatabase(8, given)
  const admin = db.database
  const open = new Set<AsyncDisposable>()
  const rows = <Row extends object>(sql: string, ...values: unknown[]) => query<Row>(admin.pool, sql, values)

  return {
    rows,
    admin,
    url: db.url,
    readTask: async (taskId: string) =>
      (
        await rows<TaskSummary>(
          'select task.*, owner from task left join task_queue on task_id = id where id = $1',
          taskId,
        )
      )[0] as TaskSummary,
    waitForEnd: (taskId: string, msMax = deadlineMs) =>
      eventually(
        async () =>
          (
            await rows<TaskSummary>(
              `select * from task where id = $1 and status not in ('pending', 'running')`,
              taskId,
            )
          )[0],
        `the end of ${taskId}`,
        msMax,
      ),
    /** Holds row locks on another connection until it is disposed of. */
    async lockRows(sql: string, ...values: unknown[]): Promise<Disposable> {
      const client = await admin.pool.connect()
      await client.query('begin')
      // Otherwise PostgreSQL itself would end the lock about when `unblocked` gives up.
      await client.query('set local idle_in_transaction_session_timeout = 0')
      const { rowCount } = await client.query(sql, values)
      assert.ok((rowCount ?? 0) > 0, 'no row was locked')
      // Its locks end with its connection.
      return { [Symbol.dispose]: () => client.release(true) }
    },
    async instance(kind: TestKind, instanceOptions: InstanceOptions = {}): Promise<Instance> {
      const { poolMax = 10, internal = [], slots = 64, leaseMs = 1_000, log, createBus } = instanceOptions
      const { claimPollMs = claimPollMsDefault, witnessFile, config, replicationGraceMs } = instanceOptions
      const core = await openTestCore({
        databaseUrl: db.url,
        config: { DATABASE_POOL: poolMax, RUNNER_SLOTS: slots, LEASE_MS: leaseMs, ...config },
        overrides: {
          claimPollMs,
          ...(createBus && { createBus }),
          ...(instanceOptions.clock && { clock: instanceOptions.clock }),
          ...(replicationGraceMs !== undefined && { replicationGraceMs }),
        },
        ...(log && { log }),
        ...(witnessFile && { witnessFile }),
      })
      const { taskEngine, priceTriggers, stores } = core
      await taskEngine.nonces.ensure(nonceSequence, 1n)
      const first = Object.keys(kind.steps)[0]!
      const admit = instanceOptions.admit ?? (async () => ({ data: {} as JsonObject, first }))
      const operations = implement(contract, { run: { ...kind, admit } })
      const runtime = taskEngine.createRuntime(operations, internal)
      await instanceOptions.openTime?.(taskEngine.time)
      runtime.start()
      const instance: Instance = {
        taskEngine,
        priceTriggers,
        database: stores.database,
        heartbeats: stores.heartbeats,
        async run(userId, { timeoutMs = 15_000, key, via } = {}) {
          const reply = await runtime.invoke({
            operation: operations[0] as Operation,
            input: {},
            caller: {
              userId,
              agentId: 'agt',
              scheme: 'keypair',
              scopes: new Set(['trade']),
              ...(via && { via }),
            },
            options: { wait: timeoutMs > 0, timeoutMs, ...(key !== undefined && { key }) },
            request,
          })
          assert.equal(reply.kind, 'answer')
          return (reply as { body: unknown }).body as Answer
        },
        async [Symbol.asyncDispose]() {
          if (!open.delete(instance)) return
          await core[Symbol.asyncDispose]()
        },
      }
      open.add(instance)
      return instance
    },
    async [Symbol.asyncDispose]() {
      for (const instance of open) await instance[Symbol.asyncDispose]()
      await db[Symbol.asyncDispose]()
    },
  }
}
export type EngineFixture = Awaited<ReturnType<typeof openFixture>>

/** Accepts tasks and commits their steps as an instance does, without an engine that runs them. */
export function writer({ admin }: EngineFixture) {
  const deps = {
    transactions: { pool: admin.pool, run: admin.transaction, pipelined: admin.pipelinedTransaction },
    clock,
    random,
    instanceId: newUser(),
  }
  const commits = createCommitter(deps)
  const { accept } = createTaskIntake(deps)
  const kind: TaskKind = { kind: 'test', version: 1, priority: 1, steps: {} }
  return {
    ...commits,
    /** The task is one that this writer runs, whose lease no instance has seen. */
    async accept(userId: string, admission: Pick<Admission, 'spend' | 'draw'> = {}) {
      const { task } = await accept({
        userId,
        kind,
        input: {},
        admission: { ...admission, data: {}, first: 'first' },
        leased: true,
      })
      return task
    },
  }
}
