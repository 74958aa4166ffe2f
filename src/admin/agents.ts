import { appendEvents } from '#durable/events/append-events.ts'
import { userTopic } from '#durable/events/notifier.ts'
import { linkCoolsUntil } from '#engines/agent-links/owners.ts'
import { linkEvent } from '#features/agents/link-event.ts'
import { removeLink, setContested } from '#features/agents/store.ts'
import { endLink } from '#features/policy/unlink-agent.ts'
import { personOf } from '#store/person-of-user.ts'
import { query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { pauseSchedules } from './end-schedules-and-webhooks.ts'
import { userOf } from './users.ts'

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

/** Unlinks an agent like its person would, for a person who cannot sign in. */
const unlinkAgent: AdminCommand['run'] = async (session, args) => {
  const { database, clock } = session
  const { id: userId, agent_id: agentId } = await userOf(database.pool, args.positional('agent'))
  const person = await database.transaction(async (tx) => {
    const owner = await personOf(tx, userId, { lock: true })
    const linkedAt = owner?.linkedAt
    const ended = owner && linkedAt && (await removeLink(tx, { userId, personId: owner.userId, linkedAt }))
    if (!ended) throw new UsageError(`Agent ${agentId} is linked to nobody.`)
    const now = clock.now()
    const coolingMs = session.config.COOLING_SECONDS * 1_000
    // A contested or new link may be that of an attacker. When an operator ends one, the kill switch that the person
    // set and the limits that the person lowered through the link are undone.
    const isUndone = owner.contestedAt !== null || linkCoolsUntil(linkedAt, { now, coolingMs }) !== undefined
    await endLink(tx, { userId, person: owner, linkedAt, isUndone, ...ended }, now)
    await session.record(tx, {
      command: 'agents unlink',
      subject: userId,
      details: { agent_id: agentId, person_id: owner.agentId },
    })
    const event = linkEvent('agent.unlinked', { agentId, person: owner }, 'operator')
    // Events are appended in the order of user ids, because each append locks the event log of a user, and every
    // transaction locks these logs in this order.
    const paused = await pauseSchedules(tx, { userId, personId: owner.userId, at: now })
    for (const reader of [userId, owner.userId].sort())
      await appendEvents(tx, reader, reader === userId ? [event, ...paused] : [event], now)
    return owner
  })
  await session.notify([userTopic(userId), userTopic(person.userId)])
  session.printLine(
    `Agent ${agentId} is linked to ${person.agentId} no more; what waited for its time is dropped`,
  )
}

/** Ends the contest of a link that belongs to the right person, so that this person decides for the agent again. */
const keepAgent: AdminCommand['run'] = async (session, args) => {
  const { database, clock } = session
  const { id: userId, agent_id: agentId } = await userOf(database.pool, args.positional('agent'))
  const person = await database.transaction(async (tx) => {
    const owner = await personOf(tx, userId, { lock: true })
    if (!owner?.contestedAt) throw new UsageError(`Nobody contests a link of agent ${agentId}.`)
    await setContested(tx, userId, null)
    await session.record(tx, { command: 'agents keep', subject: userId, details: { agent_id: agentId } })
    const event = linkEvent('agent.link_accepted', { agentId, person: owner }, 'operator')
    for (const reader of [userId, owner.userId].sort()) await appendEvents(tx, reader, [event], clock.now())
    return owner
  })
  await session.notify([userTopic(userId), userTopic(person.userId)])
  session.printLine(`Agent ${agentId} stays linked to ${person.agentId}; nothing is contested any more`)
}

export const agentCommands: readonly AdminCommand[] = [
  {
    name: 'agents list',
    positionals: ['[<user>]'],
    changes: false,
    summary: 'list the agents that are linked to people, or those of one person or agent',
    run: listAgents,
  },
  {
    name: 'agents unlink',
    positionals: ['<agent>'],
    summary: 'end the link of an agent to its person; raised limits and recipients that wait are dropped',
    run: unlinkAgent,
  },
  {
    name: 'agents keep',
    positionals: ['<agent>'],
    summary: 'end the contest of a link; its person decides for the agent again',
    run: keepAgent,
  },
]
