import type { Config } from '#config.ts'
import { postgresBus } from '#durable/bus.ts'
import { ground as makeGround } from '#durable/ground.ts'
import { queueFacts } from '#durable/load.ts'
import { viewOf } from '#durable/view.ts'
import { httpEdge } from '#edges/http/http.ts'
import { auth as makeAuth } from '#features/auth/auth.ts'
import { type EvmPort, evmBatches } from '#features/chains/batch.ts'
import { chains } from '#features/chains/chains.ts'
import { laneKeeper } from '#features/chains/lane-keeper.ts'
import { probe as makeProbe } from '#features/chains/probe.ts'
import { chainTable } from '#features/chains/table.ts'
import { credits as makeCredits } from '#features/credits/credits.ts'
import { discovery } from '#features/discovery/discovery.ts'
import { healthCheck } from '#features/discovery/health.ts'
import { notifications } from '#features/notifications/notifications.ts'
import { policy as makePolicy } from '#features/policy/policy.ts'
import { tasks } from '#features/tasks/tasks.ts'
import { user } from '#features/user/user.ts'
import { envKek, type Kek, keks } from '#features/wallets/keks.ts'
import { keystore as makeKeystore } from '#features/wallets/keystore.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { walletsOf } from '#features/wallets/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { toUnits, usdDecimals } from '#kernel/money.ts'
import type { Operation } from '#kernel/operation.ts'
import type { UpstreamUrls } from '#start/place.ts'
import { openDatabase } from '#store/database.ts'
import { migrate } from '#store/migrate.ts'
import { evm } from '#upstreams/evm/evm.ts'
import { lanePlan, startNonce } from '#upstreams/evm/nonce.ts'
import { evmScheme } from '#upstreams/evm/sign.ts'
import { sponsor } from '#upstreams/evm/sponsor.ts'
import { vaultTransit } from '#upstreams/kms/kms.ts'
import { net as makeNet } from '#upstreams/net.ts'
import { svmScheme } from '#upstreams/solana/sign.ts'

type Says = (line: string) => void
type Needs = {
  config: Config
  log: Log
  say: Says
  databaseUrl: string
  urls: UpstreamUrls
  failpoints: Failpoints
}

const version = '0.1.0'
const protocols = ['http', 'sse']
/** Below this a sponsor lane carries nothing more: about a dozen batches at a high fee. */
const sponsorBalanceMinWei = 10_000_000_000_000_000n
const revokedTopic = 'r:'
const sweepEveryMs = 60_000

const micros = (usd: string) => toUnits(usd, usdDecimals)

function keksOf(config: Config, net: ReturnType<typeof makeNet>) {
  const local: Kek[] = config.KEY_ENCRYPTION_KEYS.map(({ id, key }) => envKek(id, key, random))
  const { VAULT_TRANSIT_URL: url, VAULT_TRANSIT_TOKEN: token = '', VAULT_TRANSIT_KEY: key } = config
  const all = url ? [vaultTransit({ net, id: `transit:${key}`, url, token, key }), ...local] : local
  const [current, ...former] = all
  if (!current) throw new Error('no key-encryption key')
  return keks(current, ...former)
}

const limitsOf = (config: Config) => ({
  auth: { points: config.RATE_AUTH, windowSeconds: 60 },
  read: { points: config.RATE_READ, windowSeconds: 60 },
  money: { points: config.RATE_MONEY, windowSeconds: 60 },
  exit: { points: config.RATE_EXIT, windowSeconds: 60 },
  stream: { points: config.RATE_STREAM, windowSeconds: 60 },
  refused: { points: config.RATE_REFUSED, windowSeconds: 60 },
})

