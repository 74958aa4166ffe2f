/** Custody, policy and the perpetuals section put together against a venue and a chain of their own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { worldSponsors } from '#config-safety.ts'
import { createEngine } from '#durable/engine.ts'
import { postgresBus } from '#durable/postgres-notify.ts'
import { evmBatches } from '#engines/evm-batch/batch.ts'
import type { EvmPort } from '#engines/evm-batch/evm-port.ts'
import { gasBudget } from '#engines/evm-batch/gas-budget.ts'
import { createSignedActions } from '#engines/venue/orders/signed-action.ts'
import { chainList, solanaId } from '#features/chains/chain-list.ts'
import { createKeyRenewal } from '#features/perp/key-renewal.ts'
import { type PerpLimits, perpLimits } from '#features/perp/limits.ts'
import { perp } from '#features/perp/perp.ts'
import { createSetupStatus } from '#features/perp/setup-status.ts'
import { policy as makePolicy } from '#features/policy/policy.ts'
import type { TriggerHost } from '#features/spot-venue/deps.ts'
import { createPriceLoop } from '#features/spot-venue/price-loop.ts'
import { spotVenue } from '#features/spot-venue/spot-venue.ts'
import { addAgent, agentsOf, approveAgent, retireAgent } from '#features/wallets/agents.ts'
import { envKek, keyEncryptionKeys } from '#features/wallets/key-encryption-keys.ts'
import { keystore } from '#features/wallets/keystore.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { walletsOf } from '#features/wallets/store.ts'
import { type Caller, scopes } from '#kernel/caller.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { agentId, systemRandom as random, uuidv7 } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import type { Net } from '#kernel/net.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { query } from '#store/query.ts'
import { transferData } from '#upstreams/evm/erc20.ts'
import { evm } from '#upstreams/evm/evm.ts'
import { startNonce } from '#upstreams/evm/nonce-repair-plan.ts'
import { evmCrypto } from '#upstreams/evm/sign.ts'
import { sponsor } from '#upstreams/evm/sponsor.ts'
import { accountViews } from '#upstreams/hyperliquid/account-views.ts'
import { hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { rateBudget, unlimitedBudget } from '#upstreams/hyperliquid/rate-budget.ts'
import * as rejections from '#upstreams/hyperliquid/rejections.ts'
import * as grid from '#upstreams/hyperliquid/rounding.ts'
import { hyperliquidCrypto } from '#upstreams/hyperliquid/sign.ts'
import { net as makeNet } from '#upstreams/net.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import { startWorld, type WorldUrls } from '#world/world.ts'
import { startVenue } from '../conformance/venue/venue.ts'
import { testDatabase } from '../harness/cluster.ts'
import { assertConservedWith, decimalUnits, type Task, testFunding } from '../harness/conservation.ts'
import { eventually } from '../harness/gateway.ts'
import { laggingVenue } from '../harness/lagging-venue.ts'
import { creditAtVenue, enforcedWeight } from '../harness/venue-gateway.ts'
import { proofSeed } from '../proof/support/seed.ts'

export const arbitrumId = '42161'
export const venueId = '999'
export const bridge = '0x2Df1c51E09aECF9cacB7bc98cB1742757f163dF7'
/** An order that never arrived is known to be lost once its signature has expired, 20 s after it was made. */
const taskEndMsMax = 60_000
const venue = 'hyperliquid'
const sponsorSecrets = worldSponsors.map((key) => Buffer.from(key.slice(2), 'hex'))
const views = ['perp_orders', 'perp_setup_status', 'spot_venue_orders']
const testKek = envKek('test', Buffer.from(random.bytes(32)).toString('base64'), random)

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
export type User = { id: string; caller: Caller; evm: string }
type VenueAppOptions = {
  limits?: Partial<PerpLimits>
  dayMicros?: bigint
  graceMs?: number
  triggerHost?: TriggerHost
  /** Request weight per minute that the gateway counts, of views too; absent: what the venue enforces, without views. */
  weight?: number
  /** Why the test needs a venue that answers at once and counts nothing; absent: the venue is realistic. */
  quiet?: string
  /** Why nobody counts request weight at a venue that is otherwise realistic. */
  uncounted?: string
  /** The venue is reached through a proxy whose reads can be delayed. */
  lagging?: boolean
}

const enforcedFor = ({ quiet, uncounted }: VenueAppOptions): number =>
  quiet === undefined && uncounted === undefined ? enforcedWeight : 0

