import type pg from 'pg'
import { createTaskIntake, type TaskIntake } from '#durable/accept/task-intake.ts'
import { type Committer, createCommitter } from '#durable/run/step-committer.ts'
import type { createTaskCounters } from '#durable/task/task-counters.ts'
import { movesMoney } from '#durable/task/task-kinds.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { WitnessFile } from '#store/database-witness-file.ts'
import { createDatabaseTime, type DatabaseTime } from './detect-lost-commits.ts'
import { createMoneyHolds, type MoneyHolds } from './money-hold.ts'
import { createReplication, type Durability, type Replication } from './replication.ts'

type HeldCommitsDeps = {
  transactions: Transactions
  heartbeats: pg.Pool
  clock: Clock
  random: Random
  log: Log
  options: { leaseMs: number; replicationGraceMs?: number | undefined }
  witnessFile?: WitnessFile | undefined
  durability: Durability
}
type Parts = { instanceId: string; counters: ReturnType<typeof createTaskCounters> }

/** Refuses money that is on hold, and new money without a required standby; records acknowledged acceptances. */
const heldAcceptance = (
  intake: TaskIntake,
  { holds, time, replication }: { holds: MoneyHolds; time: DatabaseTime; replication: Replication },
): TaskIntake => ({
  ...intake,
  async accept(wanted) {
    if (movesMoney(wanted.kind)) holds.assertFree()
    replication.assertFor(wanted.admission)
    const committed = await intake.accept(wanted)
    time.acknowledge(committed.task)
    return committed
  },
  async resume(waiting, approved) {
    replication.assertFor(approved.admission)
    const committed = await intake.resume(waiting, approved)
    if (committed) time.acknowledge(committed.task)
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
  const replication = createReplication({
    db: deps.heartbeats,
    durability: deps.durability,
    log,
    graceMs: options.replicationGraceMs,
  })
  const time = createDatabaseTime({
    pool: transactions.pool,
    holds,
    clock,
    random,
    log,
    witnessFile: deps.witnessFile,
    leaseMs: options.leaseMs,
  })
  const stepCommitter = acknowledgedCommits(
    counters.ofCommitter(createCommitter({ transactions, clock, random })),
    time,
  )
  const intake = heldAcceptance(
    counters.ofIntake(
      createTaskIntake({
        transactions,
        clock,
        random,
        instanceId,
        isReplicated: replication.isReplicated,
      }),
    ),
    { holds, time, replication },
  )
  return { holds, time: { ...time, replication }, stepCommitter, intake }
}
