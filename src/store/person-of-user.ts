import { type Queryable, query } from './query.ts'

/** The person who decides for a user: the user itself if it is a person, or the person to whom an agent is linked. */

export type Owner = {
  userId: string
  agentId: string
  /** When the agent was linked to the person, or null if the account is the person's own. */
  linkedAt: Date | null
  /** The time since which the holder of the agent's key contests the link; null if nobody contests it. */
  contestedAt: Date | null
}
export type OwnerRow = { id: string; agent_id: string; linked_at: Date | null; contested_at: Date | null }

export type LockOptions = {
  /** Whether nobody can unlink the agent until the end of the transaction. */
  lock?: boolean
}

/** Returns the person who decides for a user, or undefined for an agent that is linked to nobody. */
export async function personOf(
  db: Queryable,
  userId: string,
  { lock = false }: LockOptions = {},
): Promise<Owner | undefined> {
  // The outer join of the query below cannot lock rows, so the link is locked by a statement of its own.
  if (lock) await query(db, 'select from agent_link where user_id = $1 for share', [userId])
  const [row] = await query<OwnerRow>(
    db,
    `select p.id, p.agent_id, l.linked_at, l.contested_at from app_user u
     left join agent_link l on l.user_id = u.id
     join app_user p on p.id = case when u.auth_scheme = 'oauth' then u.id else l.person_id end
     where u.id = $1`,
    [userId],
  )
  return row && ownerOf(row)
}

export const ownerOf = ({ id, agent_id, linked_at, contested_at }: OwnerRow): Owner => ({
  userId: id,
  agentId: agent_id,
  linkedAt: linked_at,
  contestedAt: contested_at,
})
