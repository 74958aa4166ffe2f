import { createWindowCounter } from '#kernel/async/window-counter.ts'

type Fetch = (url: string, init?: object) => Promise<unknown>
type FetchedDocument = { status: number; headers: { get(name: string): string | null } }

/** How long a failed address is not asked again: longer than a request, shorter than a person's next try. */
const failureMs = 5_000
const addressesMax = 10_000

/**
 * Fetches the client id metadata documents. After a failure the provider looks the client up again for its error
 * answer, so an address that has just given no document is not fetched a second time.
 */
export function fetchDocuments(fetch: Fetch, nowMs: () => number): Fetch {
  const failures = createWindowCounter({ keysMax: addressesMax, nowMs })
  return async (url, init) => {
    if (failures.count(url) > 0) throw new Error(`${new URL(url).host} gave no document a moment ago`)
    const failed = () => failures.add(url, failureMs)
    const response = await fetch(url, init).catch((error: unknown) => {
      failed()
      throw error
    })
    if (!isDocument(response as FetchedDocument)) failed()
    return response
  }
}

const isDocument = ({ status, headers }: FetchedDocument): boolean =>
  status === 200 && (headers.get('content-type') ?? '').includes('json')
