import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { readyTopic, userTopic } from '#durable/events/notifier.ts'
import { creditGrant, grantAdmission } from '#features/credits/grant.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { resolvePayment } from './credit-payments.ts'
import type { Session } from './session.ts'
import { userOf } from './users.ts'

/** Credits that an operator gives a user, for a payment that found no task or for another reason. */

const grantedMax = 1_000_000

const grant: AdminCommand['run'] = async (session, args) => {
  const { database, transactions, clock, instanceId, reason } = session
  const { id: userId } = await userOf(database.pool, args.positional('user'))
  const credits = args.positional('credits')
  if (!/^[1-9]\d{0,6}$/.test(credits) || Number(credits) > grantedMax)
    throw new UsageError(`The credits must be a whole number of 1 to ${grantedMax}.`)
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

/** Settles the payment by the credits: either both are committed, or neither is. */
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
    changes: true,
    summary:
      'give a user credits that do not expire; --payment <chain>:<transaction>:<log> settles a stray payment by them',
    run: grant,
  },
]
