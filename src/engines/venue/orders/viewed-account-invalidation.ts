import { LRUCache } from 'lru-cache'

type ViewedAccountsDeps = {
  views: { invalidate(account: string): void }
  evmAddressOf: (userId: string) => Promise<string>
  /** Calls the listener after each commit for the user, on any instance. */
  onCommit: (userId: string, listener: () => void) => Disposable
}

const viewersMax = 20_000
/** How long commits for a user who looked at views are followed: longer than any view is cached. */
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
    // Commits of other instances before this look were not reported here, so the views are read again.
    if (!known) invalidate()
    viewers.set(userId, known ?? onCommit(userId, invalidate))
    return account
  }
}
