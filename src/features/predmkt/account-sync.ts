import { startPacedJob } from '#kernel/async/paced-job.ts'
import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import { query } from '#store/query.ts'
import type { PredictionAccountRow } from '#store/tables/predmkt.ts'
import { cancelAtVenue } from './cancel-orders.ts'
import { advanceExits, type ExitDeps } from './exits.ts'
import { hasRunningTask, isSuspended } from './store/account-store.ts'
import { readAccount } from './venue-reading.ts'
import { createVenueRedemptions } from './venue-redemptions.ts'

/**
 * Compares accounts with the venue, each on one instance at a time: those with open orders, trades or exits all the
 * time, and others now and then, because another client of the same user may have traded.
 */

const idleMs = 3_000
const busyMs = 500
/** Between two claims while more accounts are due than can be compared at once. */
const fullMs = 50
/** Accounts that are compared at a time, so that a slow one delays no other. */
const atOnceMax = 10
/** An instance that claims an account has so long to compare it. */
const leaseMs = 60_000
const againMs = 2_000
/** An account with nothing open but orders that the venue has lost, or whose key the venue does not know. */
const rareMs = 60_000
/** An account with nothing open is compared again after this time. */
const restMs = 60 * 60_000

type SyncDeps = ExitDeps & { bookRedemptions: ReturnType<typeof createVenueRedemptions> }

export const createAccountSync = (exitDeps: ExitDeps) => ({
  start(): AsyncDisposable {
    const deps: SyncDeps = { ...exitDeps, bookRedemptions: createVenueRedemptions(exitDeps) }
    const running = new Set<Promise<void>>()
    const job = startPacedJob(() => syncDue(deps, running), {
      retryMs: idleMs,
      onError: (error) =>
        deps.log.warn({ error }, 'prediction accounts not compared; the next round tries again'),
    })
    return {
      async [Symbol.asyncDispose]() {
        await job[Symbol.asyncDispose]()
        await Promise.all(running)
      },
    }
  },
})

/** Claims as many accounts as can be compared at once: a lease begins when its account has its turn. */
async function syncDue(deps: SyncDeps, running: Set<Promise<void>>): Promise<number> {
  const { clock, log, isOnHold } = deps
  // A sale that the database has lost would count as one by hand until it is adopted, and exits would give up its shares.
  if (isOnHold()) return idleMs
  const free = atOnceMax - running.size
  if (free === 0) return fullMs
  const rows = await claimDue(deps, free)
  for (const row of rows) {
    const work = syncAccount(deps, row)
      .catch(async (error: unknown) => {
        const level = error instanceof Fault ? 'debug' : 'warn'
        log[level](
          { error, user: row.user_id },
          'prediction account not compared; the next round tries again',
        )
        await setNext(deps, row, later(clock.now(), error instanceof Fault ? againMs : rareMs))
      })
      .catch((error: unknown) =>
        log.warn({ error }, 'prediction account not scheduled; its lease ends by itself'),
      )
      .finally(() => running.delete(work))
    running.add(work)
  }
  if (rows.length === free) return fullMs
  return rows.length > 0 ? busyMs : idleMs
}

/** Claims accounts that are due, and in the room that they leave those that were compared long ago. */
async function claimDue({ db, venue, clock }: ExitDeps, max: number): Promise<PredictionAccountRow[]> {
  const now = clock.now()
  const claim = (due: string, dueAt: Date, count: number) =>
    query<PredictionAccountRow>(
      db,
      `update prediction_account set sync_at = $3 where (user_id, venue) in (
         select user_id, venue from prediction_account a where venue = $1 and ${due}
         limit $4 for update skip locked) returning *`,
      [venue.name, dueAt, later(now, leaseMs), count],
    )
  const rows = await claim('sync_at <= $2 order by sync_at', now, max)
  if (rows.length === max) return rows
  const rested = await claim(
    `sync_at is null and trades_through <= $2 and exists (select from prediction_key k
       where k.user_id = a.user_id and k.venue = a.venue and k.revoked_at is null) order by trades_through`,
    later(now, -restMs),
    max - rows.length,
  )
  return [...rows, ...rested]
}

async function syncAccount(deps: SyncDeps, account: PredictionAccountRow): Promise<void> {
  const { db, venue, keys, clock } = deps
  const userId = account.user_id
  const credentials = await keys.of(userId)
  if (!credentials) return setNext(deps, account, null)
  const now = clock.now()
  let state: Awaited<ReturnType<typeof readAccount>>
  try {
    state = await readAccount(deps, { account, credentials, now })
  } catch (fault) {
    if (!isKeyInvalid(fault)) {
      // A stop-loss does not wait until the venue lists the account again.
      if (fault instanceof Fault) await advance(deps, { account, credentials, now, isRead: false })
      throw fault
    }
    if (await isSuspended(db, userId)) await revokeKey(deps, userId, credentials)
    return setNext(deps, account, later(clock.now(), rareMs))
  }
  const count = await advance(deps, { account, credentials, now, isRead: true })
  const isIdle = state === 'idle' && count === 0
  await deps.bookRedemptions(account, { isIdle, now })
  const isEnding = isIdle && (await isSuspended(db, userId))
  // The account is compared again, because the key ends with the last task.
  const isNeeded = isEnding && (await hasRunningTask(db, userId))
  if (isEnding && !isNeeded) await revokeKey(deps, userId, credentials)
  const afterMs = state === 'lost' && count === 0 ? rareMs : againMs
  await setNext(deps, account, isIdle && !isNeeded ? null : later(clock.now(), afterMs))
}

type Advanced = { account: PredictionAccountRow; credentials: VenueCredentials; now: Date; isRead: boolean }

/** Advances the exits, cancels the orders that none stands for, and returns how many purchases have open exits. */
async function advance(deps: SyncDeps, { account, credentials, now, isRead }: Advanced): Promise<number> {
  const { count, strays } = await advanceExits(deps, account, { now, isRead })
  const cancel = { userId: account.user_id, orderIds: strays, credentials, now }
  if (strays.length > 0) await cancelAtVenue(deps, cancel)
  return count
}

/** The venue does not know the key any more: the set-up makes a new one, and until then nothing can be compared. */
const isKeyInvalid = (fault: unknown): boolean =>
  fault instanceof Fault && fault.extras.reason === 'key_invalid'

/** Ends a suspended user's key at the venue, and then here. Orders and exits that are open need it until they end. */
async function revokeKey(
  { venue, keys, transact }: ExitDeps,
  userId: string,
  credentials: VenueCredentials,
): Promise<void> {
  await venue.deleteKey(credentials).catch((fault: unknown) => {
    // The venue refuses a key that it has deleted already.
    if (!(fault instanceof Fault) || fault.retryable) throw fault
  })
  await transact((tx) => keys.revoke(tx, userId))
}

/** A time that a task has stored meanwhile stays. */
async function setNext(
  { db, venue }: ExitDeps,
  { user_id, sync_at }: PredictionAccountRow,
  next: Date | null,
) {
  await query(
    db,
    `update prediction_account set sync_at = case when sync_at = $3 then $4 else least(sync_at, $4) end
     where user_id = $1 and venue = $2`,
    [user_id, venue.name, sync_at, next],
  )
}
