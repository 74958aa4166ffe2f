import { type Config, ConfigRefused } from '#config.ts'
import { postgresBus } from '#durable/bus.ts'
import { type Ground, ground as makeGround } from '#durable/ground.ts'
import { queueFacts } from '#durable/load.ts'
import type { Transactions } from '#durable/transactions.ts'
import { upkeep } from '#durable/upkeep.ts'
import { viewOf } from '#durable/view.ts'
import { httpEdge } from '#edges/http/http.ts'
import { auth as makeAuth } from '#features/auth/auth.ts'
import { type EvmBatches, type EvmPort, evmBatches } from '#features/chains/batch.ts'
import { chains } from '#features/chains/chains.ts'
import { wrongNodes } from '#features/chains/identify.ts'
import { laneKeeper } from '#features/chains/lane-keeper.ts'
import { probe as makeProbe } from '#features/chains/probe.ts'
import { chainTable, solanaId } from '#features/chains/table.ts'
import { credits as makeCredits } from '#features/credits/credits.ts'
import { discovery } from '#features/discovery/discovery.ts'
import { healthCheck } from '#features/discovery/health.ts'
import { earn as makeEarn } from '#features/earn/earn.ts'
import { snapshotKind, snapshotSchedule } from '#features/earn/snapshot.ts'
import { notifications } from '#features/notifications/notifications.ts'
import { policy as makePolicy, type PolicyFeature } from '#features/policy/policy.ts'
import { tasks } from '#features/tasks/tasks.ts'
import { user } from '#features/user/user.ts'
import { welcomeAdmission, welcomeFunding } from '#features/wallets/funding.ts'
import { type Holdings, holdings as makeHoldings } from '#features/wallets/holdings.ts'
import { seenTokens } from '#features/wallets/holdings-seen.ts'
import { keystore as makeKeystore } from '#features/wallets/keystore.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { walletsOf } from '#features/wallets/store.ts'
import { wallets } from '#features/wallets/wallets.ts'
import type { Chain } from '#kernel/chains.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Operation } from '#kernel/operation.ts'
import type { TaskKind } from '#kernel/task.ts'
import type { UpstreamUrls } from '#start/place.ts'
import { custodyChains, houseLimits, keysOf, rateLimits } from '#start/settings.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { migrate } from '#store/migrate.ts'
import { evm } from '#upstreams/evm/evm.ts'
import { lanePlan, startNonce } from '#upstreams/evm/nonce.ts'
import { evmScheme } from '#upstreams/evm/sign.ts'
import { sponsor } from '#upstreams/evm/sponsor.ts'
import { faucet } from '#upstreams/faucet/faucet.ts'
import { net as makeNet } from '#upstreams/net.ts'
import { prices } from '#upstreams/prices/prices.ts'
import { svmScheme } from '#upstreams/solana/sign.ts'
import { solana } from '#upstreams/solana/solana.ts'
import { vault as makeVault } from '#upstreams/vault/vault.ts'

type Needs = {
  config: Config
  log: Log
  say: (line: string) => void
  databaseUrl: string
  urls: UpstreamUrls
  failpoints: Failpoints
}
type Parts = AsyncDisposableStack

const version = '1.0.0'
const protocols = ['http', 'sse']
const sponsorBalanceMinWei = 10_000_000_000_000_000n
const revokedTopic = 'r:'
const upkeepEveryMs = 60_000

async function openStore({ config, log, say, databaseUrl, failpoints }: Needs, parts: Parts) {
  const directUrl = config.DATABASE_DIRECT_URL ?? databaseUrl
  await migrate({ url: directUrl, progress: say })
  const onIdleError = (error: Error) => log.warn({ error }, 'an idle database connection was lost')
  const settings = { url: databaseUrl, directUrl, failpoints, onIdleError }
  const database = openDatabase({ ...settings, poolMax: config.DATABASE_POOL, applicationName: 'portico' })
  parts.defer(() => database.close())
  // Signatures are made inside transactions: their own small pool is never used up by those that wait for it.
  const custody = openDatabase({ ...settings, poolMax: 4, applicationName: 'portico custody' })
  parts.defer(() => custody.close())
  return { database, custody }
}

type Net = ReturnType<typeof makeNet>

function openChains({ config, urls }: Needs, net: Net) {
  const table = chainTable({ urls: { ...urls.evm, [solanaId]: urls.solana }, finality: config.FINALITY })
  const secrets = config.SPONSOR_KEYS.map((key) => Buffer.from(key.slice(2), 'hex'))
  const ports = new Map<string, EvmPort>()
  const readers = table.map((row) => {
    if (row.family === 'solana') return { family: 'solana' as const, chain: solana({ row, net }) }
    const chain = evm({ row, net })
    ports.set(row.id, {
      chain,
      sponsor: sponsor({ chain, secrets, clock, balanceMinWei: sponsorBalanceMinWei }),
    })
    return { family: 'evm' as const, chain }
  })
  return { table, ports, readers }
}
type Chains = ReturnType<typeof openChains>

