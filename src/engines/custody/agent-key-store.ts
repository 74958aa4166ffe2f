import type { Agent } from '#kernel/money/venue-actions.ts'
import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { AgentWalletRow } from '#store/tables/venue.ts'

/** Agent keys trade for users at venues. A key that the venue no longer knows is never used again. */

export type SealedAgent = Omit<AgentWalletRow, 'approved_at' | 'expires_at' | 'retired_at' | 'is_registered'>
type AgentOwner = { userId: string; venue: string }

const agentOf = (row: AgentWalletRow): Agent => ({
  id: row.id,
  address: row.address,
  createdAt: row.created_at,
  approvedAt: row.approved_at,
  expiresAt: row.expires_at,
})

/** Returns a user's active agents at a venue, at most two: the approved key, and one that waits for approval. */
export const activeAgents = (db: Queryable, { userId, venue }: AgentOwner): Promise<AgentWalletRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('agent_wallet')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue)
      .where('retired_at', 'is', null),
  )

export function rolesOf(rows: readonly AgentWalletRow[]): {
  current: Agent | undefined
  waiting: Agent | undefined
} {
  const current = rows.find(({ approved_at }) => approved_at !== null)
  const waiting = rows.find(({ approved_at }) => approved_at === null)
  return { current: current && agentOf(current), waiting: waiting && agentOf(waiting) }
}

export const agentsOf = async (db: Queryable, owner: AgentOwner) => rolesOf(await activeAgents(db, owner))

/** Stores a new agent key; of two concurrent inserts the first wins, and the other key is dropped unused. */
export const addAgent = async (db: Queryable, row: SealedAgent): Promise<void> => {
  await query(
    db,
    `insert into agent_wallet (id, user_id, venue, address, ciphertext, wrapped_dek, kek_id, version, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (user_id, venue) where approved_at is null and retired_at is null do nothing`,
    [
      row.id,
      row.user_id,
      row.venue,
      row.address,
      row.ciphertext,
      row.wrapped_dek,
      row.kek_id,
      row.version,
      row.created_at,
    ],
  )
}

/** Marks the agent as approved. The venue drops the earlier agent at that moment, so it is retired. */
export async function approveAgent(
  tx: Tx,
  owner: AgentOwner,
  { address, expiresAt, now }: { address: string; expiresAt: Date | null; now: Date },
): Promise<void> {
  await query(
    tx,
    `update agent_wallet set retired_at = $4
     where user_id = $1 and venue = $2 and address <> $3 and approved_at is not null and retired_at is null`,
    [owner.userId, owner.venue, address, now],
  )
  await query(
    tx,
    `update agent_wallet set approved_at = coalesce(approved_at, $4), expires_at = $5
     where user_id = $1 and venue = $2 and address = $3 and retired_at is null`,
    [owner.userId, owner.venue, address, now, expiresAt],
  )
}

export async function retireAgent(
  db: Queryable,
  owner: AgentOwner,
  { address, now }: { address: string; now: Date },
) {
  await query(
    db,
    `update agent_wallet set retired_at = $4
     where user_id = $1 and venue = $2 and address = $3 and retired_at is null`,
    [owner.userId, owner.venue, address, now],
  )
}
