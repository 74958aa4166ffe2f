import { LRUCache } from 'lru-cache'
import type { AddressOf } from '#engines/custody/wallet-store.ts'

type ViewedAccountsDeps = {
  views: { invalidate(account: string): void }
  evmAddressOf: AddressOf
  /** Calls the listener after each commit for the user, on any instance. */
  onCommit: (userId: string, listener: () => void) => Disposable
}

const viewersMax = 20_000
/** After a user has read views, commits for the user invalidate them for this long. No view is cached for longer. */
const viewerMs = 600_000

/** Returns a user's address for views; while the user looks at views, each commit for the user invalidates them. */
export function createViewedAccounts({ views, evmAddressOf, onCommit }: ViewedAccountsDeps) {
  const viewers = new LRUCache<string, Disposable>({
    max: viewersMax,
    ttl: viewerMs,
    ttlAutopurge: true,
    dispose: (listening) => listening[Symbol.dispose](),
  })
  return async (userId: string): Promise<string> => {
    const account = await evmAddressOf(userId)
    const invalidate = () => views.invalidate(account)
    const known = viewers.get(userId)
    // Commits for this user were not reported to this instance until now, so cached views may be outdated.
    if (!known) invalidate()
    viewers.set(userId, known ?? onCommit(userId, invalidate))
    return account
  }
}
