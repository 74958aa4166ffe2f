/** The product on a venue of its own and the chain of its bridge. */
import type { Overrides } from '#compose/compose.ts'
import type { TriggerHost } from '#features/spot-venue/deps.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { startVenue } from '../../world/conformance/venue/venue.ts'
import { assertConservedWith, decimalUnits, type Task, testFunding } from '../harness/conservation.ts'
import {
  addUser as addTestUser,
  type CallOptions,
  endOfTask,
  openInstance,
  type TestUser,
} from '../harness/instance.ts'
import { laggingVenue } from '../harness/lagging-venue.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { ownWorld } from '../harness/own-world.ts'
import { creditAtVenue, enforcedWeight } from '../harness/venue-gateway.ts'
import { proofSeed } from '../proof/support/seed.ts'

const arbitrumId = '42161'
/** An order that never arrived is known to be lost once its signature has expired, 20 s after it was made. */
const taskEndMsMax = 60_000
const priceCheckMs = 100
const views = ['perp_orders', 'perp_setup_status', 'spot_venue_orders']
const env = { POLICY_TX_USD_MAX: '50000', POLICY_DAY_USD_MAX: '10000000' }

export type Leg = { role: string; order_id: string | null; status: string; error: string | null }
/** Every field of an answer that some test looks at. */
export type TaskAnswer = {
  task_id: string
  status: string
  state: string
  outcome: string | null
  message: string
  error: { code: string; message: string } | null
  completed_at: string | null
  fills: { order_id: string; fill_id: string; side: string; price: string; size: string; fee: string }[]
  result: {
    order_id: string
    cloid: string
    order_status: string
    filled_size: string
    avg_price: string
    fee: string
    tp_oids: string[]
    sl_oids: string[]
    legs: Leg[]
    venue_status: string
    moved_from_spot_usd: string | null
    moved_from_perp_usd: string | null
    fee_token: string
    amount: string
    amount_usd: string
    fee_usd: string
    tx_hash: string
    credited_at: string
    setup_complete: boolean
    api_wallet_address: string
  }
  markets: Record<string, unknown>[]
  total: number
  setup_complete: boolean
  account_activated: boolean
  api_wallet_address: string | null
  steps: { key: string; done: boolean; error: string | null }[]
  orders: {
    order_id: string
    asset: string
    side: string
    task_id: string | null
    tpsl: string | null
    status: string
    trigger_price: string | null
    parent_order_id: string | null
    size: string
    is_trigger: boolean
  }[]
  positions: {
    asset: string
    side: string
    size: string
    leverage: number
    tp_oids: string[]
    sl_oids: string[]
    liquidation_price: string | null
  }[]
  mark_prices: Record<string, string>
  balances: { asset: string; total: string; hold: string; entry_notional_usd: string }[]
  account: { account_value_usd: string; withdrawable_usd: string; margin_used_usd: string }
}
export type User = TestUser
type VenueAppOptions = {
  /** How long a user-signed action is looked up after a rejection. */
  graceMs?: number
  triggerHost?: TriggerHost
  /** Request weight per minute that the gateway counts, of views too; absent: what the venue enforces, without views. */
  weight?: number
  /** The loopback address whose weight the venue counts by itself. */
  from?: string
  /** Why the test needs a venue that answers at once and counts nothing; absent: the venue is realistic. */
  quiet?: string
  /** Why nobody counts request weight at a venue that is otherwise realistic. */
  uncounted?: string
  /** The venue is reached through a proxy whose reads can be delayed. */
  lagging?: boolean
  /** The proxy is the operator's own node instead. */
  ownNode?: boolean
}
type Endpoints = {
  databaseUrl: string
  arbitrumUrl: string
  venueUrl: string
  streamUrl: string
  infoUrl: string | undefined
}

const enforcedFor = ({ quiet, uncounted }: VenueAppOptions): number =>
  quiet === undefined && uncounted === undefined ? enforcedWeight : 0

