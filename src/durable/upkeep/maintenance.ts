import type pg from 'pg'
import { repeat } from '#kernel/async/repeat.ts'
import type { Log } from '#kernel/log.ts'
import { query } from '#store/query.ts'

/** Upkeep work that one instance does for all instances. */
export type MaintenanceJob = {
  name: string
  /** Does a bounded part of the work, which takes seconds at most; returns true if more is left. */
  runBatch(): Promise<boolean>
}

type MaintenanceDeps = {
  pool: pg.Pool
  instanceId: string
  log: Log
  everyMs: number
}

export type Maintenance = {
  /** Runs each job that is due and that no other instance runs, to its end. */
  run(jobs: readonly MaintenanceJob[]): Promise<void>
  /** Runs jobs whenever they are due. After disposal a run ends with its batch. */
  start(jobs: readonly MaintenanceJob[]): AsyncDisposable
}

/** The part of `everyMs` after which a job is due again, so that no instance polls just too early. */
const dueAfter = 0.8
/** The length of the lease on a run. Every batch is shorter; a run that does not renew its lease is taken over. */
const leaseSeconds = 60

/** Claims the jobs that are due. A start or lease in the future is from a clock that was set back, and is void. */
const claimSql = `
insert into maintenance_run as m (name, run, owner, started_at, lease_until)
  select name, 1, $2, clock_timestamp(), clock_timestamp() + make_interval(secs => $4)
    from unnest($1::text[]) as wanted (name) order by name
on conflict (name) do update
  set run = m.run + 1, owner = excluded.owner, started_at = excluded.started_at, lease_until = excluded.lease_until
  where case when m.lease_until is null
      then clock_timestamp() not between m.started_at and m.started_at + make_interval(secs => $3)
      else clock_timestamp() not between m.lease_until - make_interval(secs => $4) and m.lease_until end
returning name, run`

type Run = { name: string; run: number }

const renew = async (pool: pg.Pool, { name, run }: Run): Promise<boolean> => {
  const text = `update maintenance_run set lease_until = clock_timestamp() + make_interval(secs => $3)
    where name = $1 and run = $2 returning name`
  return (await query(pool, text, [name, run, leaseSeconds])).length > 0
}

/** Ends a run: another instance may take over an unfinished run at once, and a failed run in the next interval. */
const end = async (pool: pg.Pool, { name, run }: Run, how: 'complete' | 'failed' | 'unfinished') => {
  const text = `update maintenance_run
    set lease_until = case $3 when 'unfinished' then clock_timestamp() end,
      ended_at = case $3 when 'complete' then clock_timestamp() else ended_at end
    where name = $1 and run = $2 returning name`
  await query(pool, text, [name, run, how])
}

type Claimed = { job: MaintenanceJob; current: Run }

export function createMaintenance({ pool, instanceId, log, everyMs }: MaintenanceDeps): Maintenance {
  let stopped = false
  const claimDue = async (jobs: readonly MaintenanceJob[]): Promise<Claimed[]> => {
    const names = jobs.map(({ name }) => name)
    const dueSeconds = (everyMs * dueAfter) / 1_000
    const claimed = await query<Run>(pool, claimSql, [names, instanceId, dueSeconds, leaseSeconds])
    return claimed.map((current) => ({ job: jobs.find(({ name }) => name === current.name)!, current }))
  }
  const runToEnd = async ({ job, current }: Claimed): Promise<void> => {
    try {
      while (await job.runBatch()) {
        if (stopped) return await end(pool, current, 'unfinished')
        if (!(await renew(pool, current))) return
      }
    } catch (error) {
      await end(pool, current, 'failed')
      throw error
    }
    await end(pool, current, 'complete')
  }
  return {
    async run(jobs) {
      await Promise.all((await claimDue(jobs)).map(runToEnd))
    },
    start(jobs) {
      const running = new Set<Promise<void>>()
      const warn = (job: string) => (error: unknown) => {
        if (!stopped) log.warn({ error, job }, 'maintenance failed; it runs again after the next interval')
      }
      // The runs are not awaited here, so that a long one does not delay other jobs.
      const look = async () => {
        for (const claimed of await claimDue(jobs)) {
          const ended = runToEnd(claimed)
            .catch(warn(claimed.job.name))
            .finally(() => running.delete(ended))
          running.add(ended)
        }
      }
      const repetition = repeat(look, { everyMs, onError: warn('claim') })
      return {
        async [Symbol.asyncDispose]() {
          stopped = true
          await repetition[Symbol.asyncDispose]()
          await Promise.all(running)
        },
      }
    },
  }
}
