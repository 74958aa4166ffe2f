import type { TokenStore } from './oauth-session.ts'
import type { OAuthTokens } from './oauth-sign-in.ts'

type Outcome<Result> = {
  result: Result
  error: unknown
  onsuccess?: () => void
  onerror?: () => void
}
type Records = {
  get(key: string): Outcome<unknown>
  put(value: unknown, key: string): Outcome<unknown>
  delete(key: string): Outcome<unknown>
}
type Transaction = {
  objectStore(name: string): Records
  error: unknown
  oncomplete?: () => void
  onabort?: () => void
}
type Database = {
  createObjectStore(name: string): void
  transaction(name: string, mode: 'readonly' | 'readwrite'): Transaction
  close(): void
}
type Opening = Outcome<Database> & { onupgradeneeded?: () => void }
type Page = {
  indexedDB?: { open(name: string, version: number): Opening }
  navigator?: { locks?: { request<T>(name: string, run: () => Promise<T>): Promise<T> } }
}

const [records, key] = ['tokens', 'current']

/**
 * Stores tokens in IndexedDB, and serialises the tabs of one origin by the Web Locks API. A tab that gets the lock
 * reads from IndexedDB what the previous holder wrote; from `localStorage` it could still read the old value.
 */
export function webTokenStore(name = 'portico'): TokenStore {
  const { indexedDB, navigator } = globalThis as Page
  const locks = navigator?.locks
  if (!indexedDB || !locks)
    throw new TypeError(
      'webTokenStore needs IndexedDB and navigator.locks, which a page has on https or localhost',
    )

  const open = () =>
    new Promise<Database>((resolve, reject) => {
      const opening = indexedDB.open(name, 1)
      opening.onupgradeneeded = () => opening.result.createObjectStore(records)
      opening.onsuccess = () => resolve(opening.result)
      opening.onerror = () => reject(opening.error)
    })
  const run = async (mode: 'readonly' | 'readwrite', request: (tokens: Records) => Outcome<unknown>) => {
    const database = await open()
    try {
      return await new Promise<unknown>((resolve, reject) => {
        const transaction = database.transaction(records, mode)
        const outcome = request(transaction.objectStore(records))
        transaction.oncomplete = () => resolve(outcome.result)
        transaction.onabort = () => reject(transaction.error)
      })
    } finally {
      database.close()
    }
  }
  return {
    read: async () => (await run('readonly', (tokens) => tokens.get(key))) as OAuthTokens | undefined,
    async write(next) {
      await run('readwrite', (tokens) => (next ? tokens.put(next, key) : tokens.delete(key)))
    },
    exclusive: (work) => locks.request(`${name}.tokens`, work),
  }
}
