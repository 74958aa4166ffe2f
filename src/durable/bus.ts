import type pg from 'pg'
import { send } from '#store/query.ts'
import type { WakeBus } from './wake.ts'

type Listen = (options: {
  channels: readonly string[]
  onMessage: (channel: string, payload: string) => void
  onConnected: () => void
}) => { close(): Promise<void> }

const channel = 'portico_wake'

/** NOTIFY is sent alone, never inside a transaction of work: there it takes a global lock at the commit. */
export const postgresBus = ({ pool, listen }: { pool: pg.Pool; listen: Listen }): WakeBus => ({
  async publish(payload) {
    await send(pool, 'select pg_notify($1, $2)', [channel, payload])
  },
  subscribe(hear) {
    const listening = listen({
      channels: [channel],
      onMessage: (_, payload) => hear(payload),
      onConnected: () => hear(undefined),
    })
    return { [Symbol.asyncDispose]: () => listening.close() }
  },
})
