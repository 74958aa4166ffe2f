import { appendEvents } from '#durable/events/append-events.ts'
import { taskTopic, userTopic } from '#durable/events/notifier.ts'
import { asTask, type Task } from '#durable/task/task-row.ts'
import { addFoundPayment, foundTypes } from '#features/swap/settle/operator-found-payment.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { isUuid } from '#kernel/id.ts'
import { query } from '#store/query.ts'
import { oneOf, UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { paymentOption, unitsOption } from './operator-task-end.ts'

const addPayment: AdminCommand['run'] = async (session, args) => {
  const { config, database, clock } = session
  const id = args.positional('task')
  const type = oneOf('--as', foundTypes, args.text('as'))
  const payment = paymentOption(args)
  const units = unitsOption(args, 'amount')
  const evidence = args.text('evidence')
  if (!payment || units === null || !evidence)
    throw new UsageError('--payment, --amount and --evidence are required.')
  // The import is lazy, because other commands do not need it.
  const { namedChains } = await import('#compose/operator-task-ends.ts')
  const at = clock.now()
  const task = await database
    .transaction(async (tx): Promise<Task> => {
      const rows = isUuid(id) ? await query(tx, 'select * from task where id = $1 for update', [id]) : []
      if (!rows[0]) throw new UsageError(`There is no task ${id}.`)
      const row = asTask(rows[0] as Task)
      if (row.status !== 'failed' && (row.status !== 'completed' || row.outcome !== 'partial'))
        throw new UsageError(
          `Task ${id} has not failed: what ends it is found by its own steps, or by \`tasks end\`.`,
        )
      const swap = { id, userId: row.user_id, createdAt: row.created_at, data: row.data }
      const events = await addFoundPayment({ chains: namedChains(config) }, tx, swap, {
        type,
        payment,
        units,
        at,
      })
      const details = { kind: row.kind, as: type, payment, amount: String(units), evidence }
      await session.record(tx, { command: 'tasks add-payment', subject: id, details })
      await appendEvents(tx, row.user_id, events, at)
      return row
    })
    .catch((error: unknown) => {
      throw error instanceof Fault ? new UsageError(`${error.message}.`) : error
    })
  await session.notify([taskTopic(id, task.user_id), userTopic(task.user_id)])
  session.printLine(`The ${type} is added to task ${id}`)
}

export const taskPaymentCommands: readonly AdminCommand[] = [
  {
    name: 'tasks add-payment',
    positionals: ['<task>'],
    options: { as: 'string', payment: 'string', amount: 'string', evidence: 'string' },
    summary:
      'add a payment that arrived after the end of a swap, --as fill or refund, with --payment <hash>:<log> and --amount in smallest units',
    run: addPayment,
  },
]
