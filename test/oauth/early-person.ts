import type pg from 'pg'

const claimsOf = (authorization: string): { sub: string } =>
  JSON.parse(Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString())

/**
 * Takes the account from a person who has connected an app, as if the consent had made none: the person of another
 * authorization server, or of a connection that is older than accounts made by consent. The token of the app was not
 * shown to the gateway before.
 */
export async function takeAccount(db: Pick<pg.Pool, 'connect'>, authorization: string): Promise<void> {
  const { sub } = claimsOf(authorization)
  const client = await db.connect()
  try {
    await client.query('begin')
    // Tables refer to each other in many ways, and nothing of the account is left.
    await client.query('set local session_replication_role = replica')
    const { rows } = await client.query<{ name: string }>(
      `select quote_ident(table_name) as name from information_schema.columns
       where column_name = 'user_id' and udt_name = 'uuid' and table_schema = 'public'
         and table_name in (select table_name from information_schema.tables where table_type = 'BASE TABLE')`,
    )
    for (const { name } of rows) await client.query(`delete from ${name} where user_id = $1`, [sub])
    await client.query('delete from app_user where id = $1', [sub])
    await client.query('commit')
  } finally {
    client.release()
  }
}