type Custody = {
  config: Config
  net: Net
  chains: Chains
  database: Database
  custody: Database
  ground: Ground
}

function openCustody({ config, net, chains, database, custody, ground }: Custody) {
  const { table, ports } = chains
  const keystore = makeKeystore({
    keks: keysOf(config, net, random),
    schemes: { evm: evmScheme, svm: svmScheme },
    clock,
    random,
  })
  const policy = makePolicy({
    ...{ on: database.pool, transact: ground.transact, clock, random, walletsOf },
    house: houseLimits(config, table),
  })
  const signer = custodySigner({
    ...{ on: custody.pool, keystore, scheme: evmScheme, clock, genuine: policy.genuine },
    chains: custodyChains(config, table),
  })
  const batches = evmBatches({ ports, policy: policy.policy, signer, lanes: ground.lanes, startNonce })
  return { keystore, policy, batches }
}

type Earning = {
  config: Config
  chains: Chains
  database: Database
  ground: Ground
  batches: EvmBatches
  policy: PolicyFeature
  holdings: () => Holdings
}

/** Served where the chain of the vault is; without it the section does not exist. */
function openEarn({ config, chains, database, ground, batches, policy, holdings }: Earning) {
  const chain = chains.ports.get(config.EARN_CHAIN_ID)?.chain
  if (!chain) return undefined
  const { row } = chain
  const vault = makeVault({ chain, chainId: row.id, address: config.EARN_VAULT_ADDRESS, asset: row.usdc })
  const shareToken = {
    symbol: 'evUSDC',
    name: 'Earn vault share',
    decimals: 18,
    address: config.EARN_VAULT_ADDRESS,
  }
  const earn = makeEarn({
    ...{
      on: database.pool,
      vault,
      chain: row,
      shareToken,
      ledger: ground.ledger,
      batches,
      policy: policy.policy,
      clock,
      random,
    },
    evmAddressOf: async (userId) => {
      const own = await walletsOf(database.pool, userId)
      return own.find(({ kind }) => kind === 'evm')!.address
    },
    changed: (userId, chainId) => holdings().invalidate(userId, chainId),
    limits: { minDepositUsdc: config.EARN_MIN_DEPOSIT_USDC, minWithdrawUsdc: config.EARN_MIN_WITHDRAW_USDC },
  })
  const asset = row.tokens.find(({ address }) => address === row.usdc)!
  return {
    ...earn,
    chainId: row.id,
    share: { chainId: row.id, token: shareToken, asset, assetsOf: vault.assetsOf },
  }
}

type Featured = Needs & {
  transactions: Transactions
  stores: { database: Database; custody: Database }
  ground: Ground
  net: Net
  baseUrl: () => string
  parts: Parts
}

function openFeatures({ config, urls, transactions, stores, ground, net, baseUrl, parts }: Featured) {
  const { database } = stores
  const on = database.pool
  const chainsOpen = openChains({ config, urls } as Needs, net)
  const { table, ports, readers } = chainsOpen
  const { keystore, policy, batches } = openCustody({ config, net, chains: chainsOpen, ...stores, ground })
  const earn = openEarn({
    config,
    chains: chainsOpen,
    database,
    ground,
    batches,
    policy,
    holdings: () => holdings,
  })
  const holdings: Holdings = makeHoldings({
    ...{
      chains: readers,
      prices: prices({ url: urls.prices ?? '', net, clock }),
      share: earn?.share ?? null,
      clock,
    },
    walletsOf: (userId) => walletsOf(on, userId),
    seenTokens: (userId) => seenTokens(on, userId),
  })
  const changed = (userId: string, chainId: string) => holdings.invalidate(userId, chainId)
  const welcome = urls.faucet
    ? welcomeFunding({ faucet: faucet({ url: urls.faucet, net }), changed })
    : undefined
  const kinds: TaskKind[] = [...(welcome ? [welcome] : []), ...(earn ? [snapshotKind(earn.snapshot)] : [])]

  const credits = makeCredits({ on, ledger: ground.ledger, clock })
  const auth = makeAuth({
    ...{
      on,
      transact: ground.transact,
      clock,
      random,
      baseUrl,
      keystore,
      tokenTtlMs: config.TOKEN_TTL_SECONDS * 1000,
    },
    grantSignup: credits.grantSignup,
    publishRevoked: async (hash) => ground.wake.hint([`${revokedTopic}${hash}`]),
    welcome: async (tx, { userId, wallets: own }) => {
      if (welcome)
        await ground.enqueue(tx, {
          userId,
          kind: welcome,
          input: {},
          admission: welcomeAdmission(own, table),
        })
    },
  })
  ground.wake.each((topic) => {
    if (topic.startsWith(revokedTopic)) auth.onRevoked(topic.slice(revokedTopic.length))
  })

  const heads = readers.map((reader) => ({
    id: reader.chain.row.id,
    head: (signal: AbortSignal): Promise<unknown> =>
      reader.family === 'evm' ? reader.chain.head(signal) : reader.chain.slot(signal),
  }))
  const probe = parts.use(makeProbe({ chains: heads, clock }))
  const health = healthCheck({
    ...{ version, environment: config.ENVIRONMENT, clock },
    store: () => on.query('select 1'),
    runner: () => queueFacts(transactions, clock),
    upstreams: async () =>
      Object.fromEntries(
        table.map(({ id, name }) => [name, { status: probe.status(id), lastOkAt: probe.lastOkAt(id) }]),
      ),
  })

  const operations: Operation[] = [
    ...discovery({
      operations: () => operations,
      facts: factsOf(config, table, earn?.chainId),
      protocols,
      health,
    }),
    ...chains({ table, status: probe.status }),
    ...auth.operations,
    ...wallets({ table, holdings, walletsOf: (userId) => walletsOf(on, userId) }),
    ...(earn?.operations ?? []),
    ...tasks({ tasks: ground.tasks, view: (task) => viewOf(task, baseUrl()) }),
    ...credits.operations,
    ...user({ on, walletsOf, credits, policySummary: policy.summary }),
    ...notifications({ events: ground.events }),
    ...policy.operations,
  ]
  return { operations, kinds, auth, health, ports, earn }
}

