import { assertScope } from '#kernel/contract/assert-scope.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Access } from '#kernel/contract/operation.ts'

export type Authenticate = (authorization: string | undefined) => Promise<Caller>
export type AuthenticateBackend = (key: string | undefined) => Promise<Caller>

export const noBackends: AuthenticateBackend = async () => {
  throw new Fault('unauthorized', 'This gateway has no operations for backends')
}

export async function authorize(
  access: Access,
  authorization: string | undefined,
  authenticate: Authenticate,
): Promise<Caller | null> {
  if (access === 'public')
    return authorization === undefined ? null : authenticateOptional(authorization, authenticate)
  // An operation for backends takes the key of a backend, and no credential of a user.
  if (access === 'backend')
    throw new Fault('unauthorized', "This operation takes a backend's key only: send it in X-BACKEND-KEY")
  const caller = await authenticate(authorization)
  if (access === 'person') {
    if (caller.person) return caller
    throw new Fault(
      'invalid_token',
      'This operation takes the OAuth access token of a person, and the token is one of a key pair',
    )
  }
  if (caller.person && !caller.person.hasSignedUp) throw signupRequired()
  assertScope(caller, access)
  return caller
}

const signupRequired = () =>
  new Fault(
    'signup_required',
    'This person has no account here yet: call `auth_signup` (POST /signup) once with the same token',
    { extras: { signup_path: '/signup' } },
  )

/** A public path answers every caller, so a stale credential only leaves the caller unknown. */
async function authenticateOptional(
  authorization: string,
  authenticate: Authenticate,
): Promise<Caller | null> {
  try {
    const caller = await authenticate(authorization)
    return caller.person?.hasSignedUp === false ? null : caller
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}
