import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import type { ApplyAct, Operation } from '#kernel/contract/operation.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import type { WitnessFile } from '#store/database-witness-file.ts'
import { createInvoker } from './accept/invoker.ts'
import type { OperationOf } from './accept/operation-call.ts'
import { createShownBalances } from './accept/shown-balances.ts'
import { isStreamTask, taskOperationOf } from './accept/stream-task.ts'
import { createApprovals } from './approvals/approvals.ts'
import { type ApproversDeps, createApprovers } from './approvals/approvers.ts'
import { appendEvents } from './events/append-events.ts'
import { createChangePoller } from './events/change-poller.ts'
import { createEventLog } from './events/event-log.ts'
import { createLocalEvents } from './events/local-events.ts'
import { createNotifier, type MessageBus, readyTopic, slotsTopic } from './events/notifier.ts'
import { createMailboxes } from './events/stream-mailboxes.ts'
import { ledger } from './ledger/ledger.ts'
import { createNonceSequences } from './run/nonces.ts'
import { createRunner, type RunnerOptions } from './run/runner.ts'
import { createWakeTasks, wakingParents } from './run/wake-tasks.ts'
import { createTaskCounters } from './task/task-counters.ts'
import { kindKey, newestKind } from './task/task-kinds.ts'
import { createTaskQueries } from './task/task-queries.ts'
import { createHeldCommits } from './time/money-hold-guard.ts'
import type { Durability } from './time/replication.ts'
import type { Transactions } from './transactions.ts'
import { type DueSource, startDueRows } from './upkeep/due-rows.ts'
import { createScheduler } from './upkeep/scheduler.ts'

type EngineDeps = {
  transactions: Transactions
  /** Connections that carry only the heartbeats of this instance. */
  heartbeats: pg.Pool
  bus: MessageBus
  clock: Clock
  random: Random
  log: Log
  options: RunnerOptions & { replicationGraceMs?: number | undefined }
  approvers: ApproversDeps
  /** The record of the database as this instance saw it in earlier runs. */
  witnessFile?: WitnessFile | undefined
  durability: Durability
}

const isTask = (operation: Operation): operation is OperationOf<'task'> => operation.entry.kind === 'task'

const selectTasks = (operations: readonly Operation[]): OperationOf<'task'>[] => [
  ...operations.filter(isTask),
  ...operations.filter(isStreamTask).map((each) => taskOperationOf(each)),
]

function registerKinds(kinds: Map<string, TaskKind>, registered: readonly TaskKind[], log: Log): void {
  for (const kind of registered) kinds.set(kindKey(kind.kind, kind.version), kind)
  log.debug({ steps: stepsOf(kinds) }, 'task kinds')
}
const stepsOf = (kinds: ReadonlyMap<string, TaskKind>): Record<string, string[]> => {
  const steps = [...kinds].map(([key, kind]) => [key, Object.keys(kind.steps).sort()] as const)
  return Object.fromEntries(steps.sort())
}

const toTaskKind = ({ name, entry, run }: OperationOf<'task'>): TaskKind => ({
  kind: entry.taskKind ?? name,
  version: run.version ?? 1,
  priority: entry.priority ?? 1,
  steps: run.steps,
  ...(run.retry && { retry: run.retry }),
  ...(run.stepTimeoutMs && { stepTimeoutMs: run.stepTimeoutMs }),
  ...(run.isResumable && { isResumable: true }),
  ...(run.looksUp && { looksUp: true }),
  ...(run.completeEnd && { completeEnd: run.completeEnd }),
})

/** An act that waits for a person's approval is stored as a task; the engine runs the only step of that task. */
function registerActs(acts: Map<string, ApplyAct>, operations: readonly Operation[]): TaskKind[] {
  // `Function.prototype` has an `apply` too: only an own property `apply` marks an act that a person confirms.
  for (const { name, run } of operations)
    if (Object.hasOwn(run, 'apply')) acts.set(name, (run as { apply: ApplyAct }).apply)
  return [...acts.keys()].map((kind) => ({ kind, version: 1, priority: 1, steps: {} }))
}

