/** Tokens that no operation issues: rows in the test's own database, as later states of issued tokens. */
import { createHash, randomBytes } from 'node:crypto'
import pg from 'pg'
import { type Scope, scopes } from '#kernel/contract/caller.ts'

export type IdentityRecords = {
  db: pg.Pool
  /** Stores a token of the user and returns it. */
  token(userId: string, options?: { scopes?: readonly Scope[]; expiresAt?: Date }): Promise<string>
  /** A token of the right form that is not stored. */
  unknownToken(): string
  suspend(userId: string): Promise<void>
  expireQuotes(userId: string): Promise<void>
} & AsyncDisposable

export const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Connections that survive a failure of the database under them. */
export async function openIdentityRecords(databaseUrl: string): Promise<IdentityRecords> {
  const db = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  db.on('error', () => {})
  const unknownToken = () => `agt_${randomBytes(32).toString('base64url')}`
  return {
    db,
    unknownToken,
    async token(userId, options = {}) {
      const token = unknownToken()
      const { scopes: granted = scopes, expiresAt = new Date(Date.now() + 900_000) } = options
      await db.query(
        'insert into access_token (hash, user_id, scopes, expires_at, created_at) values ($1, $2, $3, $4, now())',
        [hashOf(token), userId, granted, expiresAt],
      )
      return token
    },
    async suspend(userId) {
      await db.query('update app_user set suspended_at = now() where id = $1', [userId])
    },
    async expireQuotes(userId) {
      await db.query('update swap_quote set expires_at = now() where user_id = $1', [userId])
    },
    async [Symbol.asyncDispose]() {
      await db.end().catch(() => {})
    },
  }
}
