/** Reconcilers beside the instances of a stage, at a pace that a test can wait for. */
import { ExchangeClient, HttpTransport } from '@nktkas/hyperliquid'
import { privateKeyToAccount } from 'viem/accounts'
import { type Pace, reconciler } from '#features/venue/reconciler.ts'
import type { WalletRow } from '#features/wallets/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import { send } from '#store/query.ts'
import type { VenueAccountRow } from '#store/tables/venue.ts'
import { venueStreams } from '#upstreams/hyperliquid/stream.ts'
import { eventually } from '../harness/gateway.ts'
import { type Instance, type Stage, type User, venueId } from './stage.ts'

/** Nothing is looked at by itself, unless somebody traded or a test asks. */
const quick: Pace = {
  tickMs: 40,
  settleMs: 500,
  restMs: 3_600_000,
  tradingMs: 400,
  activeMs: 600_000,
  leaseMs: 2_000,
}

export function keeper(
  on: Stage,
  instance: Instance,
  {
    usersMost = 10,
    balancesFreeze = true,
    ...how
  }: Partial<Pace> & { usersMost?: number; balancesFreeze?: boolean } = {},
) {
  const streams = venueStreams({ url: on.market.wsUrl, clock, random, log: silentLog, usersMost })
  const { ground, policy, upstream } = instance
  const made = reconciler({
    on: on.database.pool,
    transact: ground.transact,
    events: ground.events,
    instanceId: ground.instanceId,
    venue: upstream.at('background'),
    streams,
    clock,
    random,
    log: silentLog,
    balancesFreeze,
    freeze: (tx, userId, reason) => policy.freeze(tx, { userId, chainId: venueId }, reason),
    thaw: (tx, userId) => policy.thaw(tx, { userId, chainId: venueId }),
    pace: { ...quick, ...how },
  })
  const running = made.start()
  return {
    streams,
    counts: made.counts,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]()
      await streams[Symbol.asyncDispose]()
    },
  }
}

export const book = (on: Stage) => {
  const sql = <T extends object>(text: string, values: unknown[] = []) =>
    send<T>(on.database.pool, text, values)
  const account = async (user: User): Promise<VenueAccountRow | undefined> =>
    (await sql<VenueAccountRow>('select * from venue_account where user_id = $1', [user.id]))[0]
  const standing = (user: User) =>
    eventually(async () => {
      const row = await account(user)
      return row && row.state !== 'new' ? row : undefined
    }, 'a baseline')
  return {
    sql,
    account,
    standing,
    /** Agreed, by a look that began after this call. */
    agreed: async (user: User) => {
      await standing(user)
      const from = new Date()
      await sql('update venue_account set next_at = $2 where user_id = $1', [user.id, from])
      return eventually(async () => {
        const row = await account(user)
        if (row?.state === 'frozen') throw new Error(`frozen: ${row.reason}`)
        return row?.checked_at && row.checked_at > from && row.suspicion === null ? row : undefined
      }, 'an agreement')
    },
    frozen: async (user: User) => {
      await sql('update venue_account set next_at = now() where user_id = $1', [user.id])
      return eventually(async () => {
        const row = await account(user)
        return row?.state === 'frozen' ? row : undefined
      }, 'a frozen account')
    },
    fills: (user: User) =>
      sql<{ order_id: bigint; trade_id: bigint }>('select * from venue_fill where user_id = $1', [user.id]),
    events: async (user: User, type: string) => {
      const rows = await sql<{ body: Record<string, string> }>(
        'select body from outbox where user_id = $1 and type = $2 order by seq',
        [user.id, type],
      )
      return rows.map(({ body }) => body)
    },
    /** The holder of the account's own key can do anything there. */
    async thief(user: User): Promise<ExchangeClient> {
      const [row] = await sql<WalletRow>(`select * from wallet where user_id = $1 and kind = 'evm'`, [
        user.id,
      ])
      const wallet = await on.main.store.lend(row!, async (secret) =>
        privateKeyToAccount(`0x${Buffer.from(secret).toString('hex')}`),
      )
      const transport = new HttpTransport({ apiUrl: on.market.url, rpcUrl: on.market.url })
      return new ExchangeClient({ transport, wallet })
    },
  }
}
