import { approvalsClientId, type Caller, scopes } from '#kernel/contract/caller.ts'
import { personOf } from '#store/person-of-user.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Approvers } from './approval-events.ts'

export type ApproversDeps = Pick<Approvers, 'hasNoPeople' | 'page'>

/** Returns who approves what the policy reserves for a person, and the page on which the person approves. */
export function createApprovers({ hasNoPeople, page }: ApproversDeps): Approvers {
  return {
    hasNoPeople,
    page,
    personOf: async (db, userId) => (hasNoPeople ? undefined : (await personOf(db, userId))?.userId),
    async callerFor(db, userId) {
      const person = hasNoPeople ? undefined : await personOf(db, userId)
      return callerOf(db, person?.userId ?? userId)
    },
  }
}

async function callerOf(db: Queryable, userId: string): Promise<Caller> {
  const [row] = await query<{ agent_id: string; auth_scheme: Caller['scheme']; email: string | null }>(
    db,
    'select agent_id, auth_scheme, email from app_user where id = $1',
    [userId],
  )
  if (!row) throw new Error('no user of this id')
  const caller = { userId, agentId: row.agent_id, scheme: row.auth_scheme, scopes: new Set(scopes) }
  if (row.auth_scheme !== 'oauth') return caller
  const person = {
    email: row.email ?? '',
    grantId: '',
    clientId: approvalsClientId,
    oauthScopes: [],
    hasSignedUp: true,
    signIn: { at: null, ageMaxSeconds: 0 },
  }
  return { ...caller, person }
}
