import type { Transact } from '#durable/transactions.ts'
import type { NewSchedule } from '#durable/upkeep/scheduler.ts'
import { venueName } from '#engines/venue/records/order-store.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import { type Admission, defineTaskKind, type JsonObject, type TaskKind, type Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { renewAheadMs } from './key-renewal-lead.ts'
import { admitSetup, type SetupDeps, type SetupTaskData, setupSteps } from './setup.ts'

/** This module renews trading keys before they expire, and at once if an exit has no key that the venue accepts. */

export type KeyRenewalDeps = SetupDeps & {
  db: Queryable
  transact: Transact
  enqueue: (
    tx: Tx,
    task: { userId: string; kind: TaskKind; input: JsonObject; admission: Admission },
  ) => Promise<string>
  clock: Clock
  log: Log
}

const kind = 'venue_key_renewal'
const sweepKind = 'venue_key_renewals'
const everySeconds = 3_600
const batchMax = 50
/** The id of the renewal is fixed, so that all instances share one schedule. */
const scheduleId = '00000000-0000-7000-8000-00000000a9e7'

export const renewalSchedule = (now: Date): NewSchedule => ({
  id: scheduleId,
  kind: sweepKind,
  input: {},
  everySeconds,
  firstAt: now,
})

export function createKeyRenewal(deps: KeyRenewalDeps) {
  const renewalKind = createRenewalKind(deps)
  const renew = (userId: string) => renewKey(deps, renewalKind, userId)
  const sweep = () => renewExpiring(deps, renew)
  const sweepTaskKind: TaskKind = {
    kind: sweepKind,
    version: 1,
    priority: 2,
    steps: {
      async sweep() {
        return { end: 'completed', outcome: 'executed', result: { due: await sweep() } }
      },
    },
    retry: { attemptsMax: 20, firstMs: 1_000, maxMs: 120_000 },
  }
  return { kinds: [renewalKind, sweepTaskKind], renew, sweep }
}
export type KeyRenewal = ReturnType<typeof createKeyRenewal>

function createRenewalKind(deps: KeyRenewalDeps): TaskKind {
  const steps = setupSteps(deps)
  return defineTaskKind<SetupTaskData, 'sign' | 'confirm'>({
    kind,
    version: 1,
    priority: 0,
    steps: {
      sign: steps.sign,
      async confirm(task, context) {
        const result = await steps.confirm(task, context)
        // The venue approves no key for an account without funds; the renewal then ends as `partial`, without an event.
        if (!('end' in result) || result.outcome !== 'executed') return result
        const { api_wallet_address = null, api_wallet_expires_at = null } = result.result ?? {}
        const data = { venue: venueName, api_wallet_address, api_wallet_expires_at }
        const event = {
          type: 'venue.key_renewed',
          subject: { kind: 'agent', id: `${api_wallet_address}` },
          data,
        }
        return { ...result, events: [...(result.events ?? []), event] }
      },
    },
    retry: { attemptsMax: 50, firstMs: 500, maxMs: 60_000 },
  })
}

async function isRenewing(db: Queryable, userId: string): Promise<boolean> {
  const running = await query(
    db,
    `select id from task where user_id = $1 and kind = $2 and status in ('pending', 'running') limit 1`,
    [userId, kind],
  )
  return running.length > 0
}

async function renewKey(deps: KeyRenewalDeps, renewalKind: TaskKind, userId: string): Promise<void> {
  if (await isRenewing(deps.db, userId)) return
  const asker = { userId, principal: 'gateway' as const }
  const admission = await admitSetup(deps, { exit: true })({ rotate: true }, asker)
  await deps.transact(async (tx) => {
    if (!(await isRenewing(tx, userId)))
      await deps.enqueue(tx, { userId, kind: renewalKind, input: {}, admission })
  })
}

/**
 * Renews keys that expire soon or have expired. A user without funds has a new key that the venue keeps
 * rejecting; such users come last and in turn, so that they delay nobody else.
 */
async function renewExpiring(
  { db, clock, log }: KeyRenewalDeps,
  renew: (userId: string) => Promise<void>,
): Promise<number> {
  const rows = await query<{ user_id: string }>(
    db,
    `select due.user_id from agent_wallet due
       left join agent_wallet waiting on waiting.user_id = due.user_id and waiting.venue = due.venue
         and waiting.approved_at is null and waiting.retired_at is null
     where due.venue = $1 and due.approved_at is not null and due.retired_at is null and due.expires_at < $2::timestamptz
     order by waiting.id is not null, case when waiting.id is not null then md5(due.user_id || $2::timestamptz::text) end,
       due.expires_at limit $3`,
    [venueName, later(clock.now(), renewAheadMs), batchMax],
  )
  for (const { user_id: userId } of rows)
    await renew(userId).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      log.warn({ error, userId }, 'trading key not renewed: the next round retries')
    })
  return rows.length
}
