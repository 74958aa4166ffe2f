import { type MailQueue, silentMailQueue } from '#engines/person-mails/mail-queue.ts'
import { createMailer, type Mailer } from '#engines/person-mails/mailer.ts'
import { mailDeletion } from '#engines/person-mails/retention.ts'
import type { SendEmail } from '#kernel/wire/email.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { createEmailService } from '#upstreams/email/email.ts'
import type { Core } from './core.ts'
import { hasMails, ownPages } from './page-urls.ts'
import type { Section } from './section.ts'

export type MailOverrides = {
  /** Interval of the poll for messages that wait, and for those of instances that died. */
  mailPollMs?: number
}

const pollMsDefault = 10_000

/** Messages go to the configured service; without one, which only the local environment allows, they are printed. */
function emailOf({ config, random, log, printLine }: Core, net: Net): SendEmail {
  const { EMAIL_URL: url, EMAIL_TOKEN: token } = config
  const newKey = () => Buffer.from(random.bytes(16)).toString('hex')
  if (url !== undefined) return createEmailService({ url, token, net, log, newKey })
  return async ({ to, subject, text }) => {
    const lines = text.split('\n').filter((line) => line !== '')
    for (const line of [`email  ${to}: ${subject}`, ...lines.map((each) => `       ${each}`)]) printLine(line)
  }
}

export type Mails = Section & { sendEmail: SendEmail; mailQueue: MailQueue; mailer: Mailer | undefined }

/** Codes are sent at once; messages about accounts go through the queue. */
export function openMails(core: Core, net: Net, { mailPollMs = pollMsDefault }: MailOverrides): Mails {
  const { config, db, clock, log, baseUrl } = core
  const sendEmail = emailOf(core, net)
  const deletions = [mailDeletion]
  if (!hasMails(config)) return { sendEmail, mailQueue: silentMailQueue, mailer: undefined, deletions }
  const mailer = createMailer({
    db,
    clock,
    log,
    sendEmail,
    gateway: baseUrl,
    accountPage: () => ownPages(config, baseUrl)!.account,
    pollMs: mailPollMs,
  })
  return { sendEmail, mailQueue: mailer.mailQueue, mailer, deletions, starters: [mailer.start] }
}
