import type { Records } from '#features/oauth/authorization-server-records.ts'
import type { EndApps } from '#features/oauth/grant-revocation.ts'
import { type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { AuthInput } from './contract.ts'
import * as store from './store.ts'
import type { Tokens } from './tokens.ts'

type RevokeDeps = {
  tokens: Pick<Tokens, 'publishRevoked'>
  records?: Pick<Records, 'revokeGrant' | 'revokeAccount'>
  /** Ends the schedules, webhooks and other things that the holder of a leaked token may have set up. */
  endApps: EndApps
}

/** A revocation is published after its commit; an instance notified earlier would cache the old row again. */
export function createRevokeHandler({ tokens, records, endApps }: RevokeDeps) {
  return async ({ all }: AuthInput<'revoke'>, caller: Caller, request: RequestFacts) => {
    const { userId, scopes, token } = caller
    if (all && !scopes.has('manage'))
      throw new Fault(
        'insufficient_scope',
        'Revoking all tokens requires the scope manage: use a token that has it, or leave `all` out',
        {
          extras: { scope: 'manage' },
        },
      )
    const act = toActScope(request)
    const { tx, afterCommit } = act
    const { person } = caller
    if (person && records) {
      if (all) await records.revokeAccount(userId, act)
      else await records.revokeGrant(person.grantId, act)
      return { revoked: 1 }
    }
    const removed = async (): Promise<string[]> => {
      if (all) return store.removeTokensOf(tx, userId)
      const own = token && (await store.removeToken(tx, Buffer.from(token.hash, 'hex')))
      return own ? [own.hash] : []
    }
    const hashes = await removed()
    const announce = all ? await endApps(tx, { personId: userId, clientId: undefined }) : () => {}
    afterCommit(() => {
      announce()
      void tokens.publishRevoked(userId, hashes)
    })
    return { revoked: hashes.length }
  }
}
