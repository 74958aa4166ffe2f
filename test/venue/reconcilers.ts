/** Reconcilers beside the instances of a test, with short intervals. */
import { ExchangeClient, HttpTransport } from '@nktkas/hyperliquid'
import { privateKeyToAccount } from 'viem/accounts'
import { openReconciler } from '#compose/reconciler.ts'
import { openStreams } from '#compose/venue.ts'
import type { WalletRow } from '#engines/custody/wallet-store.ts'
import type { Intervals } from '#engines/venue/reconciliation/reconciler.ts'
import { query } from '#store/query.ts'
import type { VenueAccountRow } from '#store/tables/venue.ts'
import { eventually } from '../harness/gateway.ts'
import type { Instance, User, VenueApp } from './venue-app.ts'

/** A realistic venue may answer with an old state for seconds, and a busy machine takes its time. */
const comparisonMsMax = 30_000
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
  const config = {
    ...instance.config,
    HYPERLIQUID_STREAMED_USERS: followedUsersMax,
    HYPERLIQUID_BALANCE_DRIFT: balancesFreeze ? ('freeze' as const) : ('log' as const),
    // Its streams serve the followed accounts only.
    HYPERLIQUID_WEIGHT_PER_MINUTE: 0,
  }
  const core = { ...instance, config }
  const streams = openStreams({ ...core, url: app.market.url })
  const created = openReconciler(
    { core, venue: { client: instance.upstream, streams }, custody: instance.custody },
    { intervals: { ...quickIntervals, ...overrides } },
  )
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
  const venueTimeMs = async (): Promise<number> => {
    const body = JSON.stringify({ type: 'exchangeStatus' })
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(`${app.market.url}/info`, { method: 'POST', headers, body })
    return ((await reply.json()) as { time: number }).time
  }
  const waitForBaseline = (user: User) =>
    eventually(async () => {
      const row = await account(user)
      return row && row.state !== 'new' ? row : undefined
    }, 'a baseline')
  return {
    sql,
    account,
    waitForBaseline,
    /** Matched by a comparison that ended after this call, of balances that the venue showed after it. */
    waitForMatch: async (user: User) => {
      await waitForBaseline(user)
      const calledAt = new Date()
      const from = await venueTimeMs()
      let comparedAt: Date | null | undefined
      return eventually(
        async () => {
          const row = await account(user)
          if (row?.state === 'frozen') throw new Error(`frozen: ${row.reason}`)
          const isNew =
            row?.checked_at && row.checked_at > calledAt && Number(row.reconciled_through_ms) >= from
          if (isNew && row.mismatch === null) return row
          // A comparison that was running may have read older balances.
          if (comparedAt === undefined || row?.checked_at?.getTime() !== comparedAt?.getTime())
            await sql('update venue_account set next_at = now() where user_id = $1', [user.id])
          comparedAt = row?.checked_at
          return undefined
        },
        'a matching comparison',
        comparisonMsMax,
      )
    },
    waitForFrozen: async (user: User) => {
      await sql('update venue_account set next_at = now() where user_id = $1', [user.id])
      return eventually(
        async () => {
          const row = await account(user)
          return row?.state === 'frozen' ? row : undefined
        },
        'a frozen account',
        comparisonMsMax,
      )
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
      const wallet = await app.main.custody.keystore.withKey(row!, async (secret) =>
        privateKeyToAccount(`0x${Buffer.from(secret).toString('hex')}`),
      )
      const transport = new HttpTransport({ apiUrl: app.market.url, rpcUrl: app.market.url })
      return new ExchangeClient({ transport, wallet })
    },
  }
}
