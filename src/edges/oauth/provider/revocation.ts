import type { Context } from 'oidc-provider'
import type { OAuth } from '#features/oauth/oauth.ts'
import { Fault } from '#kernel/contract/fault.ts'

type RevocationDeps = Pick<OAuth, 'verify' | 'records'>

const refusals = new WeakSet<Context>()
/** Notes that the provider has authenticated the client but refused to revoke the token, because the token is a JWT. */
export const noteRefusal = (context: Context, { error }: { error?: string }): void => {
  if (error === 'unsupported_token_type') refusals.add(context)
}

/**
 * Completes the revocation endpoint of the provider, which cannot revoke an access token because it stores none: the
 * grant of the access token is revoked instead. The answer is JSON, because clients that expect JSON treat an empty
 * answer as a failure.
 */
export function completeRevocation({ verify, records }: RevocationDeps) {
  const grantOf = async (token: string, clientId: string | undefined): Promise<string | undefined> => {
    const claims = await verify(token).catch((error: unknown) => {
      // RFC 7009 treats a token that is not valid as revoked.
      if (error instanceof Fault && error.code === 'invalid_token') return undefined
      throw error
    })
    return claims?.clientId === clientId ? claims?.grantId : undefined
  }
  return async (context: Context, next: () => Promise<void>): Promise<void> => {
    await next()
    const { oidc } = context
    if (oidc?.route !== 'revocation') return
    if (refusals.has(context)) {
      const grantId = await grantOf(String(oidc.params?.token), oidc.client?.clientId)
      if (grantId !== undefined) await records.revokeGrant(grantId)
      context.status = 200
    }
    if (context.status !== 200) return
    context.type = 'json'
    context.body = {}
  }
}
