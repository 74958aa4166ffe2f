import { AsyncLocalStorage } from 'node:async_hooks'
import type { ServerEventBus } from '@modelcontextprotocol/server'
import { createKeyCounts } from '#kernel/async/key-counts.ts'
import { budgetSpent } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * Notifies clients that listen for it (`subscriptions/listen`) when the list of their tools has changed, such as by the
 * link of an agent to a person. Each client is notified about its own list alone.
 */

/** Calls back after each event of the user. */
export type OnUserEvents = (userId: string, listener: () => void) => Disposable
type Listening = {
  userId: string
  /** Identifies the list that the client has now; it throws if the credential is not valid any more. */
  listKey: () => Promise<string>
}

const listensPerUserMax = 10

/** A place among the subscriptions of a user, from before the first await of its request. */
type Place = { state: 'reserved' | 'taken' | 'given_back' }

const isListen = (body: unknown): boolean => isRecord(body) && body.method === 'subscriptions/listen'

export function createListChanges(onUserEvents: OnUserEvents) {
  const opening = new AsyncLocalStorage<Listening & { key: string; place: Place }>()
  const open = createKeyCounts()

  const bus: ServerEventBus = {
    // Nothing is published to all clients.
    publish: () => {},
    subscribe(listener) {
      const client = opening.getStore()
      if (!client) return () => {}
      const { userId, listKey, place } = client
      let { key } = client
      let checks = Promise.resolve()
      let isWaiting = false
      const check = async () => {
        isWaiting = false
        const found = await listKey()
        if (found === key) return
        key = found
        listener({ kind: 'tools_list_changed' })
      }
      if (place.state !== 'reserved') open.add(userId)
      place.state = 'taken'
      const events = onUserEvents(userId, () => {
        if (isWaiting) return
        isWaiting = true
        // A client without a valid credential has no list that could change.
        checks = checks.then(check).catch(() => undefined)
      })
      return () => {
        events[Symbol.dispose]()
        open.remove(userId)
      }
    },
  }

  return {
    bus,
    /** Runs a request, so that a stream which it opens gets the changes of this client's list. */
    async run<T>(body: unknown, client: Listening, request: () => Promise<T>): Promise<T> {
      if (!isListen(body)) return request()
      const { userId, listKey } = client
      if (open.get(userId) >= listensPerUserMax)
        throw budgetSpent(
          'rate_limited',
          'This user has too many open subscriptions of MCP: close one of them first',
          {
            budget: 'mcp_subscriptions',
            owner: 'user',
            retryAfterSeconds: 1,
          },
        )
      open.add(userId)
      const place: Place = { state: 'reserved' }
      try {
        return await opening.run({ ...client, key: await listKey(), place }, request)
      } finally {
        if (place.state === 'reserved') {
          place.state = 'given_back'
          open.remove(userId)
        }
      }
    },
  }
}