export function createInstance(
  database: Database,
  custody: Database,
  urls: WorldUrls,
  venueUrl: string,
  settings: VenueAppOptions = {},
) {
  const db = database.pool
  const net = makeNet({ failpoints: noFailpoints })
  const taskEngine = createEngine({
    transactions: { pool: db, run: database.transaction, pipelined: database.pipelinedTransaction },
    heartbeats: db,
    bus: postgresBus(database),
    clock,
    random,
    log: silentLog,
    options: { slots: 64, leaseMs: 2_000, pollMs: 100 },
  })
  const chainRows = chainList({ urls: { ...urls.evm, [solanaId]: urls.solana }, finality: 'local' })
  const ports = new Map<string, EvmPort>()
  for (const row of chainRows) {
    if (row.family === 'solana') continue
    const chain = evm({ row, net })
    const payer = sponsor({ chain, secrets: sponsorSecrets, clock, balanceMinWei: 10n ** 16n })
    ports.set(row.id, { chain, sponsor: payer })
  }
  const { chain } = ports.get(arbitrumId)!
  const usdc = chain.row.usdc
  const policy = makePolicy({
    db,
    transact: taskEngine.transact,
    clock,
    random,
    walletsOf,
    platformLimits: {
      perTransactionMicros: 50_000_000_000n,
      perDayMicros: settings.dayMicros ?? 10_000_000_000_000n,
      chains: [...chainRows.map(({ id }) => id), venueId],
      tokens: null,
      contracts: [{ chainId: arbitrumId, address: bridge }],
    },
  })
  const store = keystore({
    keyEncryptionKeys: keyEncryptionKeys(testKek),
    crypto: { evm: evmCrypto, svm: svmCrypto },
    clock,
    random,
  })
  const signer = custodySigner({
    db: custody.pool,
    keystore: store,
    crypto: evmCrypto,
    clock,
    isAuthentic: policy.isAuthentic,
    chains: [
      {
        chainId: arbitrumId,
        delegate: chain.row.delegate!,
        contracts: [bridge],
        maxUnits: { [usdc]: 1_000_000_000_000n },
        hasSettableClock: true,
      },
    ],
    venues: [
      {
        venue,
        chainId: venueId,
        maxMicros: 50_000_000_000n,
        crypto: hyperliquidCrypto('local'),
        hasSettableClock: true,
      },
    ],
  })
  const batches = evmBatches({
    ports,
    policy: policy.policy,
    signer,
    nonces: taskEngine.nonces,
    startNonce,
    gasBudget: gasBudget({ db, budgetWei: 10n ** 18n, clock }),
  })
  const later = (ms: number, run: () => void) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  }
  const nowMs = () => performance.now()
  const perMinute = settings.weight ?? enforcedFor(settings)
  const budget = perMinute > 0 ? rateBudget({ perMinute, nowMs, after: later }) : unlimitedBudget
  let rateLimitedCount = 0
  const countingNet: Net = {
    async fetch(request) {
      const reply = await net.fetch(request)
      if (reply.status === 429) rateLimitedCount += 1
      return reply
    },
  }
  const upstream = hyperliquid({ url: venueUrl, net: countingNet, clock, egress: [{ budget }] })
  const views = accountViews({
    venue: upstream,
    clock,
    subscribedSinceMs: () => undefined,
    // Tests look far more often than an account may, and no stream is there to answer from.
    perMinute: settings.weight ?? 0,
  })
  const { nonces } = taskEngine
  const signedActions = createSignedActions({
    venue: upstream.withUrgency('exit'),
    chainId: venueId,
    policy: policy.policy,
    signer,
    nonces,
    ...(settings.graceMs !== undefined && { graceMs: settings.graceMs }),
  })
  const evmAddressOf = async (userId: string) =>
    (await walletsOf(db, userId)).find(({ kind }) => kind === 'evm')!.address
  const limits = { ...perpLimits, ...settings.limits }
  const shared = {
    db,
    venue: upstream,
    views,
    chainId: venueId,
    signedActions,
    pricing: grid,
    rejections,
    policy: policy.policy,
    evmAddressOf,
    clock,
    limits,
    readStreamedOrder: async () => undefined,
  }
  const agents = {
    of: (userId: string) => agentsOf(db, { userId, venue }),
    prepare: (userId: string) => store.prepareAgent(userId, venue),
    add: addAgent,
    approved: (tx, userId, fact) => approveAgent(tx, { userId, venue }, fact),
    retired: (userId, address) => retireAgent(db, { userId, venue }, { address, now: clock.now() }),
  } satisfies Parameters<typeof perp>[0]['agents']
  const perpOperations = perp({
    ...shared,
    agents,
    ledger: taskEngine.ledger,
    batches,
    chain,
    changed: () => {},
    transferCall: (token, to, amountUnits) => ({ to: token, value: 0n, data: transferData(to, amountUnits) }),
    route: { chainId: arbitrumId, symbol: 'USDC', token: usdc, bridge },
  })
  const renewal = createKeyRenewal({
    ...shared,
    agents,
    log: silentLog,
    transact: taskEngine.transact,
    enqueue: taskEngine.enqueue,
    status: createSetupStatus({ db, views, agents, evmAddressOf, clock, limits }),
    onNotExecuted: policy.policy.release,
  })
  const spot = spotVenue({
    ...shared,
    triggerHost: settings.triggerHost ?? 'gateway',
    agentOf: async (userId) => (await agents.of(userId)).current,
    onAgentRevoked: (task, agent) => agents.retired(task.userId, agent),
    renewKey: renewal.renew,
  })
  const operations = [...perpOperations, ...spot.operations]
  const engine = taskEngine.createRuntime(operations, [...spot.kinds, ...renewal.kinds])
  engine.start()
  const watch = createPriceLoop({
    db,
    venue: upstream,
    watcher: taskEngine.priceTriggers,
    evmAddressOf,
    log: silentLog,
    everyMs: 100,
  })
  watch.start()

  const call = async (
    name: string,
    input: object,
    user: User,
    options: { wait?: boolean; key?: string; timeoutMs?: number } = {},
  ): Promise<TaskAnswer> => {
    const operation = operations.find((each) => each.name === name)
    if (!operation) throw new Error(`no ${name}`)
    const { wait = true, timeoutMs = 30_000, key } = options
    const reply = await engine.invoke({
      operation,
      input: input as Record<string, unknown>,
      caller: user.caller,
      options: { wait, timeoutMs, ...(key && { key }) },
      request: { id: 'request', address: '127.0.0.1', signal: new AbortController().signal },
    })
    if (reply.kind !== 'answer') throw new Error('an answer was expected')
    return reply.body as TaskAnswer
  }

  return {
    taskEngine: taskEngine,
    call,
    signedActions,
    store,
    policy,
    upstream,
    budget,
    renewal,
    usdc,
    chain,
    signer,
    /** How often the venue said that it was too much. */
    rateLimitedCount: () => rateLimitedCount,
    async [Symbol.asyncDispose]() {
      await watch[Symbol.asyncDispose]()
      await taskEngine[Symbol.asyncDispose]()
      await net[Symbol.asyncDispose]()
    },
  }
}
export type Instance = ReturnType<typeof createInstance>

