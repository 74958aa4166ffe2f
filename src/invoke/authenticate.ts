import type { Caller } from '#kernel/caller.ts'
import { Fault } from '#kernel/fault.ts'
import type { Access } from '#kernel/operation.ts'

export type Authenticate = (authorization: string | undefined) => Promise<Caller>

/** Identifies the caller, and checks the scope of the credential. */
export async function authorize(
  access: Access,
  authorization: string | undefined,
  authenticate: Authenticate,
): Promise<Caller | null> {
  if (access === 'public')
    return authorization === undefined ? null : authenticateOptional(authorization, authenticate)
  const caller = await authenticate(authorization)
  if (!caller.scopes.has(access)) {
    throw new Fault(
      'insufficient_scope',
      `The token lacks the scope ${access}, which this operation needs: use a token that has it`,
      {
        extras: { scope: access },
      },
    )
  }
  return caller
}

/** A public path answers every caller, so a stale credential only leaves the caller unknown. */
async function authenticateOptional(
  authorization: string,
  authenticate: Authenticate,
): Promise<Caller | null> {
  try {
    return await authenticate(authorization)
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}
