import { type Clock, later } from '#kernel/clock.ts'
import { type ActScope, isOwnClient } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'
import type { AuthorizationServer } from '#upstreams/openid/authorization-server.ts'
import { type AccessClaims, createTokenCheck } from './access-tokens.ts'
import type { RecordStore, Records } from './authorization-server-records.ts'
import type { Grants } from './grant-revocation.ts'
import type { Identities } from './identities.ts'

/** This module verifies access tokens of an external authorization server, and that they were not revoked here. */

const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA']
const lifeMaxSeconds = 86_400
/** How far the clock of the other server may be ahead; its tokens say when they were issued. */
const aheadSeconds = 5
/** A revocation is stored for longer than any token that it ends is valid. */
const revokedSeconds = lifeMaxSeconds + 3_600
/** An app that shows no token for this long counts as disconnected, because the other server does not say so. */
const idleSeconds = 30 * 86_400

/** Returns the id under which this gateway stores a grant that a person gave to a client at the other server. */
export const externalGrantId = (of: { issuer: string; subject: string; clientId: string }): string =>
  sha256(`${of.issuer}|${of.subject}|${of.clientId}`)

/** Refuses tokens of a grant or a person that were issued until now. `ended` is the store of `EndedGrant` records. */
export const refuseExternal = (ended: Pick<RecordStore, 'upsert'>, id: string, now: Date): Promise<void> =>
  ended.upsert(id, { at: now.getTime() }, revokedSeconds)

type Deps = {
  db: Queryable
  server: AuthorizationServer
  /** Verifies tokens of this gateway, which only its own pages get; absent if it has no pages. */
  verifyOwn: ((token: string) => Promise<AccessClaims>) | undefined
  grants: Grants
  identities: Identities
  records: Records
  clock: Clock
  baseUrl: () => string
  onRevoked: () => void
}

const refused = (why: string) => new Fault('invalid_token', `The access token ${why}: sign in again`)

/** Reads the issuer without a check, to learn whose keys the token has to be checked with. */
async function issuerOf(token: string): Promise<string | undefined> {
  const { decodeJwt } = await import('jose')
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/** The grants are stored at the other server, so this gateway itself records which of them it has ended. */
export function createExternalTokens(deps: Deps) {
  const { db, server, verifyOwn, grants, identities, records, clock, baseUrl, onRevoked } = deps
  const check = createTokenCheck({ keys: server, clock, baseUrl, issuer: () => server.issuer, algorithms })
  const ended = records.of('EndedGrant')
  const end = async (id: string): Promise<void> => {
    await refuseExternal(ended, id, clock.now())
    onRevoked()
  }
  const endedAt = async (id: string): Promise<number> => Number((await ended.find(id))?.at ?? 0)

  /** Apps need tokens of the other server, even if this gateway gave them tokens before. */
  const verifyOfPage = async (token: string, check: NonNullable<typeof verifyOwn>): Promise<AccessClaims> => {
    const claims = await check(token)
    if (!isOwnClient(claims.clientId)) throw refused('is not one of the authorization server')
    return claims
  }
  const verify = async (token: string): Promise<AccessClaims> => {
    if (verifyOwn && (await issuerOf(token)) === baseUrl()) return verifyOfPage(token, verifyOwn)
    const { sub, exp, iat, email, email_verified, client_id, azp, scope } = await check(token)
    const clientId = client_id ?? azp
    if (sub === undefined || exp === undefined || iat === undefined || typeof clientId !== 'string')
      throw refused('lacks a claim')
    // Only this gateway itself issues tokens to its pages.
    if (isOwnClient(clientId)) throw refused('names a client of this gateway')
    if (exp - iat > lifeMaxSeconds) throw refused('lives longer than a day')
    if (typeof email !== 'string' || email_verified !== true)
      throw refused('has no verified email address (email, email_verified)')
    const person = await identities.enter({ issuer: server.issuer, subject: sub, email })
    if (!person.ok) throw refused('has the email address of another account')
    const personId = person.value.id
    const grantId = externalGrantId({ issuer: server.issuer, subject: sub, clientId })
    const endedMs = Math.max(await endedAt(grantId), await endedAt(personId))
    if (iat > clock.now().getTime() / 1_000 + aheadSeconds) throw refused('was issued in the future')
    if (endedMs > 0 && iat <= endedMs / 1_000 + aheadSeconds) throw refused('was revoked')
    const expiresAt = new Date(exp * 1_000)
    const scopes = typeof scope === 'string' ? scope : ''
    // The list of the person's connected apps is read from this record.
    const resources = { [baseUrl()]: scopes }
    const grant = { accountId: personId, clientId, external: true, resources }
    await records.of('Grant').upsert(grantId, grant, idleSeconds)
    return {
      personId,
      grantId,
      clientId,
      scopes: scopes.split(' ').filter(Boolean),
      // The gateway does not know whether the other server asked for the password again.
      signedInAt: null,
      expiresAt: new Date(
        Math.min(expiresAt.getTime(), later(clock.now(), lifeMaxSeconds * 1_000).getTime()),
      ),
    }
  }
  return {
    verify,
    grants: {
      ...grants,
      async endApp(personId: string, clientId: string) {
        const given = await query<{ id: string }>(
          db,
          `select id from oauth_record where model = 'Grant' and account_id = $1
             and payload->>'clientId' = $2 and payload ? 'external'`,
          [personId, clientId],
        )
        for (const { id } of given) await end(id)
        await grants.endApp(personId, clientId)
      },
    },
    records: {
      ...records,
      async revokeGrant(grantId: string, act?: ActScope) {
        await end(grantId)
        await records.revokeGrant(grantId, act)
      },
      async revokeAccount(accountId: string, act?: ActScope) {
        await end(accountId)
        await records.revokeAccount(accountId, act)
      },
    },
  }
}
