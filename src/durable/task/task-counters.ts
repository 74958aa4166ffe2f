import type { TaskIntake } from '#durable/accept/task-intake.ts'
import type { Committer } from '#durable/run/step-committer.ts'
import { createCounter, type Metric } from '#kernel/metrics.ts'
import { isEnded, type Task } from './task-row.ts'

export function createTaskCounters() {
  const accepted = createCounter(
    'portico_tasks_accepted_total',
    'Tasks that this instance accepted from requests; those of schedules and triggers count when they end',
  )
  const ended = createCounter('portico_tasks_ended_total', 'Tasks that this instance ended')
  const countIfEnded = <C extends { task: Task } | undefined>(committed: C): C => {
    if (committed && isEnded(committed.task)) {
      const { kind, status, outcome } = committed.task
      ended.add({ kind, status, outcome: outcome ?? 'none' })
    }
    return committed
  }
  return {
    read: (): Metric[] => [accepted.read(), ended.read()],
    ofIntake: (intake: TaskIntake): TaskIntake => ({
      ...intake,
      async accept(wanted) {
        const committed = await intake.accept(wanted)
        accepted.add({ kind: wanted.kind.kind })
        return committed
      },
    }),
    ofCommitter: (committer: Committer): Committer => ({
      ...committer,
      step: async (task, result) => countIfEnded(await committer.step(task, result)),
    }),
  }
}
