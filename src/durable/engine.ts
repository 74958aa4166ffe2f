import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Operation } from '#kernel/operation.ts'
import type { TaskKind } from '#kernel/task.ts'
import { createTaskAcceptance } from './accept-task.ts'
import { createChangePoller } from './change-poller.ts'
import { createCommitter } from './commit.ts'
import { createEventLog } from './event-log.ts'
import { ledger } from './ledger.ts'
import { createLocalEvents } from './local-events.ts'
import { createMailboxes } from './mailboxes.ts'
import { createNonceSequences } from './nonces.ts'
import { createNotifier, type MessageBus } from './notifier.ts'
import { createPriceTriggers } from './price-triggers.ts'
import { createInvoker } from './run-operation.ts'
import { createRunner, type RunnerOptions } from './runner.ts'
import { createScheduler } from './scheduler.ts'
import { createTaskCounters } from './task-counters.ts'
import { kindKey } from './task-kinds.ts'
import { createTaskQueries } from './task-queries.ts'
import type { Transactions } from './transactions.ts'
import { createWakeTasks } from './wake-tasks.ts'

type EngineDeps = {
  transactions: Transactions
  /** Connections for the heartbeat only. */
  heartbeats: pg.Pool
  bus: MessageBus
  clock: Clock
  random: Random
  log: Log
  options: RunnerOptions
}

const toTaskKind = ({ name, entry, run }: Extract<Operation, { entry: { kind: 'task' } }>): TaskKind => ({
  kind: entry.taskKind ?? name,
  version: run.version ?? 1,
  priority: entry.priority ?? 1,
  steps: run.steps,
  ...(run.retry && { retry: run.retry }),
  ...(run.stepTimeoutMs && { stepTimeoutMs: run.stepTimeoutMs }),
})

/** The durable part of the process; features are built on it, and `createRuntime` runs what they declare. */
export function createEngine({ transactions, heartbeats, bus, clock, random, log, options }: EngineDeps) {
  const instanceId = uuidv7(clock.now(), random)
  const notifier = createNotifier({ bus, instanceId, log })
  const localEvents = createLocalEvents(notifier)
  const changePoller = createChangePoller(transactions.pool)
  const { leaseMs } = options
  const kinds = new Map<string, TaskKind>()
  const counters = createTaskCounters()
  const stepCommitter = counters.ofCommitter(createCommitter({ transactions, clock, random }))
  const acceptance = counters.ofAcceptance(
    createTaskAcceptance({
      transactions,
      clock,
      random,
      instanceId,
    }),
  )
  const taskRunner = createRunner({
    transactions,
    committer: stepCommitter,
    kinds,
    notifier,
    localEvents,
    clock,
    random,
    log,
    instanceId,
    options,
    heartbeats,
  })
  const scheduler = createScheduler({
    transactions,
    acceptance,
    kinds,
    clock,
    random,
    log,
    isOnDuty: taskRunner.isOnDuty,
    claimNow: taskRunner.claimNow,
  })

  return {
    instanceId,
    ledger,
    notifier,
    transact: transactions.run,
    metrics: counters.read,
    nonces: createNonceSequences(transactions),
    tasks: createTaskQueries({ transactions, notifier, clock }),
    mailboxes: createMailboxes({ transactions, notifier, clock }),
    events: createEventLog({ transactions, notifier, localEvents, changePoller, clock }),
    enqueue: acceptance.enqueue,
    /** True on one live instance: it polls often for what any of them may handle, the others rarely. */
    isOnDuty: taskRunner.isOnDuty,
    wakeTasks: createWakeTasks({ transactions, notifier, clock }),
    schedules: scheduler,
    priceTriggers: createPriceTriggers({
      transactions,
      acceptance,
      kinds,
      notifier,
      clock,
      random,
      log,
      instanceId,
      leaseMs,
    }),

    /** Registers all kinds and builds the invoker; `internal` kinds have no route. Tasks run after `start`. */
    createRuntime(operations: readonly Operation[], internal: readonly TaskKind[]) {
      const routed = operations.flatMap((operation) =>
        operation.entry.kind === 'task'
          ? [toTaskKind(operation as Extract<Operation, { entry: { kind: 'task' } }>)]
          : [],
      )
      for (const kind of [...routed, ...internal]) kinds.set(kindKey(kind.kind, kind.version), kind)
      const steps = [...kinds].map(([key, kind]) => [key, Object.keys(kind.steps).sort()] as const)
      log.debug({ steps: Object.fromEntries(steps.sort()) }, 'task kinds')
      const invoke = createInvoker({
        transactions,
        acceptance,
        runner: taskRunner,
        kinds,
        notifier,
        localEvents,
        changePoller,
        clock,
        random,
      })
      const start = () => {
        taskRunner.start()
        scheduler.start()
      }
      return { invoke, runner: taskRunner, start }
    },

    async [Symbol.asyncDispose]() {
      await scheduler[Symbol.asyncDispose]()
      await taskRunner[Symbol.asyncDispose]()
      await notifier[Symbol.asyncDispose]()
    },
  }
}
export type Engine = ReturnType<typeof createEngine>
