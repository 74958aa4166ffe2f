import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Operation } from '#kernel/operation.ts'
import type { TaskKind } from '#kernel/task.ts'
import { acceptor } from './accept.ts'
import { caller } from './call.ts'
import { tasksOf } from './cancel.ts'
import { createChangePoller } from './change-poller.ts'
import { committer } from './commit.ts'
import { eventsOf } from './events.ts'
import { kindKey } from './kinds.ts'
import { lanes } from './lanes.ts'
import { ledger } from './ledger.ts'
import { news } from './news.ts'
import { type RunnerOptions, runner } from './runner.ts'
import { schedules } from './schedule.ts'
import type { Transactions } from './transactions.ts'
import { type WakeBus, wake as wakes } from './wake.ts'
import { watcher } from './watch.ts'

type Needs = {
  transactions: Transactions
  /** Connections that only the heartbeat uses. */
  heartbeats: pg.Pool
  bus: WakeBus
  clock: Clock
  random: Random
  log: Log
  /** A function, since a free port is known only once the server listens. */
  baseUrl: () => string
  options: RunnerOptions
}

const kindOf = ({ name, entry, run }: Extract<Operation, { entry: { kind: 'task' } }>): TaskKind => ({
  kind: entry.taskKind ?? name,
  version: run.version ?? 1,
  priority: entry.priority ?? 1,
  steps: run.steps,
  ...(run.retry && { retry: run.retry }),
  ...(run.stepTimeoutMs && { stepTimeoutMs: run.stepTimeoutMs }),
  ...(run.released && { released: run.released }),
})

/** What features stand on; they are built with it, and `engine` then runs what they declare. */
export function ground(needs: Needs) {
  const { transactions, heartbeats, bus, clock, random, log, baseUrl, options } = needs
  const instanceId = uuidv7(clock.now(), random)
  const wake = wakes({ bus, instanceId, log })
  const told = news(wake)
  const changes = createChangePoller(transactions.pool)
  const { leaseMs } = options
  const kinds = new Map<string, TaskKind>()
  const committing = committer({ transactions, clock, random, instanceId, leaseMs, baseUrl })
  const accepting = acceptor({
    transactions,
    committer: committing,
    clock,
    random,
    instanceId,
    leaseMs,
    baseUrl,
  })
  const running = runner({
    transactions,
    committer: committing,
    kinds,
    wake,
    news: told,
    clock,
    random,
    log,
    instanceId,
    options,
    heartbeats,
  })
  const timetable = schedules({ transactions, acceptor: accepting, kinds, wake, clock, random, log })

  return {
    instanceId,
    ledger,
    wake,
    transact: transactions.run,
    lanes: lanes(transactions),
    tasks: tasksOf({ transactions, wake, clock }),
    events: eventsOf({ transactions, wake, news: told, changes, clock }),
    enqueue: accepting.enqueue,
    schedules: timetable,
    watcher: watcher({ transactions, acceptor: accepting, kinds, wake, clock, log, instanceId, leaseMs }),

    /** From here on tasks run. `kinds` are those without a route of their own. */
    engine(operations: readonly Operation[], internal: readonly TaskKind[]) {
      const routed = operations.flatMap((operation) =>
        operation.entry.kind === 'task'
          ? [kindOf(operation as Extract<Operation, { entry: { kind: 'task' } }>)]
          : [],
      )
      for (const kind of [...routed, ...internal]) kinds.set(kindKey(kind.kind, kind.version), kind)
      const steps = [...kinds].map(([key, kind]) => [key, Object.keys(kind.steps).sort()] as const)
      log.debug({ steps: Object.fromEntries(steps.sort()) }, 'task kinds')
      const call = caller({
        transactions,
        acceptor: accepting,
        runner: running,
        kinds,
        wake,
        news: told,
        changes,
        clock,
        random,
        baseUrl,
      })
      const start = () => {
        running.start()
        timetable.start()
      }
      return { call, runner: running, start }
    },

    async [Symbol.asyncDispose]() {
      await timetable[Symbol.asyncDispose]()
      await running[Symbol.asyncDispose]()
      await wake[Symbol.asyncDispose]()
    },
  }
}
export type Ground = ReturnType<typeof ground>
