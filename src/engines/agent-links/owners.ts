import { later } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import { type LockOptions, type Owner, type OwnerRow, ownerOf } from '#store/person-of-user.ts'
import { type Queryable, query } from '#store/query.ts'

/** A person decides for the person's own account and for the agents that are linked to that account. */

/**
 * Returns the end of the first period of a link, in which the link allows less because a thief of the agent's key may
 * have made it. Returns undefined after that period.
 */
export function linkCoolsUntil(
  linkedAt: Date | null,
  { now, coolingMs }: { now: Date; coolingMs: number },
): Date | undefined {
  const until = linkedAt && later(linkedAt, coolingMs)
  return until && until > now ? until : undefined
}

/** Throws while a link is so new that it allows less than a later one; `sentence` says what the link allows, and from when on. */
export function assertEstablished(
  linkedAt: Date | null,
  at: { now: Date; coolingMs: number },
  sentence: (until: string) => string,
): void {
  const until = linkCoolsUntil(linkedAt, at)
  if (until === undefined) return
  throw new Fault('conflict', `The agent was linked a short time ago: ${sentence(until.toISOString())}`, {
    extras: { status: 'young_link', reason: `linked at ${linkedAt?.toISOString()}` },
  })
}

/**
 * Throws if the holder of the agent's key contests the link. Until the link has ended or the holder withdraws, no limit
 * or permission of the agent can be widened through it.
 */
export function assertUncontested(contestedAt: Date | null): void {
  if (contestedAt)
    throw new Fault(
      'conflict',
      'The holder of the key of this agent contests the link: nothing is loosened through it',
      {
        extras: { status: 'contested_link', reason: `contested at ${contestedAt.toISOString()}` },
      },
    )
}

/** Returns the users for whom a user decides: the user itself, then its linked agents, oldest link first. */
export async function usersOf(db: Queryable, userId: string): Promise<string[]> {
  const rows = await query<{ user_id: string }>(
    db,
    'select user_id from agent_link where person_id = $1 order by linked_at, user_id',
    [userId],
  )
  return [userId, ...rows.map((row) => row.user_id)]
}

/** The user for whom a call acts; `name` is set for a linked agent. */
export type Subject = Owner & { name: string | null }
/** Returns the caller, or the linked agent that the call names. An agent of somebody else is treated as missing. */
export async function subjectOf(
  db: Queryable,
  { userId, agentId }: Pick<Caller, 'userId' | 'agentId'>,
  forAgent: string | undefined,
  { lock = false }: LockOptions = {},
): Promise<Subject> {
  if (forAgent === undefined || forAgent === agentId)
    return { userId, agentId, linkedAt: null, contestedAt: null, name: null }
  const [row] = await query<OwnerRow & { name: string | null }>(
    db,
    `select u.id, u.agent_id, l.linked_at, l.contested_at, coalesce(l.name, u.name) as name from app_user u join agent_link l on l.user_id = u.id
     where u.agent_id = $1 and l.person_id = $2${lock ? ' for share of l' : ''}`,
    [forAgent, userId],
  )
  if (!row) throw notFound('agent', 'agents_list')
  return { ...ownerOf(row), name: row.name }
}
