import type { Transactions } from '#durable/transactions.ts'
import type { Deletion } from '#durable/upkeep/retention.ts'
import { createLatch } from '#kernel/async/latch.ts'
import { repeat } from '#kernel/async/repeat.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { query } from '#store/query.ts'
import { mailboxTopic, type Notifier } from './notifier.ts'

/** Messages to streams that another instance may hold. The caller seals the bytes of the messages. */

type Deps = { transactions: Transactions; notifier: Notifier; clock: Clock }
export type Mailbox = {
  /** Yields each message once, and takes a message from the store only when it is requested; ends with the signal. */
  messages(signal: AbortSignal): AsyncIterable<Uint8Array>
} & AsyncDisposable
export type Mailboxes = {
  /** Opens a mailbox; returns undefined if the user already has the maximum number of open mailboxes. */
  open(id: string, userId: string): Promise<Mailbox | undefined>
  isOpen(id: string, userId: string): Promise<boolean>
  send(id: string, sealed: Uint8Array): Promise<boolean>
}

const mailboxesPerUser = 10
const messagesMax = 100
/** A mailbox accepts a further message while its waiting messages have fewer bytes than this. */
const bytesMax = 4 * 1024 * 1024
/** A mailbox that its instance has not renewed for this long counts as closed. */
const seenMsMax = 60_000
const renewMs = 15_000
/** The longest delay of a message whose hint was lost. */
const pollMs = 1_000

export function createMailboxes({ transactions: { pool, run }, notifier, clock }: Deps): Mailboxes {
  const since = () => later(clock.now(), -seenMsMax)
  const takeFirst = async (id: string): Promise<Uint8Array | undefined> => {
    const [first] = await query<{ sealed: Uint8Array }>(
      pool,
      `delete from mailbox_message where id =
         (select id from mailbox_message where mailbox_id = $1 order by id limit 1) returning sealed`,
      [id],
    )
    return first?.sealed
  }

  return {
    async open(id, userId) {
      const opened = await run(async (tx) => {
        // Openings of one user wait for each other, so that the limit of mailboxes is exact.
        await query(tx, `select pg_advisory_xact_lock(hashtextextended('mailbox ' || $1, 0))`, [userId])
        return query(
          tx,
          `insert into mailbox (id, user_id, seen_at) select $1, $2, $3
           where (select count(*) from mailbox where user_id = $2 and seen_at > $4) < $5 returning id`,
          [id, userId, clock.now(), since(), mailboxesPerUser],
        )
      })
      if (opened.length === 0) return undefined
      const renewing = repeat(
        async () =>
          void (await query(pool, 'update mailbox set seen_at = $2 where id = $1', [id, clock.now()])),
        // If the database is away for longer than `seenMsMax`, the mailbox counts as closed.
        { everyMs: renewMs, onError: () => undefined },
      )
      return {
        async *messages(signal) {
          using latch = createLatch(signal)
          using _listening = notifier.on(mailboxTopic(id), () => latch.set())
          while (!signal.aborted) {
            latch.reset()
            const sealed = await takeFirst(id)
            if (sealed) yield sealed
            else await latch.wait(pollMs)
          }
        },
        async [Symbol.asyncDispose]() {
          await renewing[Symbol.asyncDispose]()
          await query(pool, 'delete from mailbox where id = $1', [id])
        },
      }
    },
    async isOpen(id, userId) {
      const rows = await query(
        pool,
        'select 1 from mailbox where id = $1 and user_id = $2 and seen_at > $3',
        [id, userId, since()],
      )
      return rows.length > 0
    },
    async send(id, sealed) {
      const sent = await query(
        pool,
        `insert into mailbox_message (mailbox_id, sealed) select m.id, $2 from mailbox m
         where m.id = $1 and m.seen_at > $3
           and (select count(*) < $4 and coalesce(sum(octet_length(sealed)), 0) < $5
                from mailbox_message where mailbox_id = $1) returning id`,
        [id, sealed, since(), messagesMax, bytesMax],
      )
      if (sent.length > 0) notifier.notify([mailboxTopic(id)])
      return sent.length > 0
    },
  }
}

export const mailboxDeletion: Deletion = {
  name: 'retention of mailboxes',
  ageMs: 5 * seenMsMax,
  text: `delete from mailbox where id in
    (select id from mailbox where seen_at < $1 order by seen_at limit $2) returning id`,
}
