import type { Caller, ScheduleRun, Scope } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'

/** A caller as the database stores it: enough to check that its access is still valid, but no credential. */
export type StoredCaller = {
  agentId: string
  scheme: Caller['scheme']
  scopes: Scope[]
  tokenHash?: string
  tokenExpiresAt?: string
  grantId?: string
  clientId?: string
  oauthScopes?: string[]
  /** The person to whom the agent is linked: the access ends when this link ends. */
  personId?: string
  /** When the agent was linked: another link, even to the same person, is another access. */
  linkedAt?: string
  /** When this access was ended for good, together with everything that runs under it. */
  endedAt?: string
  run?: StoredRun
}
type StoredRun = Omit<ScheduleRun, 'approvedMicros' | 'budgetMicros'> & {
  approvedMicros: string | null
  budgetMicros?: string
}

export const storedCaller = (caller: Caller): JsonObject & StoredCaller => {
  const { agentId, scheme, scopes, token, person, via } = caller
  return {
    agentId,
    scheme,
    scopes: [...scopes],
    ...(token && { tokenHash: token.hash, tokenExpiresAt: token.expiresAt.toISOString() }),
    ...(person && {
      grantId: person.grantId,
      clientId: person.clientId,
      oauthScopes: [...person.oauthScopes],
    }),
    ...(typeof via === 'object' && via.personId !== undefined && { personId: via.personId }),
    ...(typeof via === 'object' && via.linkedAt !== undefined && { linkedAt: via.linkedAt }),
    ...(typeof via === 'object' && { run: storedRun(via) }),
  }
}

const storedRun = ({ approvedMicros, budgetMicros, ...run }: ScheduleRun): StoredRun & JsonObject => ({
  ...run,
  approvedMicros: approvedMicros === null ? null : String(approvedMicros),
  ...(budgetMicros !== undefined && { budgetMicros: String(budgetMicros) }),
})

const runOf = ({ approvedMicros, budgetMicros, ...run }: StoredRun): ScheduleRun => ({
  ...run,
  approvedMicros: approvedMicros === null ? null : BigInt(approvedMicros),
  ...(budgetMicros !== undefined && { budgetMicros: BigInt(budgetMicros) }),
})

/** Returns the stored caller of a schedule: its access ends with the grant or the link, but not with the token. */
export async function authorityOf(db: Queryable, caller: Caller): Promise<JsonObject & StoredCaller> {
  const { token: _used, via: _via, ...rest } = caller
  const text = 'select person_id, linked_at from agent_link where user_id = $1'
  const [link] = await query<{ person_id: string; linked_at: Date }>(db, text, [caller.userId])
  return {
    ...storedCaller(rest),
    ...(link && { personId: link.person_id, linkedAt: link.linked_at.toISOString() }),
  }
}

type AccessRow = {
  suspended_at: Date | null
  scopes: Scope[] | null
  email: string | null
  has_grant: boolean
  person_id: string | null
  linked_at: Date | null
  contested_at: Date | null
}

/**
 * Returns the caller with the scopes that its access still has. Work may finish after its token has expired, but
 * not after the token, the consent of the person or the link to the person was revoked. While the link is contested, no
 * approval of the person counts.
 */
export async function currentCaller(
  db: Queryable,
  userId: string,
  stored: StoredCaller,
  now: Date,
): Promise<Caller> {
  const { tokenHash, grantId, personId, linkedAt, endedAt, run } = stored
  const [row] = await query<AccessRow>(
    db,
    `select u.suspended_at, (select scopes from access_token where hash = $2) as scopes,
       (select email from person where id = u.id) as email,
       exists (select from oauth_record where model = 'Grant' and id = $3 and account_id = u.id::text) as has_grant,
       l.person_id, l.linked_at, l.contested_at
     from app_user u left join agent_link l on l.user_id = u.id where u.id = $1`,
    [userId, tokenHash === undefined ? null : Buffer.from(tokenHash, 'hex'), grantId ?? null],
  )
  if (!row || row.suspended_at)
    throw new Fault('suspended', 'The account is suspended; ask the operator of this gateway')
  const expiresAt = new Date(stored.tokenExpiresAt ?? now)
  const isPerson = grantId !== undefined
  const isRevoked =
    endedAt !== undefined || (isPerson ? !row.has_grant : row.scopes === null && expiresAt > now)
  const isUnlinked =
    (personId !== undefined && row.person_id !== personId) ||
    (linkedAt !== undefined && row.linked_at?.toISOString() !== linkedAt)
  if (isRevoked || isUnlinked) throw new Fault('invalid_token', 'The access behind this was revoked')
  const scopes = stored.scopes.filter(
    // A scheduled run sends its person no requests, so it loses the scope `propose`.
    (scope) => scope !== 'propose' && (isPerson || row.scopes === null || row.scopes.includes(scope)),
  )
  return {
    userId,
    agentId: stored.agentId,
    scheme: stored.scheme,
    scopes: new Set(scopes),
    ...(run && { via: runOf(row.contested_at ? { ...run, approvedMicros: null } : run) }),
    ...(isPerson && {
      person: {
        email: row.email ?? '',
        grantId,
        clientId: stored.clientId ?? '',
        oauthScopes: stored.oauthScopes ?? [],
        hasSignedUp: true,
        // A scheduled run never confirms an act that raises limits or permissions, so it has no time of sign-in.
        signIn: { at: null, ageMaxSeconds: 0 },
      },
    }),
  }
}
