import type { StoredEvent } from '#durable/events/event-log.ts'
import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import type { Deletion } from '#durable/upkeep/retention.ts'
import type { NewSchedule } from '#durable/upkeep/scheduler.ts'
import type { Released } from '#features/discovery/discovery.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { MetricSources } from '#kernel/metrics.ts'
import type { TaskKind } from '#kernel/task/task.ts'

/** Adds to an event the links that HTTP clients get with the event. */
export type ShowEvent = (event: StoredEvent) => unknown

/**
 * What a section of the interface, or a part below it, brings to the gateway; `compose` joins all of them. A section
 * that is not served still deletes its rows by age.
 */
export type Section = Pick<Released, 'part' | 'facts'> & {
  operations?: readonly Operation[]
  /** Tasks that the gateway starts by itself. */
  kinds?: readonly TaskKind[]
  schedules?: readonly ((now: Date) => NewSchedule)[]
  metrics?: MetricSources
  deletions?: readonly Deletion[]
  /** The tables with at most one row per task, which is deleted with its task. */
  taskTables?: readonly string[]
  /** The maintenance that one instance does for all instances. */
  jobs?: readonly MaintenanceJob[]
  /** Jobs that each instance repeats for itself, because they use the key-encryption keys of its own settings. */
  keyJobs?: Readonly<Record<string, () => Promise<void>>>
  /** Each starter begins a loop that runs beside the requests. */
  starters?: readonly ((show: ShowEvent) => AsyncDisposable)[]
}

export type Joined = Required<Omit<Section, 'part' | 'facts'>>

export const joinSections = (sections: readonly Section[]): Joined => ({
  operations: sections.flatMap(({ operations = [] }) => operations),
  kinds: sections.flatMap(({ kinds = [] }) => kinds),
  schedules: sections.flatMap(({ schedules = [] }) => schedules),
  metrics: Object.assign({}, ...sections.map(({ metrics }) => metrics)),
  deletions: sections.flatMap(({ deletions = [] }) => deletions),
  taskTables: sections.flatMap(({ taskTables = [] }) => taskTables),
  jobs: sections.flatMap(({ jobs = [] }) => jobs),
  keyJobs: Object.assign({}, ...sections.map(({ keyJobs }) => keyJobs)),
  starters: sections.flatMap(({ starters = [] }) => starters),
})
