import type pg from 'pg'
import { query } from '#store/query.ts'
import type { MessageBus } from './notifier.ts'

type Listen = (options: {
  channels: readonly string[]
  onMessage: (channel: string, payload: string) => void
  onConnected: () => void
}) => { close(): Promise<void> }

const channel = 'portico_wake'

/** NOTIFY is sent alone and never inside a transaction, where it takes a global lock at commit. */
export const createPostgresBus = ({ pool, listen }: { pool: pg.Pool; listen: Listen }): MessageBus => ({
  async publish(payload) {
    await query(pool, 'select pg_notify($1, $2)', [channel, payload])
  },
  subscribe(onPayload) {
    const listening = listen({
      channels: [channel],
      onMessage: (_, payload) => onPayload(payload),
      onConnected: () => onPayload(undefined),
    })
    return { [Symbol.asyncDispose]: () => listening.close() }
  },
})
