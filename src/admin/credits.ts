import { hasMails } from '#compose/page-urls.ts'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { appendEvents } from '#durable/events/append-events.ts'
import { readyTopic, userTopic } from '#durable/events/notifier.ts'
import { addToMailQueue } from '#engines/person-mails/mail-queue.ts'
import { creditGrant, grantAdmission } from '#features/credits/operator-grant.ts'
import { allowCredits, appText, connectedApps, creditsPerDayMax } from '#features/oauth/connected-apps.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Arguments, UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import type { Session } from './session.ts'
import { resolveStrayPayment } from './stray-payments.ts'
import { userOf } from './users.ts'

/**
 * Grants credits to a user, for a payment that paid for no task or for another reason, and sets how many credits of a
 * user an app may spend in a day.
 */

const grantedMax = 1_000_000

const grant: AdminCommand['run'] = async (session, args) => {
  const { database, transactions, clock, instanceId, reason } = session
  const { id: userId } = await userOf(database.pool, args.positional('user'))
  const credits = creditsOf(args, { min: 1, max: grantedMax })
  const payment = args.text('payment')
  const intake = createTaskIntake({ transactions, clock, random: systemRandom, instanceId })
  const admission = grantAdmission({ credits, reason: reason ?? '' })
  const id = await database.transaction(async (tx) => {
    const taskId = await intake.enqueue(tx, { userId, kind: creditGrant, input: {}, admission })
    if (payment !== undefined) await settlePayment(tx, session, payment)
    const details = { credits, task: taskId, ...(payment !== undefined && { payment }) }
    await session.record(tx, { command: 'credits grant', subject: userId, details })
    return taskId
  })
  await session.notify([readyTopic, userTopic(userId)])
  session.printLine(`User ${userId} gets ${credits} credits by task ${id}, as soon as a gateway runs`)
}

function creditsOf(args: Arguments, { min, max }: { min: number; max: number }): string {
  const credits = args.positional('credits')
  if (!/^(0|[1-9]\d{0,6})$/.test(credits) || Number(credits) < min || Number(credits) > max)
    throw new UsageError(`The credits must be a whole number of ${min} to ${max}.`)
  return credits
}

const allowApp: AdminCommand['run'] = async (session, args) => {
  const { database, clock, config } = session
  const { id: userId } = await userOf(database.pool, args.positional('user'))
  const clientId = args.positional('app')
  const credits = creditsOf(args, { min: 0, max: creditsPerDayMax })
  const perDay = Number(credits)
  await database.transaction(async (tx) => {
    const now = clock.now()
    const known = await connectedApps(tx, userId, now)
    if (!known.includes(clientId))
      throw new UsageError(
        `User ${userId} has connected no app ${clientId}. ${known.length === 0 ? 'No app is connected.' : `Connected are ${known.join(', ')}.`}`,
      )
    await allowCredits(tx, userId, { clientId, perDay })
    const details = { app: clientId, credits }
    await session.record(tx, { command: 'credits allow', subject: userId, details })
    const data = { client_id: clientId, credits_per_day: perDay, by: 'operator' }
    const subject = { kind: 'app', id: clientId }
    await appendEvents(tx, userId, [{ type: 'app.credits_changed', subject, data }], now)
    if (!hasMails(config)) return
    const may = perDay === 0 ? 'no more credits of yours' : `up to ${credits} credits of yours a day`
    const text = `${await appText(tx, clientId)} may spend ${may}. An operator set this.`
    const item = { text, at: now, effectiveAt: null }
    await addToMailQueue(tx, { personId: userId, kind: 'app_credits_changed', item })
  })
  await session.notify([userTopic(userId)])
  session.printLine(`The app ${clientId} spends up to ${credits} credits a day of user ${userId}`)
}

/** Settles a payment by credits: the payment and the credits are both committed, or neither is. */
async function settlePayment(tx: Tx, session: Session, payment: string): Promise<void> {
  const [chainId, txHash, logIndex, ...more] = payment.split(':')
  if (!chainId || !txHash || !logIndex || more.length > 0)
    throw new UsageError(
      '--payment must be <chain>:<transaction>:<log>, as `credit-payments list` shows them.',
    )
  await resolveStrayPayment(tx, session, { chainId, txHash, logIndex })
}

export const creditCommands: readonly AdminCommand[] = [
  {
    name: 'credits grant',
    positionals: ['<user>', '<credits>'],
    options: { payment: 'string' },
    summary:
      'give a user credits that do not expire; --payment <chain>:<transaction>:<log> settles a stray payment by them',
    run: grant,
  },
  {
    name: 'credits allow',
    positionals: ['<user>', '<app>', '<credits>'],
    summary:
      'set what a connected app spends of its person on chat in a day, in place of what the person allowed; 0 ends it; the person is notified',
    run: allowApp,
  },
]
