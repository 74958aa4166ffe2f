/** Every kind of credential of both schemes, as the product issues them or as an attacker makes them. */
import { type Scope, scopes } from '#kernel/contract/caller.ts'
import { query } from '#store/query.ts'
import { bearer, http, newAgent, signedAct } from '../../harness/gateway.ts'
import { confirming } from '../../oauth/confirming.ts'
import { takeAccount } from '../../oauth/early-person.ts'
import type { OAuthApp } from '../../oauth/oauth-app.ts'
import { type ConnectingPerson, connectingPerson, register, signUpUser } from '../../oauth/session.ts'
import type { Credential, CredentialKind } from './access-verdicts.ts'
import { hashOf, type IdentityRecords } from './identity-records.ts'

/** What an app may do for a person beside what the person allows; and what a person can allow. */
const appScopes: readonly Scope[] = ['read']
const allowable = ['trade', 'earn', 'chat', 'manage', 'propose'] as const

export type MatrixUsers = {
  /** Of the key pair and of nobody. */
  ofKeyPairs(): Promise<Credential[]>
  /** `kind`: how they count at the time of the matrix. */
  ofPeople(kind: CredentialKind): Promise<Credential[]>
  /** A person with an account, and an app that may do all that an app may. */
  person(): Promise<{ authorization: string; userId: string; pageToken(): Promise<string> }>
}

export async function createMatrixUsers(app: OAuthApp, rows: IdentityRecords): Promise<MatrixUsers> {
  // An address registers few clients; what ends the connection of one ends all of its tokens.
  const clients = new Map<string, string>()
  const connect = async (person: ConnectingPerson, allows: readonly string[], name: string) => {
    const clientId = clients.get(name) ?? (await register(app)).client_id
    clients.set(name, clientId)
    await query(app.database.pool, 'delete from sign_in_limit')
    return person.connect({ clientId, allows, signsIn: true })
  }
  const signedUp = async () => {
    const person = connectingPerson(app)
    const { authorization, tokens } = await connect(person, allowable, 'main')
    const { body } = await signUpUser(app, authorization)
    return {
      person,
      authorization,
      tokens,
      userId: (body as { user_id: string }).user_id,
      pageToken: person.pageToken,
    }
  }
  const newKeyPair = async () => {
    const agent = await newAgent(app.base)
    const { body } = await http<{ user_id: string }>(`${app.base}/v1/user`, { headers: bearer(agent) })
    return { ...agent, userId: body.user_id }
  }
  const owner = await newKeyPair()
  const main = await signedUp()
  const nobody = (what: string, authorization: string | undefined): Credential => ({
    what,
    kind: authorization?.startsWith('Bearer ') ? 'no token' : 'no credential',
    authorization,
    scopes: [],
  })

  /** A key pair that the person has linked: the person decides for it, and it may do no more. */
  async function linkedAgent(): Promise<Credential> {
    const agent = await newKeyPair()
    const { body } = await http(`${app.base}/v1/agents/link-codes`, {
      method: 'POST',
      headers: bearer(agent),
      body: signedAct(agent, 'agents_link_code'),
    })
    const linked = await http(`${app.base}/v1/agents`, {
      method: 'POST',
      headers: { authorization: (await connect(main.person, allowable, 'linking')).authorization },
      body: { code: body.code },
    })
    if (linked.status !== 200) throw new Error(JSON.stringify(linked.body))
    await confirming(main.person, app.base, main.authorization)(linked)
    return { what: 'a linked agent', kind: 'key pair', authorization: bearer(agent).authorization, scopes }
  }

  async function ofNobody(): Promise<Credential[]> {
    const { agentId, userId } = owner
    const good = await rows.token(userId)
    const expired = await rows.token(userId, { expiresAt: new Date(Date.now() - 1_000) })
    const revoked = await rows.token(userId)
    await rows.db.query('delete from access_token where hash = $1', [hashOf(revoked)])
    const ended = await connect(main.person, allowable, 'ended')
    await http(`${app.base}/v1/auth/token`, {
      method: 'DELETE',
      headers: { authorization: ended.authorization },
    })
    const {
      access_token: jwt,
      refresh_token,
      id_token,
    } = main.tokens as typeof main.tokens & { id_token: string }
    const [head, , signature] = jwt.split('.')
    const other = Buffer.from(JSON.stringify({ sub: userId, scope: 'manage' })).toString('base64url')
    return [
      nobody('none', undefined),
      nobody('Basic', `Basic ${Buffer.from(`x:${good}`).toString('base64')}`),
      nobody('the token alone', good),
      nobody('garbage', 'Bearer garbage'),
      nobody('a token that was never issued', `Bearer ${rows.unknownToken()}`),
      nobody('an expired token', `Bearer ${expired}`),
      nobody('a revoked token', `Bearer ${revoked}`),
      nobody('an agent id', `Bearer ${agentId}`),
      nobody('the token of a connection that was ended', ended.authorization),
      nobody('an access token with other claims', `Bearer ${head}.${other}.${signature}`),
      nobody('an id token', `Bearer ${id_token}`),
      nobody('a refresh token', `Bearer ${refresh_token}`),
    ]
  }

  async function suspended(): Promise<Credential[]> {
    const [agent, person] = [await newKeyPair(), await signedUp()]
    for (const { userId } of [agent, person]) await app.composed.features.auth.suspend(userId)
    return [
      { what: 'a suspended key pair', authorization: bearer(agent).authorization },
      { what: 'a suspended person', authorization: person.authorization },
    ].map((each) => ({ ...each, kind: 'suspended', scopes: [] }))
  }

  return {
    person: signedUp,
    async ofKeyPairs() {
      const granted = [[], scopes, ...scopes.map((scope) => [scope])] as const
      const ofOwner = granted.map(
        async (each): Promise<Credential> => ({
          what: `a key pair with ${each.join(' ') || 'no scope'}`,
          kind: 'key pair',
          authorization: `Bearer ${await rows.token(owner.userId, { scopes: each })}`,
          scopes: each,
        }),
      )
      return [
        ...(await ofNobody()),
        ...(await suspended()),
        ...(await Promise.all(ofOwner)),
        await linkedAgent(),
      ]
    },
    async ofPeople(kind) {
      const found: Credential[] = []
      for (const allows of [[], ...allowable.map((scope) => [scope]), allowable]) {
        const { authorization } = await connect(main.person, allows, `allows ${allows.join(' ')}`)
        const what = `an app with ${allows.join(' ') || 'what every app has'}`
        found.push({ what, kind, authorization, scopes: [...appScopes, ...allows] })
      }
      const early = await connect(connectingPerson(app), allowable, 'early')
      await takeAccount(app.database.pool, early.authorization)
      const what = 'an app of a person without an account'
      found.push({ what, kind: 'person before the sign-up', authorization: early.authorization, scopes: [] })
      return found
    },
  }
}
