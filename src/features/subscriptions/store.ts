import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { PlanCheckoutRow, PlanInvoiceRow, PlanSubscriptionRow } from '#store/tables/subscriptions.ts'

/** While a payer may be paying, so that credits come within five minutes even if every event is lost. */
export const eagerSeconds = 120
export const daySeconds = 86_400

export const findCheckout = (
  db: Queryable,
  userId: string,
  intent: string,
): Promise<PlanCheckoutRow | undefined> =>
  fetchOne(
    db,
    builder
      .selectFrom('plan_checkout')
      .selectAll()
      .where('user_id', '=', userId)
      .where('intent', '=', intent),
  )

export const checkoutById = (db: Queryable, id: string): Promise<PlanCheckoutRow | undefined> =>
  fetchOne(db, builder.selectFrom('plan_checkout').selectAll().where('id', '=', id))

/** Returns the main subscription that has not ended. */
export const currentSubscription = (
  db: Queryable,
  userId: string,
): Promise<PlanSubscriptionRow | undefined> =>
  fetchOne(
    db,
    builder
      .selectFrom('plan_subscription')
      .selectAll()
      .where('user_id', '=', userId)
      .where('role', '=', 'main')
      .where('ended_at', 'is', null),
  )

/** Returns the present main subscription, or the one that ended last. */
export const lastSubscription = (db: Queryable, userId: string): Promise<PlanSubscriptionRow | undefined> =>
  fetchOne(
    db,
    builder
      .selectFrom('plan_subscription')
      .selectAll()
      .where('user_id', '=', userId)
      .where('role', '=', 'main')
      .orderBy((eb) => eb.case().when('ended_at', 'is', null).then(0).else(1).end())
      .orderBy('created_at', 'desc')
      .limit(1),
  )

const shownMax = 24
export const invoicesOfUser = (db: Queryable, userId: string): Promise<PlanInvoiceRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('plan_invoice')
      .selectAll()
      .where('user_id', '=', userId)
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(shownMax),
  )

/** Takes the next number in the order of readings. Events that come after it cause another reading. */
export async function beginReading(db: Queryable, objectId: string): Promise<bigint> {
  await query(db, 'update plan_watch set queued_at = null where id = $1 and queued_at is not null', [
    objectId,
  ])
  const [row] = await query<{ reading: bigint }>(db, `select nextval('plan_reading_seq') as reading`)
  return row!.reading
}

type Watch = { id: string; userId: string; nextAt: Date; everySeconds: number; eagerUntil?: Date }
/** Begins to watch an object, or has it read earlier. */
export const watch = async (tx: Tx, { id, userId, nextAt, everySeconds, eagerUntil }: Watch): Promise<void> =>
  void (await query(
    tx,
    `insert into plan_watch (id, user_id, next_at, every_seconds, eager_until) values ($1, $2, $3, $4, $5)
     on conflict (id) do update set next_at = least(plan_watch.next_at, excluded.next_at),
       eager_until = coalesce(excluded.eager_until, plan_watch.eager_until)`,
    [id, userId, nextAt, everySeconds, eagerUntil ?? null],
  ))

/** Sets how often an object is read from now on; null ends the readings that no event asks for. */
export const setInterval = async (
  tx: Tx,
  id: string,
  { everySeconds, latestAt }: { everySeconds: number | null; latestAt: Date | null },
): Promise<void> =>
  void (await query(
    tx,
    `update plan_watch set every_seconds = $2, next_at = case when $2::integer is null then next_at
       else least(coalesce(next_at, $3), $3) end where id = $1`,
    [id, everySeconds, latestAt],
  ))

/** Keeps on reading a known subscription that the provider does not find: its key may be that of another account. */
export const unwatchUnknown = async (tx: Tx, id: string): Promise<void> =>
  void (await query(
    tx,
    'delete from plan_watch where id = $1 and not exists (select from plan_subscription where id = $1)',
    [id],
  ))

export const unwatch = async (tx: Tx, id: string): Promise<void> =>
  void (await query(tx, 'delete from plan_watch where id = $1', [id]))