/** The only place that knows every part: it builds each one and hands it to those that need it. */
export async function app({
  config,
  log,
  say,
  databaseUrl,
  urls,
  failpoints,
}: Needs): Promise<{ url: string } & AsyncDisposable> {
  const parts = new AsyncDisposableStack()
  let listening = config.BASE_URL
  const baseUrl = () => listening ?? `http://${config.HOST}:${config.PORT}`

  const directUrl = config.DATABASE_DIRECT_URL ?? databaseUrl
  await migrate({ url: directUrl, progress: say })
  const onIdleError = (error: Error) => log.warn({ error }, 'an idle database connection was lost')
  const settings = { url: databaseUrl, directUrl, failpoints, onIdleError }
  const database = openDatabase({ ...settings, poolMax: config.DATABASE_POOL, applicationName: 'portico' })
  parts.defer(() => database.close())
  // Signatures are made inside transactions: their own small pool can never be used up by those that wait for it.
  const custodyDatabase = openDatabase({ ...settings, poolMax: 4, applicationName: 'portico custody' })
  parts.defer(() => custodyDatabase.close())
  const on = database.pool
  const transactions = { pool: on, run: database.transaction }
  const net = parts.use(makeNet({ failpoints }))

  const ground = parts.use(
    makeGround({
      ...{ transactions, bus: postgresBus(database), clock, random, log, baseUrl },
      options: { slots: config.RUNNER_SLOTS, leaseMs: config.LEASE_MS, pollMs: 250 },
    }),
  )
  const { ledger, lanes, transact } = ground

  const table = chainTable({ urls: { ...urls.evm, '7565164': urls.solana }, finality: config.FINALITY })
  const secrets = config.SPONSOR_KEYS.map((key) => Buffer.from(key.slice(2), 'hex'))
  const ports = new Map<string, EvmPort>()
  for (const row of table)
    if (row.family === 'evm') {
      const chain = evm({ row, net })
      ports.set(row.id, {
        chain,
        sponsor: sponsor({ chain, secrets, clock, balanceMinWei: sponsorBalanceMinWei }),
      })
    }

  const keystore = makeKeystore({
    keks: keksOf(config, net),
    schemes: { evm: evmScheme, svm: svmScheme },
    clock,
    random,
  })
  const contracts = [{ chainId: '8453', address: config.EARN_VAULT_ADDRESS }]
  const house = {
    perTransactionMicros: micros(config.POLICY_TX_USD_MAX),
    perDayMicros: micros(config.POLICY_DAY_USD_MAX),
    ...{ chains: table.map(({ id }) => id), tokens: null, contracts },
  }
  const policy = makePolicy({ on, transact, clock, random, house, walletsOf })
  const signer = custodySigner({
    ...{ on: custodyDatabase.pool, keystore, scheme: evmScheme, clock, genuine: policy.genuine },
    chains: [],
  })
  const batches = evmBatches({ ports, policy: policy.policy, signer, lanes, startNonce })
  void batches

  const credits = makeCredits({ on, ledger, clock })
  const auth = makeAuth({
    ...{ on, transact, clock, random, baseUrl, keystore, tokenTtlMs: config.TOKEN_TTL_SECONDS * 1000 },
    grantSignup: credits.grantSignup,
    publishRevoked: async (hash) => ground.wake.hint([`${revokedTopic}${hash}`]),
  })
  ground.wake.each((topic) => {
    if (topic.startsWith(revokedTopic)) auth.onRevoked(topic.slice(revokedTopic.length))
  })

  const heads = [...ports.values()].map(({ chain }) => ({
    id: chain.row.id,
    head: (signal: AbortSignal) => chain.head(signal),
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
    ...discovery({ operations: () => operations, facts: {}, protocols, health }),
    ...chains({ table, status: probe.status }),
    ...auth.operations,
    ...tasks({ tasks: ground.tasks, view: (task) => viewOf(task, baseUrl()) }),
    ...credits.operations,
    ...user({ on, walletsOf, credits, policySummary: policy.summary }),
    ...notifications({ events: ground.events }),
    ...policy.operations,
  ]
  const engine = ground.engine(operations, [])
  const keeper = laneKeeper({ on, transact, ports, plan: lanePlan, log })

  const http = await httpEdge({
    ...{ operations, call: engine.call, authenticate: auth.authenticate, health, baseUrl, log, clock },
    ...{ trustProxy: config.TRUST_PROXY, corsOrigins: config.CORS_ORIGINS, limits: limitsOf(config) },
  })
  const address = await http.listen({ host: config.HOST, port: config.PORT })
  listening ??= address
  parts.defer(() => http.close())
  parts.use(keeper.start())
  engine.start()
  const sweep = setInterval(
    () =>
      void auth.sweep().catch((error: unknown) => log.warn({ error }, 'expired credentials were not swept')),
    sweepEveryMs,
  )
  parts.defer(() => clearInterval(sweep))
  return { url: baseUrl(), [Symbol.asyncDispose]: () => parts.disposeAsync() }
}