export async function createVenueApp(settings: VenueAppOptions = {}) {
  const parts = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'portico-venue-'))
  parts.defer(() => rmSync(folder, { recursive: true, force: true }))
  // Of its own, since the venue tells its transfers by what has happened at the bridge before.
  const starting = startWorld({ dataDir: folder, port: 0, only: [arbitrumId] })
  const [world, home] = await Promise.all([starting, testDatabase()])
  parts.use(world)
  parts.defer(() => home.drop())
  const seed = settings.quiet === undefined ? proofSeed('venue') : 1
  const market = await startVenue([
    '--arbitrum-rpc',
    world.urls.evm[arbitrumId],
    '--tick-ms',
    '200',
    '--bridge-ms',
    '100',
    '--realism',
    settings.quiet === undefined ? 'realistic' : 'quiet',
    '--realism-seed',
    String(seed),
  ])
  parts.defer(() => market.close())
  const limitWeight = () => market.control('POST', '/realism', { weightPerMinute: enforcedFor(settings) })
  await limitWeight()
  /** With the same limit as before. */
  const restartMarket = async () => {
    await market.restart()
    await limitWeight()
  }
  // Prices stand still unless a test moves them.
  await market.control('POST', '/settings', { walking: false })
  const lag = parts.use(await laggingVenue(market.url))
  const open = (poolMax: number) => {
    const database = openDatabase({ url: home.url, poolMax, applicationName: 'venue test' })
    parts.defer(() => database.close())
    return database
  }
  const instance = (overrides: VenueAppOptions = {}) =>
    parts.use(
      createInstance(open(24), open(4), world.urls, settings.lagging ? lag.url : market.url, {
        ...settings,
        ...overrides,
      }),
    )
  const database = open(4)
  const main = instance()
  const users: User[] = []
  const readTasks = async ({ id }: User): Promise<Task[]> => {
    const { rows } = await database.pool.query<Task>(
      `select id as task_id, kind, status, state, outcome, result, data -> 'fills' as fills from task where user_id = $1`,
      [id],
    )
    return rows
  }

  const addUser = async (): Promise<User> => {
    const now = clock.now()
    const id = uuidv7(now, random)
    await query(
      database.pool,
      'insert into app_user (id, agent_id, auth_scheme, created_at) values ($1, $2, $3, $4)',
      [id, agentId(now, random), 'keypair', now],
    )
    const prepared = await main.store.prepare(id)
    const own = await database.transaction((tx) => main.store.provision(tx, prepared))
    const caller: Caller = { userId: id, agentId: 'agt', scheme: 'keypair', scopes: new Set(scopes) }
    const user = { id, caller, evm: own.find(({ kind }) => kind === 'evm')!.address }
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

  return {
    world,
    market: { ...market, restart: restartMarket },
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
    waitForEnd: (user: User, taskId: string) =>
      eventually(
        async () => {
          const task = await main.taskEngine.tasks.find(user.id, taskId)
          return task.completed_at ? task : undefined
        },
        'the end of the task',
        taskEndMsMax,
      ),
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
        await parts.disposeAsync()
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
