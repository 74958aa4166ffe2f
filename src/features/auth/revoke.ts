import type { Records } from '#features/oauth/records.ts'
import type { Caller, RequestFacts } from '#kernel/caller.ts'
import { Fault } from '#kernel/fault.ts'
import type { Queryable } from '#store/query.ts'
import type { AuthInput } from './contract.ts'
import * as store from './store.ts'
import type { Tokens } from './tokens.ts'

type RevokeDeps = {
  db: Queryable
  tokens: Pick<Tokens, 'publishRevoked'>
  records?: Pick<Records, 'revokeGrant' | 'revokeAccount'>
}

/** Publishes after the commit: another instance that is notified earlier would read the row and cache it again. */
export function revokeHandler({ db, tokens, records }: RevokeDeps) {
  return async ({ all }: AuthInput<'revoke'>, caller: Caller, { tx, afterCommit }: RequestFacts) => {
    const { userId, scopes, token } = caller
    if (all && !scopes.has('manage'))
      throw new Fault(
        'insufficient_scope',
        'Revoking all tokens requires the scope manage: use a token that has it, or leave `all` out',
        {
          extras: { scope: 'manage' },
        },
      )
    const { person } = caller
    if (person && records) {
      // The grant is what a person gave; its tokens end with it.
      const act = tx && afterCommit && { tx, afterCommit }
      if (all) await records.revokeAccount(userId, act)
      else await records.revokeGrant(person.grantId, act)
      return { revoked: 1 }
    }
    const handle = tx ?? db
    const removed = async (): Promise<string[]> => {
      if (all) return store.removeTokensOf(handle, userId)
      const own = token && (await store.removeToken(handle, Buffer.from(token.hash, 'hex')))
      return own ? [own.hash] : []
    }
    const hashes = await removed()
    const publish = () => tokens.publishRevoked(userId, hashes)
    if (afterCommit) afterCommit(() => void publish())
    else await publish()
    return { revoked: hashes.length }
  }
}