const factsOf = (config: Config, table: readonly Chain[], earnChainId: string | undefined) => ({
  chains: { ids: table.map(({ id }) => id) },
  earn: { asset: 'USDC', chain_id: earnChainId, min_deposit_usdc: config.EARN_MIN_DEPOSIT_USDC },
  wallets: { kinds: ['evm', 'solana'], transfer_out: false },
  notifications: { stream: true, rest: true, webhooks: false, retention_days: 7 },
  auth: {
    schemes: ['keypair'],
    scopes: ['read', 'trade', 'earn', 'manage'],
    token_ttl_seconds: config.TOKEN_TTL_SECONDS,
  },
})

/** The only place that knows every part: it builds each one and hands it to those that need it. */
export async function app(needs: Needs): Promise<{ url: string } & AsyncDisposable> {
  const { config, log, failpoints } = needs
  await using parts = new AsyncDisposableStack()
  let listening = config.BASE_URL
  const baseUrl = () => listening ?? `http://${config.HOST}:${config.PORT}`
  const stores = await openStore(needs, parts)
  const { database } = stores
  const transactions = { pool: database.pool, run: database.transaction }
  const net = parts.use(makeNet({ failpoints }))
  const ground = parts.use(
    makeGround({
      ...{ transactions, bus: postgresBus(database), clock, random, log, baseUrl },
      options: { slots: config.RUNNER_SLOTS, leaseMs: config.LEASE_MS, pollMs: 250 },
    }),
  )
  const { operations, kinds, auth, health, ports, earn } = openFeatures({
    ...needs,
    transactions,
    stores,
    ground,
    net,
    baseUrl,
    parts,
  })
  const wrong = await wrongNodes(
    [...ports.values()].map(({ chain }) => chain),
    config.ENVIRONMENT,
  )
  if (wrong.length > 0) throw new ConfigRefused(wrong)
  const engine = ground.engine(operations, kinds)
  const http = await httpEdge({
    ...{ operations, call: engine.call, authenticate: auth.authenticate, health, baseUrl, log, clock },
    ...{ trustProxy: config.TRUST_PROXY, corsOrigins: config.CORS_ORIGINS, limits: rateLimits(config) },
  })
  const address = await http.listen({ host: config.HOST, port: config.PORT })
  listening ??= address
  parts.defer(() => http.close())

  parts.use(laneKeeper({ on: database.pool, transact: ground.transact, ports, plan: lanePlan, log }).start())
  engine.start()
  if (earn) await ground.schedules.ensure(database.pool, snapshotSchedule(clock.now()))
  const keepUp = upkeep({ transactions, clock, log })
  const timer = setInterval(() => {
    Promise.all([auth.sweep(), keepUp()]).catch((error: unknown) =>
      log.warn({ error }, 'the upkeep failed; it is tried again'),
    )
  }, upkeepEveryMs)
  parts.defer(() => clearInterval(timer))
  const held = parts.move()
  return { url: baseUrl(), [Symbol.asyncDispose]: () => held.disposeAsync() }
}
