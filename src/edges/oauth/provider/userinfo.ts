import type { OAuth } from '#features/oauth/oauth.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'

export async function userinfoOf(
  { userId, person }: Caller,
  people: Pick<OAuth['people'], 'find'>,
): Promise<Record<string, unknown>> {
  if (!person)
    throw new Fault(
      'invalid_token',
      'This path takes the OAuth access token of a person, and not one of a key pair',
    )
  const has = (scope: string) => person.oauthScopes.includes(scope)
  if (!has('openid'))
    throw new Fault(
      'insufficient_scope',
      'The token lacks the scope `openid`: sign in again and ask for `openid`',
      { extras: { scope: 'openid' } },
    )
  const name = has('profile') ? (await people.find(userId))?.name : undefined
  return {
    sub: userId,
    ...(has('email') && { email: person.email, email_verified: true }),
    ...(name !== undefined && { name }),
  }
}
