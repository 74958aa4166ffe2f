import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { readyTopic, userTopic } from '#durable/events/notifier.ts'
import { creditGrant, grantAdmission } from '#features/credits/grant.ts'
import { allowCredits, creditsPerDayMax, isConnected } from '#features/oauth/connections.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { resolvePayment } from './credit-payments.ts'
import type { Session } from './session.ts'
import { userOf } from './users.ts'

/** Credits that an operator gives a user, for a payment that found no task or for another reason, and what an app spends. */

const grantedMax = 1_000_000

const grant: AdminCommand['run'] = async (session, args) => {
  const { database, transactions, clock, instanceId, reason } = session
  const { id: userId } = await userOf(database.pool, args.positional('user'))
  const credits = creditsOf(args, grantedMax)
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

function creditsOf(args: Parameters<AdminCommand['run']>[1], max: number): string {
  const credits = args.positional('credits')
  if (!/^[1-9]\d{0,6}$/.test(credits) || Number(credits) > max)
    throw new UsageError(`The credits must be a whole number of 1 to ${max}.`)
  return credits
}

const allowApp: AdminCommand['run'] = async (session, args) => {
  const { database, clock } = session
  const { id: userId } = await userOf(database.pool, args.positional('user'))
  const clientId = args.positional('app')
  const credits = creditsOf(args, creditsPerDayMax)
  await database.transaction(async (tx) => {
    if (!(await isConnected(tx, userId, { clientId, now: clock.now() })))
      throw new UsageError(`User ${userId} has connected no app ${clientId}.`)
    await allowCredits(tx, userId, { clientId, perDay: Number(credits) })
    const details = { app: clientId, credits }
    await session.record(tx, { command: 'credits allow', subject: userId, details })
  })
  session.printLine(`The app ${clientId} spends up to ${credits} credits a day of user ${userId}`)
}

/** The payment is settled by the credits: both are committed, or neither is. */
async function settlePayment(tx: Tx, session: Session, payment: string): Promise<void> {
  const [chainId, txHash, logIndex, ...more] = payment.split(':')
  if (!chainId || !txHash || !logIndex || more.length > 0)
    throw new UsageError(
      '--payment must be <chain>:<transaction>:<log>, as `credit-payments list` shows them.',
    )
  await resolvePayment(tx, session, { chainId, txHash, logIndex })
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
      'set what an app spends of its person on chat in a day, where no page of this gateway connects it',
    run: allowApp,
  },
]
