import { personTokensTopic } from '#compose/oauth.ts'
import * as auth from '#features/auth/store.ts'
import { createRecords } from '#features/oauth/authorization-server-records.ts'
import { externalGrantId, refuseExternal } from '#features/oauth/external-tokens.ts'
import { createGrants } from '#features/oauth/grant-revocation.ts'
import type { ActScope } from '#kernel/contract/caller.ts'
import { isUuid, sha256 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { accessTopics, endWebhooksOfApps, webhookTopics } from './end-schedules-and-webhooks.ts'
import type { Session } from './session.ts'
import { userOf } from './users.ts'

const command = 'tokens revoke'

/** A token is given as itself or, if only its hash is known, as the 64 hex digits of its SHA-256. */
const hashOf = (token: string) => (/^[0-9a-f]{64}$/.test(token) ? token : sha256(token))

const noSuchToken = () =>
  new UsageError('There is no such token. It may have expired, or its connection has ended.')

/** Opens the grants and records of people without an instance's callbacks: the command notifies by itself. */
function oauthOf(session: Session) {
  const { database, clock } = session
  const { pool: db, transaction: transact } = database
  const grants = createGrants({
    db,
    transact,
    clock,
    endApps: endWebhooksOfApps(session),
    onRevoked: () => {},
  })
  const { of } = createRecords({ db, clock, grants })
  return {
    grants,
    /**
     * Records that the access of a person has ended. The tokens of an external server stay valid there, and the gateway
     * refuses them only because of this record.
     */
    refuseTokensOf: (tx: Tx, id: string) => refuseExternal(of('EndedGrant', tx), id, clock.now()),
  }
}
const actIn = (tx: Tx): ActScope => ({ tx, afterCommit: () => {} })

/** Returns the id of a person or a user; a person is known even before the sign-up. */
async function idOf(db: Queryable, name: string): Promise<string> {
  const [person] = isUuid(name)
    ? await query<{ id: string }>(db, 'select id from person where id = $1', [name])
    : []
  return person?.id ?? (await userOf(db, name)).id
}

type Counts = { is_person: boolean; connections: number; webhooks: number }
const countsText = `select exists (select from person where id = $1::uuid) as is_person,
  (select count(distinct payload->>'clientId')::integer from oauth_record
   where model = 'Grant' and account_id = $1::text) as connections,
  (select count(*)::integer from webhook where user_id = $1::uuid) as webhooks`

async function revokeUser(session: Session, name: string): Promise<void> {
  const { database, record } = session
  const id = await idOf(database.pool, name)
  const { grants, refuseTokensOf } = oauthOf(session)
  const { hashes, counts } = await database.transaction(async (tx) => {
    const removed = await auth.removeTokensOf(tx, id)
    const [found] = await query<Counts>(tx, countsText, [id])
    const { is_person: isPerson, connections, webhooks } = found!
    if (isPerson) await refuseTokensOf(tx, id)
    const ended = { tokens: removed.length, ...(isPerson && { connections }), webhooks }
    await record(tx, { command, subject: id, details: ended })
    // `endAll` comes last, because it ends by appending the events of the webhooks, which locks the event log of the
    // user.
    await grants.endAll(id, actIn(tx))
    return { hashes: removed, counts: found! }
  })
  await session.notify([
    ...accessTopics(id, hashes),
    ...webhookTopics(id),
    ...(counts.is_person ? [personTokensTopic] : []),
  ])
  const ended = [
    `${hashes.length} tokens of user ${id} are revoked`,
    ...(counts.is_person ? [`${counts.connections} connections of apps with their sessions are ended`] : []),
    `${counts.webhooks} webhooks are deleted`,
  ]
  session.printLine(ended.join(', '))
}

type Claims = { grant_id?: unknown; iss?: unknown; sub?: unknown; client_id?: unknown; azp?: unknown }
/** Reads the claims of an unverified token: the operator only names a grant by the token, and gives no access. */
function claimsOf(token: string): Claims {
  try {
    const read: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    return typeof read === 'object' && read !== null ? read : {}
  } catch {
    return {}
  }
}

function grantIdOf({ grant_id, iss, sub, client_id, azp }: Claims): string | undefined {
  if (typeof grant_id === 'string') return grant_id
  const client = client_id ?? azp
  const isComplete = typeof iss === 'string' && typeof sub === 'string' && typeof client === 'string'
  return isComplete ? externalGrantId({ issuer: iss, subject: sub, clientId: client }) : undefined
}

type Grant = { person_id: string; client_id: string; is_external: boolean }

/** Revokes a person's access token by ending its grant. */
async function revokePersonToken(session: Session, token: string): Promise<void> {
  const { database, record } = session
  const grantId = grantIdOf(claimsOf(token))
  const { grants, refuseTokensOf } = oauthOf(session)
  const ended = await database.transaction(async (tx) => {
    const [grant] = await query<Grant>(
      tx,
      `select account_id as person_id, payload->>'clientId' as client_id, payload ? 'external' as is_external
       from oauth_record where model = 'Grant' and id = $1 and account_id is not null`,
      [grantId ?? ''],
    )
    if (!grant || grantId === undefined) throw noSuchToken()
    if (grant.is_external) await refuseTokensOf(tx, grantId)
    const details = { grant_id: grantId, client_id: grant.client_id }
    await record(tx, { command, subject: grant.person_id, details })
    await grants.end(grantId, actIn(tx))
    return grant
  })
  const { person_id: id, client_id: clientId } = ended
  await session.notify([personTokensTopic, ...accessTopics(id, []), ...webhookTopics(id)])
  session.printLine(
    `The connection of the app ${clientId} to user ${id} is ended, with its tokens and what the app has set up`,
  )
}

async function revokeKeyPairToken(session: Session, token: string): Promise<void> {
  const { database, record } = session
  const hash = hashOf(token)
  const removed = await database.transaction(async (tx) => {
    const found = await auth.removeToken(tx, Buffer.from(hash, 'hex'))
    if (found) await record(tx, { command, subject: found.userId, details: { token_sha256: hash } })
    return found
  })
  if (!removed) throw noSuchToken()
  await session.notify(accessTopics(removed.userId, [hash]))
  session.printLine(`The token of user ${removed.userId} is revoked`)
}

const revokeTokens: AdminCommand['run'] = async (session, args) => {
  const [user, token] = [args.text('user'), args.text('token')]
  if ((user === undefined) === (token === undefined))
    throw new UsageError('Give either --user (a user id or an agent id) or --token.')
  if (user !== undefined) return revokeUser(session, user)
  return token!.startsWith('eyJ') ? revokePersonToken(session, token!) : revokeKeyPairToken(session, token!)
}

export const tokenCommands: readonly AdminCommand[] = [
  {
    name: command,
    options: { user: 'string', token: 'string' },
    summary:
      'end one token, or all access of a user or agent, on every instance: tokens, connections, sessions and webhooks',
    run: revokeTokens,
  },
]
