import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs } from '#kernel/async/backoff.ts'
import { repeat } from '#kernel/async/repeat.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { SendEmail } from '#kernel/wire/email.ts'
import type { Queryable } from '#store/query.ts'
import {
  type ClaimedMail,
  claimMails,
  createMailQueue,
  itemsOf,
  type MailQueue,
  postponeMail,
  settleMail,
} from './mail-queue.ts'
import { mailOf } from './mail-text.ts'

/**
 * Sends the messages of the queue, each at least once: if an instance dies after sending a message and before
 * recording it, another instance sends the same text under the same key.
 */

export type MailerDeps = {
  db: Queryable
  clock: Clock
  log: Log
  sendEmail: SendEmail
  gateway: () => string
  accountPage: () => string
  /** How often the queue is polled for delayed messages, and for messages of instances that died. */
  pollMs: number
}
export type Mailer = {
  mailQueue: MailQueue
  start(): AsyncDisposable
} & AsyncDisposable

const perRun = 10
/** The lease outlasts all attempts to send one message. */
const leaseMs = 60_000
const retry = { firstMs: 60_000, maxMs: 3_600_000 }
/** After this time a message that the mail service has not accepted is dropped, because its news is old. */
const givenUpMs = 86_400_000
/** The time that messages in flight have to finish at a shutdown. */
const drainMs = 2_000

export function createMailer(deps: MailerDeps): Mailer {
  const { db, clock, log, pollMs } = deps
  const warn = (error: unknown) =>
    log.warn({ error }, 'messages to people could not be read; the next poll tries again')
  let isStopped = false
  let running: Promise<void> | undefined
  let isWokenAgain = false
  const sendDue = async (): Promise<void> => {
    for (;;) {
      const claimed = await claimMails(db, { now: clock.now(), leaseMs, max: perRun })
      await Promise.all(claimed.map((mail) => deliver(deps, mail)))
      if (claimed.length < perRun || isStopped) return
    }
  }
  const run = async (): Promise<void> => {
    do {
      isWokenAgain = false
      await sendDue().catch(warn)
    } while (isWokenAgain && !isStopped)
    running = undefined
  }
  const wake = (): void => {
    if (isStopped) return
    isWokenAgain = true
    running ??= run()
  }
  return {
    mailQueue: createMailQueue({ clock, wake }),
    start: () => repeat(async () => wake(), { everyMs: pollMs, immediately: true }),
    async [Symbol.asyncDispose]() {
      isStopped = true
      await Promise.race([running, delay(drainMs, undefined, { ref: false })])
    },
  }
}

async function deliver(deps: MailerDeps, mail: ClaimedMail): Promise<void> {
  const { db, clock, log, sendEmail, gateway, accountPage } = deps
  const { person_id, kind, sending, attempts, email } = mail
  const names = { person_id, kind, attempts }
  try {
    const message = mailOf({
      kind,
      items: itemsOf(sending),
      more: sending.more,
      gateway: gateway(),
      accountPage: accountPage(),
    })
    const failure = await sendEmail({ to: email, ...message, key: sending.key }).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    const now = clock.now()
    if (!failure) return void (await settleMail(db, mail, { now }))
    if (now.getTime() - Date.parse(sending.begun_at) > givenUpMs) {
      log.error({ ...failure, ...names }, 'a message to a person is given up after a day')
      return void (await settleMail(db, mail, { now }))
    }
    log.warn({ ...failure, ...names }, 'a message to a person was not sent; it is tried again')
    await postponeMail(db, mail, later(now, backoffMs(retry, attempts - 1)))
  } catch (error) {
    // The lease on the message ends by itself, and another attempt sends the message under the same key.
    log.warn({ error, ...names }, 'the end of a message to a person was not recorded')
  }
}
