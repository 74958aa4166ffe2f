import type { Caller, Scope } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import type { ChatTurnRow } from '#store/tables/chat.ts'

/** The caller of a turn as it is stored: enough to check that the access is still valid, but no credential. */
export type StoredCaller = {
  agentId: string
  scheme: Caller['scheme']
  scopes: Scope[]
  tokenHash?: string
  tokenExpiresAt?: string
  grantId?: string
  clientId?: string
  oauthScopes?: string[]
  /** The most credits that the answer takes of what its app may spend in a day. */
  appCredits?: number
}
export const storedCallerOf = ({ caller }: Pick<ChatTurnRow, 'caller'>): StoredCaller =>
  caller as StoredCaller

export const storedCaller = ({
  agentId,
  scheme,
  scopes,
  token,
  person,
}: Caller): JsonObject & StoredCaller => ({
  agentId,
  scheme,
  scopes: [...scopes],
  ...(token && { tokenHash: token.hash, tokenExpiresAt: token.expiresAt.toISOString() }),
  ...(person && {
    grantId: person.grantId,
    clientId: person.clientId,
    oauthScopes: [...person.oauthScopes],
  }),
})

type AccessRow = {
  suspended_at: Date | null
  scopes: Scope[] | null
  email: string | null
  has_grant: boolean
}

/**
 * Returns the caller with what is left of its access. A turn may finish after its token has expired, but not after the
 * token or the consent of the person was revoked.
 */
export async function currentCaller(
  db: Queryable,
  userId: string,
  stored: StoredCaller,
  now: Date,
): Promise<Caller> {
  const { tokenHash, grantId } = stored
  const [row] = await query<AccessRow>(
    db,
    `select u.suspended_at, (select scopes from access_token where hash = $2) as scopes,
       (select email from person where id = u.id) as email,
       exists (select from oauth_record where model = 'Grant' and id = $3 and account_id = u.id::text) as has_grant
     from app_user u where u.id = $1`,
    [userId, tokenHash === undefined ? null : Buffer.from(tokenHash, 'hex'), grantId ?? null],
  )
  if (!row || row.suspended_at) throw new Fault('suspended', 'The account is suspended')
  const expiresAt = new Date(stored.tokenExpiresAt ?? now)
  const isPerson = grantId !== undefined
  const isRevoked = isPerson ? !row.has_grant : row.scopes === null && expiresAt > now
  if (isRevoked) throw new Fault('invalid_token', 'The access of this chat was revoked')
  const scopes = stored.scopes.filter(
    // A chat sends its person no further requests.
    (scope) => scope !== 'propose' && (isPerson || row.scopes === null || row.scopes.includes(scope)),
  )
  return {
    userId,
    agentId: stored.agentId,
    scheme: stored.scheme,
    scopes: new Set(scopes),
    ...(isPerson && {
      person: {
        email: row.email ?? '',
        grantId,
        clientId: stored.clientId ?? '',
        oauthScopes: stored.oauthScopes ?? [],
        hasSignedUp: true,
        // A turn never confirms an act that allows more.
        signIn: { at: null, ageMaxSeconds: 0 },
      },
    }),
  }
}
