import { type Queryable, query } from '#store/query.ts'

/** A contested grant is one whose refresh token was used twice at about the same time. */

export async function contestGrant(db: Queryable, grantId: string, now: Date): Promise<void> {
  await query(
    db,
    `update oauth_record set contested_at = $2 where model = 'Grant' and id = $1 and contested_at is null
     returning id`,
    [grantId, now],
  )
}

export async function isContested(db: Queryable, grantId: string): Promise<boolean> {
  const rows = await query(
    db,
    `select id from oauth_record where model = 'Grant' and id = $1 and contested_at is not null`,
    [grantId],
  )
  return rows.length > 0
}

/**
 * Returns the clients whose contested grants end when the person connects this client: the client itself, and the
 * clients with its registered name.
 */
export async function contestedClients(db: Queryable, personId: string, clientId: string): Promise<string[]> {
  const rows = await query<{ client_id: string }>(
    db,
    `select distinct g.payload->>'clientId' as client_id from oauth_record g
     left join oauth_record c on c.model = 'Client' and c.id = g.payload->>'clientId'
     where g.model = 'Grant' and g.account_id = $1 and g.contested_at is not null
       and (g.payload->>'clientId' = $2 or c.payload->>'client_name' =
         (select payload->>'client_name' from oauth_record where model = 'Client' and id = $2))
     order by 1`,
    [personId, clientId],
  )
  return rows.map((row) => row.client_id)
}