/** Counts the replies by which the venue refused a request for its weight. */
function countRateLimited() {
  let count = 0
  const wrapNet = (net: Net): Net => ({
    async fetch(request) {
      const reply = await net.fetch(request)
      if (reply.status === 429) count += 1
      return reply
    },
  })
  return { wrapNet, rateLimitedCount: () => count }
}

async function createInstance(endpoints: Endpoints, settings: VenueAppOptions) {
  const { databaseUrl, arbitrumUrl, venueUrl, streamUrl, infoUrl } = endpoints
  const { graceMs, triggerHost = 'gateway', weight, from } = settings
  const { wrapNet, rateLimitedCount } = countRateLimited()
  const overrides: Overrides = {
    wrapNet,
    priceCheckMs,
    ...(graceMs !== undefined && { actionGraceMs: graceMs }),
    // Tests look far more often than an account may, and no stream is there to answer from.
    ...(weight === undefined && { viewWeightPerMinute: 0 }),
  }
  const opened = await openInstance({
    databaseUrl,
    urls: { evm: { [arbitrumId]: arbitrumUrl }, hyperliquid: venueUrl },
    env: {
      ...env,
      HYPERLIQUID_WS_URL: streamUrl,
      ...(infoUrl !== undefined && { HYPERLIQUID_INFO_URL: infoUrl }),
      HYPERLIQUID_STREAMED_USERS: '0',
      HYPERLIQUID_WEIGHT_PER_MINUTE: String(weight ?? enforcedFor(settings)),
      HYPERLIQUID_SPOT_TRIGGERS: triggerHost,
      ...(from !== undefined && { HYPERLIQUID_EGRESS_ADDRESSES: from }),
    },
    overrides,
  })
  const { priceLoop } = opened.features.spot!
  const { renewal } = opened.features.perp!
  opened.runtime.start()
  priceLoop.start()
  const { chain } = opened.chains.ports.get(arbitrumId)!
  const { client, egress } = opened.venue!
  const { call } = opened
  return {
    ...opened,
    call: (name: string, input: object, user: User, options?: CallOptions) =>
      call<TaskAnswer>(name, input, user, options),
    upstream: client,
    budget: egress[0]!.budget,
    renewal,
    chain,
    usdc: chain.row.usdc,
    /** How often the venue refused a request for its weight. */
    rateLimitedCount,
    async [Symbol.asyncDispose]() {
      await priceLoop[Symbol.asyncDispose]()
      await opened[Symbol.asyncDispose]()
    },
  }
}
export type Instance = Awaited<ReturnType<typeof createInstance>>

/** The venue with its options; prices are constant unless a test moves them. */
async function openMarket(arbitrumUrl: string, settings: VenueAppOptions) {
  const isQuiet = settings.quiet !== undefined
  const market = await startVenue([
    '--arbitrum-rpc',
    arbitrumUrl,
    '--tick-ms',
    '200',
    '--bridge-ms',
    '100',
    '--realism',
    isQuiet ? 'quiet' : 'realistic',
    '--realism-seed',
    String(isQuiet ? 1 : proofSeed('venue')),
  ])
  const limitWeight = () => market.control('POST', '/realism', { weightPerMinute: enforcedFor(settings) })
  await limitWeight()
  await market.control('POST', '/settings', { walking: false })
  return {
    ...market,
    /** With the same limit as before. */
    async restart() {
      await market.restart()
      await limitWeight()
    },
    [Symbol.asyncDispose]: () => market.close(),
  }
}

