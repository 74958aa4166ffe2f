import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { TimeMemory } from '#store/time-file.ts'
import { createTaskAcceptance, type TaskAcceptance } from './accept-task.ts'
import { type Committer, createCommitter } from './commit.ts'
import { createDatabaseTime, type DatabaseTime } from './database-time.ts'
import { createMoneyHolds, type MoneyHolds } from './money-hold.ts'
import type { Durability } from './replication.ts'
import type { createTaskCounters } from './task-counters.ts'
import { movesMoney } from './task-kinds.ts'
import type { Transactions } from './transactions.ts'

/** The commits of tasks, as the time of the database allows them. */

type HeldCommitsDeps = {
  transactions: Transactions
  clock: Clock
  random: Random
  log: Log
  options: { leaseMs: number }
  memory?: TimeMemory | undefined
  durability: Durability
}
type Parts = { instanceId: string; counters: ReturnType<typeof createTaskCounters> }

/** Shown to the user of a task that goes on without a standby. */
const notReplicatedNote = 'accepted while the database had no standby'

/**
 * Accepts nothing that moves money while it is on hold, and nothing new without the standby that is demanded; remembers
 * what was acknowledged.
 */
const heldAcceptance = (
  acceptance: TaskAcceptance,
  holds: MoneyHolds,
  time: DatabaseTime,
): TaskAcceptance => ({
  ...acceptance,
  async accept(wanted) {
    const { kind, admission } = wanted
    if (movesMoney(kind)) holds.assertFree()
    if (admission.spend?.action.exit === false) time.replication.assertForNewMoney()
    const isNoted = movesMoney(kind) && time.replication.isReplicated() === false
    const data = isNoted ? { note: notReplicatedNote, ...admission.data } : admission.data
    const committed = await acceptance.accept({ ...wanted, admission: { ...admission, data } })
    time.acknowledge(committed.task)
    return committed
  },
})
const acknowledgedCommits = (committer: Committer, time: DatabaseTime): Committer => ({
  ...committer,
  async step(task, result) {
    const committed = await committer.step(task, result)
    if (committed) time.acknowledge(committed.task)
    return committed
  },
})

export function createHeldCommits(deps: HeldCommitsDeps, { instanceId, counters }: Parts) {
  const { transactions, clock, random, log, options } = deps
  const holds = createMoneyHolds()
  const time = createDatabaseTime({
    pool: transactions.pool,
    holds,
    clock,
    random,
    log,
    memory: deps.memory,
    durability: deps.durability,
    leaseMs: options.leaseMs,
  })
  const stepCommitter = acknowledgedCommits(
    counters.ofCommitter(createCommitter({ transactions, clock, random })),
    time,
  )
  const acceptance = heldAcceptance(
    counters.ofAcceptance(createTaskAcceptance({ transactions, clock, random, instanceId })),
    holds,
    time,
  )
  return { holds, time, stepCommitter, acceptance }
}
