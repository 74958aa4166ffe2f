import { appendEvents } from '#durable/append-events.ts'
import { userTopic } from '#durable/notifier.ts'
import { personOf } from '#engines/agent-links/owners.ts'
import { linkEvent } from '#features/agents/link-event.ts'
import { removeLink } from '#features/agents/store.ts'
import { endLink } from '#features/policy/end-link.ts'
import { query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { userOf } from './users.ts'

/** Agents that are linked to people, and what they ask for. */

const rowsMax = 1_000

const listAgents: AdminCommand['run'] = async (session, args) => {
  const { pool } = session.database
  const name = args.optional('user')
  const id = name === undefined ? null : (await userOf(pool, name)).id
  await session.record(pool, { command: 'agents list', subject: id ?? undefined })
  const text = `select u.agent_id, coalesce(l.name, u.name) as name, p.agent_id as person_id, p.email as person, l.linked_at
    from agent_link l join app_user u on u.id = l.user_id join app_user p on p.id = l.person_id
    where $1::uuid is null or l.user_id = $1 or l.person_id = $1 order by l.linked_at desc limit ${rowsMax}`
  session.print(await query(pool, text, [id]))
}

/** As the person would, for one who cannot sign in. */
const unlinkAgent: AdminCommand['run'] = async (session, args) => {
  const { database, clock } = session
  const { id: userId, agent_id: agentId } = await userOf(database.pool, args.positional('agent'))
  const person = await database.transaction(async (tx) => {
    const owner = await personOf(tx, userId, { lock: true })
    const linkedAt = owner?.linkedAt
    if (!owner || !linkedAt || !(await removeLink(tx, { userId, personId: owner.userId, linkedAt })))
      throw new UsageError(`Agent ${agentId} is linked to nobody.`)
    const now = clock.now()
    await endLink(tx, { userId, person: owner }, now)
    await session.record(tx, {
      command: 'agents unlink',
      subject: userId,
      details: { agent_id: agentId, person_id: owner.agentId },
    })
    const event = linkEvent('agent.unlinked', { agentId, person: owner }, 'operator')
    // In one order, since each locks the event log of its user.
    for (const reader of [userId, owner.userId].sort()) await appendEvents(tx, reader, [event], now)
    return owner
  })
  await session.notify([userTopic(userId), userTopic(person.userId)])
  session.printLine(
    `Agent ${agentId} is linked to ${person.agentId} no more; what waited for its time is dropped`,
  )
}

const listApprovals: AdminCommand['run'] = async (session, args) => {
  const { pool } = session.database
  const name = args.optional('user')
  const id = name === undefined ? null : (await userOf(pool, name)).id
  await session.record(pool, { command: 'approvals list', subject: id ?? undefined })
  const text = `select a.approval_id, a.task_id, u.agent_id, p.agent_id as person_id, a.intent ->> 'text' as request,
      a.intent ->> 'usd' as usd, a.intent ->> 'rule' as rule, a.requested_at, a.expires_at
    from approval a join task t on t.id = a.task_id join app_user u on u.id = a.user_id
    left join agent_link l on l.user_id = a.user_id
    left join app_user p on p.id = case when u.auth_scheme = 'oauth' then u.id else l.person_id end
    where a.expires_at > $2 and a.decision is null and t.status in ('pending', 'running') and not t.cancel_requested
      and ($1::uuid is null or u.id = $1 or p.id = $1)
    order by a.requested_at desc limit ${rowsMax}`
  session.print(await query(pool, text, [id, session.clock.now()]))
}

export const agentCommands: readonly AdminCommand[] = [
  {
    name: 'agents list',
    positionals: ['[<user>]'],
    options: {},
    changes: false,
    summary: 'list the agents that are linked to people, or those of one person or agent',
    run: listAgents,
  },
  {
    name: 'agents unlink',
    positionals: ['<agent>'],
    options: {},
    changes: true,
    summary: 'end the link of an agent to its person; raised limits and recipients that wait are dropped',
    run: unlinkAgent,
  },
  {
    name: 'approvals list',
    positionals: ['[<user>]'],
    options: {},
    changes: false,
    summary: 'list the requests of agents that wait for a person, of all or of one user',
    run: listApprovals,
  },
]
