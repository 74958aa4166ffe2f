/** Reconcilers beside the instances of a test, with short intervals. */
import { ExchangeClient, HttpTransport } from '@nktkas/hyperliquid'
import { privateKeyToAccount } from 'viem/accounts'
import { type Intervals, reconciler } from '#engines/venue/reconciliation/reconciler.ts'
import type { WalletRow } from '#features/wallets/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import { query } from '#store/query.ts'
import type { VenueAccountRow } from '#store/tables/venue.ts'
import { venueStreams } from '#upstreams/hyperliquid/stream.ts'
import { eventually } from '../harness/gateway.ts'
import { type Instance, type User, type VenueApp, venueId } from './venue-app.ts'

/** No account is compared by itself, unless it traded or a test requests it. */
const quickIntervals: Intervals = {
  tickMs: 40,
  settleMs: 500,
  idleMs: 3_600_000,
  tradingMs: 400,
  activeMs: 600_000,
  leaseMs: 2_000,
}

export function startReconciler(
  app: VenueApp,
  instance: Instance,
  {
    followedUsersMax = 10,
    balancesFreeze = true,
    ...overrides
  }: Partial<Intervals> & { followedUsersMax?: number; balancesFreeze?: boolean } = {},
) {
  const streams = venueStreams({
    url: app.market.wsUrl,
    clock,
    random,
    log: silentLog,
    subscribedUsersMax: followedUsersMax,
  })
  const { taskEngine, policy, upstream } = instance
  const created = reconciler({
    db: app.database.pool,
    transact: taskEngine.transact,
    events: taskEngine.events,
    instanceId: taskEngine.instanceId,
    venue: upstream.withUrgency('background'),
    streams,
    clock,
    random,
    log: silentLog,
    balancesFreeze,
    freeze: (tx, userId, reason) => policy.freeze(tx, { userId, chainId: venueId }, reason),
    unfreeze: (tx, userId) => policy.unfreeze(tx, { userId, chainId: venueId }),
    intervals: { ...quickIntervals, ...overrides },
  })
  const running = created.start()
  return {
    streams,
    counts: created.counts,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]()
      await streams[Symbol.asyncDispose]()
    },
  }
}

export const accountRecords = (app: VenueApp) => {
  const sql = <T extends object>(text: string, values: unknown[] = []) =>
    query<T>(app.database.pool, text, values)
  const account = async (user: User): Promise<VenueAccountRow | undefined> =>
    (await sql<VenueAccountRow>('select * from venue_account where user_id = $1', [user.id]))[0]
  const waitForBaseline = (user: User) =>
    eventually(async () => {
      const row = await account(user)
      return row && row.state !== 'new' ? row : undefined
    }, 'a baseline')
  return {
    sql,
    account,
    waitForBaseline,
    /** Matched by a comparison that began after this call. */
    waitForMatch: async (user: User) => {
      await waitForBaseline(user)
      const from = new Date()
      await sql('update venue_account set next_at = $2 where user_id = $1', [user.id, from])
      return eventually(async () => {
        const row = await account(user)
        if (row?.state === 'frozen') throw new Error(`frozen: ${row.reason}`)
        return row?.checked_at && row.checked_at > from && row.mismatch === null ? row : undefined
      }, 'a matching comparison')
    },
    waitForFrozen: async (user: User) => {
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
        'select body from user_event where user_id = $1 and type = $2 order by seq',
        [user.id, type],
      )
      return rows.map(({ body }) => body)
    },
    /** The holder of the account's own key can do anything there. */
    async ownerClient(user: User): Promise<ExchangeClient> {
      const [row] = await sql<WalletRow>(`select * from wallet where user_id = $1 and kind = 'evm'`, [
        user.id,
      ])
      const wallet = await app.main.store.withKey(row!, async (secret) =>
        privateKeyToAccount(`0x${Buffer.from(secret).toString('hex')}`),
      )
      const transport = new HttpTransport({ apiUrl: app.market.url, rpcUrl: app.market.url })
      return new ExchangeClient({ transport, wallet })
    },
  }
}
