import { type Clock, later } from '#kernel/clock.ts'
import { sha256 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { MailItem, MailKind } from './mail-text.ts'

/** Changes of which people are notified, stored by the transactions that make them. */

/** The most changes that are listed in one message; further ones are only counted. */
export const itemsMax = 20
/** The shortest time between two messages of one kind to one person. */
export const pauseMs = 60_000

type StoredItem = { text: string; at: string; effective_at: string | null }
/** A message that is being sent. It stays the same until it is accepted, so that a repeated send is recognised. */
export type Sending = { key: string; begun_at: string; items: StoredItem[]; more: number }
export type ClaimedMail = {
  person_id: string
  kind: MailKind
  sending: Sending
  attempts: number
  email: string
}

export const itemsOf = ({ items }: Sending): MailItem[] =>
  items.map(({ text, at, effective_at }) => ({
    text,
    at: new Date(at),
    effectiveAt: effective_at === null ? null : new Date(effective_at),
  }))

/** Adds a change to the messages for a person. It locks one row, which must be the transaction's last lock. */
export async function addToMailQueue(
  tx: Tx,
  { personId, kind, item }: { personId: string; kind: MailKind; item: MailItem },
): Promise<void> {
  const { text, at, effectiveAt } = item
  const stored: StoredItem = {
    text,
    at: at.toISOString(),
    effective_at: effectiveAt?.toISOString() ?? null,
  }
  await query(
    tx,
    `insert into person_mail as m (person_id, kind, items, due_at)
       select id, $2, jsonb_build_array($3::jsonb), $4::timestamptz from person where id = $1
     on conflict (person_id, kind) do update set
       items = case when jsonb_array_length(m.items) < ${itemsMax} then m.items || excluded.items else m.items end,
       more = m.more + case when jsonb_array_length(m.items) < ${itemsMax} then 0 else 1 end,
       due_at = coalesce(m.due_at, greatest(excluded.due_at, m.sent_at + make_interval(secs => ${pauseMs / 1_000})))`,
    [personId, kind, JSON.stringify(stored), at],
  )
}

type Claim = { now: Date; leaseMs: number; max: number }
/** Claims the messages that are due. No other instance takes them before the lease ends. */
export async function claimMails(db: Queryable, { now, leaseMs, max }: Claim): Promise<ClaimedMail[]> {
  const claimed = await query<Omit<ClaimedMail, 'sending'> & { sending: Omit<Sending, 'key'> }>(
    db,
    `with due as (
       select person_id, kind from person_mail where due_at <= $1 order by due_at limit $3 for update skip locked)
     update person_mail m set due_at = $2, attempts = m.attempts + 1,
       sending = coalesce(m.sending, jsonb_build_object('begun_at', $4::text, 'items', m.items, 'more', m.more)),
       items = case when m.sending is null then '[]'::jsonb else m.items end,
       more = case when m.sending is null then 0 else m.more end
     from due join person p on p.id = due.person_id
     where m.person_id = due.person_id and m.kind = due.kind
     returning m.person_id, m.kind, m.sending, m.attempts, p.email`,
    [now, later(now, leaseMs), max, now.toISOString()],
  )
  return claimed.map(({ sending, ...row }) => ({
    ...row,
    // At most one message of a kind to a person begins in a minute, so its key is unique.
    sending: { ...sending, key: sha256(`${row.person_id} ${row.kind} ${sending.begun_at}`) },
  }))
}

type Named = Pick<ClaimedMail, 'person_id' | 'kind' | 'sending'>
const ofMessage = "person_id = $1 and kind = $2 and sending is not null and sending->>'begun_at' = $3"
const namesOf = ({ person_id, kind, sending }: Named) => [person_id, kind, sending.begun_at]

/**
 * Records that a message was sent or given up; changes that were queued meanwhile follow after a minute. Returns false
 * if another instance recorded it before.
 */
export async function settleMail(db: Queryable, mail: Named, { now }: { now: Date }): Promise<boolean> {
  const rows = await query(
    db,
    `update person_mail set sending = null, attempts = 0, sent_at = $4,
       due_at = case when items = '[]'::jsonb then null else $5::timestamptz end
     where ${ofMessage} returning person_id`,
    [...namesOf(mail), now, later(now, pauseMs)],
  )
  return rows.length === 1
}

export async function postponeMail(db: Queryable, mail: Named, until: Date): Promise<void> {
  await query(db, `update person_mail set due_at = $4 where ${ofMessage} returning person_id`, [
    ...namesOf(mail),
    until,
  ])
}

export type MailQueue = {
  /** Adds a change in the transaction that makes it, so that its message survives a crash after the commit. */
  add(tx: Tx, personId: string, kind: MailKind, change: { text: string; effectiveAt?: Date }): Promise<void>
  /** Sends queued messages without waiting for the poll; called after the commit of `add`, and cannot fail. */
  wake(): void
}

/** The queue of a gateway that has no people, or no way to write to them. */
export const silentMailQueue: MailQueue = { add: async () => {}, wake: () => {} }

export const createMailQueue = ({ clock, wake }: { clock: Clock; wake: () => void }): MailQueue => ({
  add: (tx, personId, kind, { text, effectiveAt }) =>
    addToMailQueue(tx, {
      personId,
      kind,
      item: { text, at: clock.now(), effectiveAt: effectiveAt ?? null },
    }),
  wake,
})