/** Builds the durable engine of the process: features use it, and `createRuntime` runs their operations. */
export function createEngine(deps: EngineDeps) {
  const { transactions, heartbeats, bus, clock, random, log, options } = deps
  const instanceId = uuidv7(clock.now(), random)
  const notifier = createNotifier({ bus, instanceId, log })
  const localEvents = createLocalEvents(notifier)
  const changePoller = createChangePoller(transactions.pool)
  const kinds = new Map<string, TaskKind>()
  const taskOperations = new Map<string, OperationOf<'task'>>()
  const acts = new Map<string, ApplyAct>()
  const events = createEventLog({ transactions, notifier, localEvents, changePoller, clock })
  const counters = createTaskCounters()
  const shownBalances = createShownBalances()
  const { holds, time, stepCommitter, intake } = createHeldCommits(deps, { instanceId, counters })
  const wakeTasks = createWakeTasks({ transactions, notifier, clock })
  const committer = wakingParents(stepCommitter, wakeTasks, log)
  const approvals = createApprovals(
    {
      transactions,
      intake,
      committer,
      events,
      notifier,
      kinds,
      operations: taskOperations,
      acts,
      clock,
      random,
    },
    createApprovers(deps.approvers),
  )
  const taskRunner = createRunner({
    transactions,
    committer,
    kinds,
    notifier,
    localEvents,
    clock,
    random,
    log,
    instanceId,
    options,
    heartbeats,
    time,
    holds,
    decideWaiting: approvals.decideWaiting,
  })
  const { isOnDuty, claimNow } = taskRunner
  const dueRows = { transactions, notifier, clock, log, isOnDuty, claimNow }
  const scheduler = createScheduler({ ...dueRows, intake, kinds, random })

  return {
    instanceId,
    ledger,
    notifier,
    holds,
    time,
    transact: transactions.run,
    metrics: counters.read,
    nonces: createNonceSequences(transactions),
    tasks: createTaskQueries({ transactions, notifier, clock }),
    mailboxes: createMailboxes({ transactions, notifier, clock }),
    events,
    approvals,
    shownBalances,
    enqueue: intake.enqueue,
    enqueueAll: intake.enqueueAll,
    enqueueOnce: intake.enqueueOnce,
    appendEvents,
    /** Returns the newest version of a task kind, or undefined if this instance has no version of the kind. */
    kindOf: (name: string) => newestKind(kinds, name),
    announceQueued: () => notifier.notify([readyTopic]),
    /** Whether this instance is on duty: one live instance polls often for due work, the others poll rarely. */
    isOnDuty,
    /** Whether this instance holds its lease; once it does not, another instance may take the tasks that it claimed. */
    isLeaseHeld: taskRunner.isLeaseHeld,
    wakeTasks,
    schedules: scheduler,
    /** Serves the rows of a table when they are due by `rowClock`, until the returned handle is disposed of. */
    startDueRows: <Row extends { id: string }>(source: DueSource<Row>, rowClock: Clock) =>
      startDueRows({ ...dueRows, clock: rowClock }, source),
    /** Notifies all instances that the slot of a schedule was made or moved; a lost hint costs one poll. */
    announceSlots: () => notifier.notify([slotsTopic]),
    /** Registers all task kinds and builds the invoker; `internal` kinds have no route. Tasks run after `start`. */
    createRuntime(operations: readonly Operation[], internal: readonly TaskKind[]) {
      const tasks = selectTasks(operations)
      for (const task of tasks) taskOperations.set(task.name, task)
      registerKinds(kinds, [...tasks.map(toTaskKind), ...registerActs(acts, operations), ...internal], log)
      const invoke = createInvoker({
        transactions,
        intake,
        runner: taskRunner,
        kinds,
        notifier,
        localEvents,
        changePoller,
        clock,
        random,
        holds,
        requestApproval: approvals.request,
        acknowledgeAct: time.acknowledgeAct,
        shownBalances,
      })
      const start = () => {
        time.replication.start()
        taskRunner.start()
        scheduler.start()
      }
      return { invoke, runner: taskRunner, start }
    },

    async [Symbol.asyncDispose]() {
      for (const part of [scheduler, taskRunner, notifier, time.replication])
        await part[Symbol.asyncDispose]()
    },
  }
}
export type Engine = ReturnType<typeof createEngine>
