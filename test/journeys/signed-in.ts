/** A person who signs in at a gateway process with a browser, and acts through an app that may act for them. */

import type { Scope } from '#kernel/caller.ts'
import { openDatabase } from '#store/database.ts'
import { query } from '#store/query.ts'
import type { Gateway } from '../harness/gateway.ts'
import { connectingPerson, signUpUser, type Tokens, tokenRequest } from '../oauth/session.ts'
import { type Person, personOf } from './users.ts'

/** The sign-up code of an address, as the gateway prints it. */
export const codeIn = (lines: readonly string[], email: string): string | undefined =>
  lines
    .filter((each) => each.startsWith(`email  ${email}: `))
    .flatMap((each) => /: (\d{8}) is your Portico code/.exec(each)?.[1] ?? [])
    .at(-1)

const allows: readonly Scope[] = ['trade', 'earn', 'manage']
type SignInGateway = Pick<Gateway, 'url' | 'lines'>

const appOf = (gateway: SignInGateway) => ({
  base: gateway.url,
  codeFor: (email: string) => {
    const code = codeIn(gateway.lines, email)
    if (!code) throw new Error(`no code for ${email}`)
    return code
  },
})

const personWith = (url: string, agentId: string, { access_token }: Tokens): Promise<Person> =>
  personOf(url, { agentId, token: access_token } as Parameters<typeof personOf>[1])

export async function signedInPerson(gateway: SignInGateway): Promise<Person> {
  const { tokens, authorization } = await connectingPerson(appOf(gateway)).connect({ allows })
  const { body } = await signUpUser(appOf(gateway), authorization)
  return personWith(gateway.url, (body as { agent_id: string }).agent_id, tokens)
}

/** A person who has just signed in, and an app of theirs whose sign-in is an hour old. */
export async function personWithApp(
  gateway: SignInGateway & { databaseUrl: string },
): Promise<{ person: Person; app: Person; email: string }> {
  const app = appOf(gateway)
  const connecting = connectingPerson(app)
  const { email } = connecting
  const { tokens, authorization, clientId } = await connecting.connect({ allows })
  const { body } = await signUpUser(app, authorization)
  const { agent_id: agentId } = body as { agent_id: string }
  await using database = await openForTest(gateway.databaseUrl)
  await query(
    database.pool,
    `update oauth_record set payload = jsonb_set(payload, '{authTime}', to_jsonb($2::integer))
     where model = 'RefreshToken' and payload ->> 'clientId' = $1`,
    [clientId, Math.floor(Date.now() / 1_000) - 3_600],
  )
  const aged = await tokenRequest(app, {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: tokens.refresh_token,
  })
  return {
    email,
    person: await personWith(gateway.url, agentId, tokens),
    app: await personWith(gateway.url, agentId, aged),
  }
}

async function openForTest(url: string) {
  const database = openDatabase({ url, poolMax: 1, applicationName: 'test' })
  return { pool: database.pool, [Symbol.asyncDispose]: () => database.close() }
}