export async function createVenueApp(settings: VenueAppOptions = {}) {
  await using parts = new AsyncDisposableStack()
  // A world of its own, because the venue identifies transfers by what has happened at the bridge before.
  const [world, home] = await Promise.all([ownWorld([arbitrumId]), ownDatabase()])
  parts.use(world)
  const { url: databaseUrl, database } = parts.use(home)
  const arbitrumUrl = world.urls.evm[arbitrumId]
  const market = parts.use(await openMarket(arbitrumUrl, settings))
  const lag = parts.use(await laggingVenue(market.url))
  const venueUrl = settings.lagging ? lag.url : market.url
  const infoUrl = settings.ownNode ? lag.url : undefined
  const endpoints = { databaseUrl, arbitrumUrl, venueUrl, streamUrl: market.wsUrl, infoUrl }
  const instances = parts.use(new AsyncDisposableStack())
  const instance = async (overrides: VenueAppOptions = {}) =>
    instances.use(await createInstance(endpoints, { ...settings, ...overrides }))
  const main = await instance()
  const users: User[] = []
  const readTasks = async ({ id }: User): Promise<Task[]> => {
    const { rows } = await database.pool.query<Task>(
      `select id as task_id, kind, status, state, outcome, result, data -> 'fills' as fills from task where user_id = $1`,
      [id],
    )
    return rows
  }

  const addUser = async (): Promise<User> => {
    const user = await addTestUser(main)
    users.push(user)
    return user
  }
  /** As if a while had passed: every read shows what was done so far. */
  const catchUp = () => market.control('POST', '/realism/catch-up')
  const credit = async (user: User, amount: string, coin = 'perp') => {
    await creditAtVenue(market.control, { evm: user.evm, amount, coin })
    await catchUp()
  }

  /** A view may be as old as the reads behind it, so that a test looks when every read is current. */
  const call: Instance['call'] = async (name, ...rest) => {
    if (views.includes(name)) await catchUp()
    return main.call(name, ...rest)
  }

  const owned = parts.move()
  return {
    world,
    market,
    lag,
    database,
    main,
    instance,
    call,
    addUser,
    credit,
    catchUp,
    /** With money at the venue and a key that trades. */
    async trader(amount = '10000'): Promise<User> {
      const user = await addUser()
      await credit(user, amount)
      const done = await main.call('perp_setup', {}, user)
      if (done.outcome !== 'executed') throw new Error(`set-up: ${JSON.stringify(done)}`)
      return user
    },
    async fundWallet(user: User, amount: string) {
      const body = { chain_id: arbitrumId, address: user.evm, token: 'USDC', amount }
      const reply = await fetch(`${world.urls.control}/faucet/fund`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
      if (!reply.ok) throw new Error(await reply.text())
      const units = decimalUnits(amount, 6)
      testFunding.add(user, { asset: `usdc:${arbitrumId}`, units, why: 'the faucet gave it' })
    },
    price: (coin: string, price: number) => market.control('POST', '/price', { coin, price }),
    async book(coin: string): Promise<{ levels: { px: string; sz: string }[][] }> {
      const reply = await fetch(`${market.url}/info`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'l2Book', coin }),
      })
      return (await reply.json()) as { levels: { px: string; sz: string }[][] }
    },
    /** What the venue itself has on record of an account. */
    async venueState(user: User): Promise<VenueAccountState> {
      const { accounts } = await market.control<{ accounts: VenueAccountState[] }>(
        'GET',
        `/effects?user=${user.evm.toLowerCase()}`,
      )
      return accounts[0]!
    },
    waitForEnd: (user: User, taskId: string) => endOfTask(main, user, taskId, taskEndMsMax),
    /** Each user has what it was given; then all of it goes. */
    async [Symbol.asyncDispose]() {
      const venueRecord = <B>(path: string) => market.control<B>('GET', path)
      const accounts = users.map((user) => ({
        evm: user.evm,
        gateway: { tasks: () => readTasks(user), positions: async () => [] },
      }))
      try {
        const query = (text: string, values: unknown[]) => database.pool.query(text, values)
        const { control } = world.urls
        await assertConservedWith({ control, venue: venueRecord, query, chains: [arbitrumId] }, accounts)
      } finally {
        await owned.disposeAsync()
      }
    },
  }
}
export type VenueApp = Awaited<ReturnType<typeof createVenueApp>>
export type VenueAccountState = {
  rawUsd: string
  spot: Record<string, { total: string; hold: string }>
  positions: { coin: string; lots: number; leverage: { cross: boolean; value: number } }[]
  fills: { oid: number; tid: number; sz: string; px: string; fee: string; cloid?: string }[]
  orders: { oid: number; status: string; phase: string; cloid?: string }[]
  ledger: { delta: { type: string; usdc?: string } }[]
  requests: number
}
