/** The schemes of the interface, each with the users and the credentials with which the doors are compared. */
import { type Scope, scopes } from '#kernel/contract/caller.ts'
import type { FaultCode } from '#kernel/contract/fault.ts'
import { type Access, isScope } from '#kernel/contract/operation.ts'
import { freshToken, newAgent } from '../../harness/gateway.ts'
import { codeIn } from '../../journeys/signed-in.ts'
import { takeAccount } from '../../oauth/early-person.ts'
import { connectingPerson, register, signUpUser, type Tokens, tokenRequest } from '../../oauth/session.ts'
import type { IdentityRecords } from './identity-records.ts'

/** A gateway with its records and with the lines that it prints. */
export type SchemeGateway = { url: string; rows: IdentityRecords; lines: readonly string[] }
/** `undefined`: no credential. */
export type Refusals = Partial<Record<FaultCode, string | undefined>>

export type SchemeUser = {
  agentId: string
  /** With all that the scheme can have, and renewed before its end. */
  token(): Promise<string>
  /** Another one, for a call that ends it. */
  spareToken(): Promise<string>
  /** A token of the page of approvals, where people sign in. */
  pageToken(): Promise<string>
  /** Tokens that an operation with this access refuses, by the code of its answer. */
  refusals(access: Access): Promise<Refusals>
}
export type Scheme = {
  /** Opens the scheme at a gateway, and returns what enrols a user. */
  open(gateway: SchemeGateway): () => Promise<SchemeUser>
  /** Whether its users may call what only people do. */
  isPerson: boolean
}

/** Both live for 10 minutes at least. */
const renewedAfterMs = 240_000

/** Of the last minutes, made anew when it is older. */
function renewed(make: () => Promise<string>): () => Promise<string> {
  let known: { token: string; atMs: number } | undefined
  return async () => {
    if (!known || performance.now() - known.atMs > renewedAfterMs)
      known = { token: await make(), atMs: performance.now() }
    return known.token
  }
}

const keyPairs: Scheme = {
  isPerson: false,
  open:
    ({ url, rows }) =>
    async () => {
      const { agentId, privateKey } = await newAgent(url)
      const found = await rows.db.query<{ id: string }>('select id from app_user where agent_id = $1', [
        agentId,
      ])
      const userId = found.rows[0]!.id
      const token = renewed(() => freshToken(url, agentId, privateKey))
      const tokenWithout = (scope: Scope) =>
        rows.token(userId, { scopes: scopes.filter((each) => each !== scope) })
      return {
        agentId,
        token,
        spareToken: () => rows.token(userId),
        pageToken: token,
        async refusals(access) {
          return {
            unauthorized: undefined,
            invalid_token: rows.unknownToken(),
            // What people do has no scope that a key pair could lack.
            ...(isScope(access) && { insufficient_scope: await tokenWithout(access) }),
          }
        },
      }
    },
}

/** What a person can allow an app; the rest is in every token. */
const allowable: readonly Scope[] = ['trade', 'earn', 'chat', 'manage', 'propose']

const people: Scheme = {
  isPerson: true,
  open({ url, rows, lines }) {
    const app = {
      base: url,
      codeFor(email: string) {
        const code = codeIn(lines, email)
        if (!code) throw new Error(`no code for ${email}`)
        return code
      },
    }
    // An address registers few clients; what ends the connection of one ends all of its tokens.
    const clients = new Map<string, Promise<string>>()
    const clientOf = (name: string): Promise<string> => {
      const known = clients.get(name) ?? register(app).then(({ client_id }) => client_id)
      clients.set(name, known)
      return known
    }
    const refresh = async (clientId: string, tokens: Tokens): Promise<Tokens> => {
      const next = await tokenRequest(app, {
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token: tokens.refresh_token,
      })
      if (next.status !== 200) throw new Error(`no renewal: ${JSON.stringify(next)}`)
      return next
    }
    const connect = (person: ReturnType<typeof connectingPerson>, name: string, allows = allowable) =>
      clientOf(name).then((clientId) => person.connect({ clientId, allows }))

    const early = renewed(async () => {
      const { tokens, authorization } = await connect(connectingPerson(app), 'early')
      await takeAccount(rows.db, authorization)
      return tokens.access_token
    })

    return async () => {
      const person = connectingPerson(app)
      const main = await connect(person, 'main')
      const { status, body } = await signUpUser(app, main.authorization)
      if (status !== 200) throw new Error(`no sign-up: ${JSON.stringify(body)}`)
      let tokens: Tokens | undefined = main.tokens
      let last = main.tokens
      const token = renewed(async () => {
        last = tokens ?? (await refresh(main.clientId, last))
        tokens = undefined
        return last.access_token
      })
      const without = new Map<Scope, () => Promise<string>>()
      const tokenWithout = (scope: Scope) => {
        const allows = allowable.filter((each) => each !== scope)
        const known =
          without.get(scope) ??
          renewed(async () => (await connect(person, `without ${scope}`, allows)).tokens.access_token)
        without.set(scope, known)
        return known()
      }
      return {
        agentId: (body as { agent_id: string }).agent_id,
        token,
        pageToken: renewed(person.pageToken),
        spareToken: async () => (await connect(person, 'spare')).tokens.access_token,
        async refusals(access) {
          const [head, claims] = (await token()).split('.')
          return {
            unauthorized: undefined,
            invalid_token: `${head}.${claims}.${'A'.repeat(86)}`,
            ...(access !== 'person' && { signup_required: await early() }),
            ...(allowable.includes(access as Scope) && {
              insufficient_scope: await tokenWithout(access as Scope),
            }),
          }
        },
      }
    }
  },
}

export const schemes = { 'a key pair': keyPairs, 'a person': people } as const
export type SchemeName = keyof typeof schemes
