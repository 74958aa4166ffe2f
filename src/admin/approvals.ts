import { approvalEvent } from '#durable/approvals/approval-events.ts'
import { approvalById, type Decision, takeDecision } from '#durable/approvals/approval-store.ts'
import { appendEvents } from '#durable/events/append-events.ts'
import { readyTopic, userTopic } from '#durable/events/notifier.ts'
import { isUuid } from '#kernel/id.ts'
import { operatorText } from '#kernel/task/operator-text.ts'
import { personOf } from '#store/person-of-user.ts'
import { query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { userOf } from './users.ts'

/** Requests that wait for a person, and the decisions of the operator in place of that person. */

const rowsMax = 1_000

const listApprovals: AdminCommand['run'] = async (session, args) => {
  const { pool } = session.database
  const name = args.optional('user')
  const id = name === undefined ? null : (await userOf(pool, name)).id
  await session.record(pool, { command: 'approvals list', subject: id ?? undefined })
  const text = `select a.approval_id, a.task_id, u.agent_id, p.agent_id as person_id, a.intent ->> 'text' as request,
      a.intent ->> 'usd' as usd, a.intent ->> 'rule' as rule, a.intent -> 'details' as details, a.requested_at, a.expires_at
    from approval a join task t on t.id = a.task_id join app_user u on u.id = a.user_id
    left join agent_link l on l.user_id = a.user_id
    left join app_user p on p.id = case when u.auth_scheme = 'oauth' then u.id else l.person_id end
    where a.expires_at > $2 and a.decision is null and t.status in ('pending', 'running') and not t.cancel_requested
      and ($1::uuid is null or u.id = $1 or p.id = $1)
    order by a.requested_at desc limit ${rowsMax}`
  session.print(await query(pool, text, [id, session.clock.now()]))
}

/** Stores the operator's decision, which a running gateway carries out like a decision of the person. */
const decide =
  (command: string, decision: Extract<Decision, 'approved' | 'declined'>): AdminCommand['run'] =>
  async (session, args) => {
    const { database, clock } = session
    const id = args.positional('approval')
    const { readers, text } = await database.transaction(async (tx) => {
      const known = isUuid(id) ? await approvalById(tx, id) : undefined
      if (!known) throw new UsageError(`There is no request ${id}.`)
      const { user_id: userId, intent } = known
      if (decision === 'approved' && intent.rule !== 'confirmation')
        throw new UsageError('What moves money is approved by its person alone.')
      const now = clock.now()
      const { isFirst } = await takeDecision(tx, known, { decision, by: operatorText(session), at: now })
      if (!isFirst) throw new UsageError(`The request ${id} waits no more.`)
      await session.record(tx, {
        command,
        subject: userId,
        details: { approval_id: id },
      })
      const person = await personOf(tx, userId)
      const readers = [...new Set([userId, person?.userId ?? userId])].sort()
      const event = approvalEvent('approval.decided', { ...known, decision, decided_by: 'operator' })
      for (const reader of readers) await appendEvents(tx, reader, [event], now)
      return { readers, text: intent.text }
    })
    await session.notify([readyTopic, ...readers.map(userTopic)])
    session.printLine(`${decision === 'approved' ? 'Confirmed' : 'Declined'}: ${text}`)
  }

export const approvalCommands: readonly AdminCommand[] = [
  {
    name: 'approvals list',
    positionals: ['[<user>]'],
    changes: false,
    summary: 'list the requests that wait for a person, of all or of one user',
    run: listApprovals,
  },
  {
    name: 'approvals confirm',
    positionals: ['<approval>'],
    summary: 'confirm an act that allows more than before, in place of its person',
    run: decide('approvals confirm', 'approved'),
  },
  {
    name: 'approvals decline',
    positionals: ['<approval>'],
    summary: 'decline a request that waits',
    run: decide('approvals decline', 'declined'),
  },
]
