/** Chains, custody, policy, earn and holdings put together on a world and a database of their own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEngine } from '#durable/engine.ts'
import { postgresBus } from '#durable/postgres-notify.ts'
import { evmBatches } from '#engines/evm-batch/batch.ts'
import type { EvmPort } from '#engines/evm-batch/evm-port.ts'
import { gasBudget } from '#engines/evm-batch/gas-budget.ts'
import { createNonceRepair } from '#engines/evm-batch/nonce-repair.ts'
import { chainList, solanaId } from '#features/chains/chain-list.ts'
import { earn } from '#features/earn/earn.ts'
import { policy as makePolicy } from '#features/policy/policy.ts'
import type { HoldingView } from '#features/wallets/contract.ts'
import { createFaucetGrant } from '#features/wallets/faucet-grant.ts'
import { type ChainReader, holdings as makeHoldings } from '#features/wallets/holdings.ts'
import { envKek, keyEncryptionKeys } from '#features/wallets/key-encryption-keys.ts'
import { keystore } from '#features/wallets/keystore.ts'
import { pastTokens } from '#features/wallets/past-tokens.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { walletsOf } from '#features/wallets/store.ts'
import { wallets } from '#features/wallets/wallets.ts'
import { type Caller, scopes } from '#kernel/caller.ts'
import type { EvmChainRow } from '#kernel/chains.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { agentId, systemRandom as random, uuidv7 } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import type { Operation } from '#kernel/operation.ts'
import type { Admission } from '#kernel/task.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { query } from '#store/query.ts'
import { evm } from '#upstreams/evm/evm.ts'
import { planNonceRepair, startNonce } from '#upstreams/evm/nonce-repair-plan.ts'
import { evmCrypto } from '#upstreams/evm/sign.ts'
import { sponsor } from '#upstreams/evm/sponsor.ts'
import { faucet } from '#upstreams/faucet/faucet.ts'
import { net as makeNet } from '#upstreams/net.ts'
import { prices } from '#upstreams/prices/prices.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import { solana } from '#upstreams/solana/solana.ts'
import { vault as makeVault } from '#upstreams/vault/vault.ts'
import { startWorld, type WorldPart, type WorldUrls } from '#world/world.ts'
import { testDatabase } from '../harness/cluster.ts'
import { eventually } from '../harness/gateway.ts'

export const vaultAddress = '0xea12000000000000000000000000000000008453'
export const baseId = '8453'
/** Accounts 1 to 4 of the well-known development mnemonic: known to everyone, and worth nothing anywhere. */
export const sponsorSecrets = [
  '59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  '5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
  '7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6',
  '47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a',
].map((hex) => Buffer.from(hex, 'hex'))

const kek = envKek('test', Buffer.from(random.bytes(32)).toString('base64'), random)

/** Every field of an answer that some test looks at; which of them an operation gives is for the test to say. */
export type Answer = {
  task_id: string
  kind: string
  status: string
  state: string
  outcome: string | null
  error: { code: string; message: string }
  result: {
    position_id: string
    amount_usdc: number
    amount_usdc_decimal: string
    shares_delta: string
    share_price: string
    tx_hash: string
    funded: string[]
  }
  transactions: { status: string; tx_hash: string; nonce: number; block: number | null }[]
  balance_changes: { symbol: string; amount: string }[]
  positions: {
    id: string
    status: string
    amount_deposited_usdc: string
    unrealized_yield_usdc: string
    external_delta_shares: string | null
    shares: string
  }[]
  history: {
    status: string
    tx_hash: string | null
    amount_usdc: number | null
    error_message: string | null
  }[]
  chain_id: string
  apy: number | null
  apy_7d: number | null
  share_price: string
  share_decimals: number
  min_deposit_usdc: string
  asset: { decimals: number }
  holdings: HoldingView[]
  chains: { chain_id: string; status: string; error: string | null; as_of: string | null }[]
  errors: { chain_id: string | null; message: string }[]
  wallets: { address: string; chain_type: string; supported_chain_ids: string[] }[]
  provisioning: boolean
  total_value_usd: string
  complete: boolean
  stale: boolean
}
export type User = { id: string; caller: Caller; evm: string; svm: string }
type Tune = { row?: (row: EvmChainRow) => EvmChainRow; freshMs?: number }

/** One instance of the gateway's inside; several of them share a database and a world. */
export function createInstance(
  database: Database,
  /** Signatures are made inside transactions, so they look for keys through a pool of their own. */
  custody: Database,
  urls: WorldUrls,
  tune: Tune = {},
) {
  const db = database.pool
  const net = makeNet({ failpoints: noFailpoints })
  const durable = createEngine({
    transactions: { pool: db, run: database.transaction, pipelined: database.pipelinedTransaction },
    heartbeats: db,
    bus: postgresBus(database),
    clock,
    random,
    log: silentLog,
    baseUrl: () => 'http://gateway.test',
    options: { slots: 64, leaseMs: 2_000, pollMs: 100 },
  })
  const chainRows = chainList({ urls: { ...urls.evm, [solanaId]: urls.solana }, finality: 'local' }).map(
    (row) => (row.family === 'evm' ? (tune.row ?? ((each) => each))(row) : row),
  )
  const ports = new Map<string, EvmPort>()
  const readers: ChainReader[] = chainRows.map((row) => {
    if (row.family === 'solana') return { family: 'solana', chain: solana({ row, net }) }
    const chain = evm({ row, net })
    ports.set(row.id, {
      chain,
      sponsor: sponsor({ chain, secrets: sponsorSecrets, clock, balanceMinWei: 10n ** 16n }),
    })
    return { family: 'evm', chain }
  })
  const base = ports.get(baseId)!
  const usdc = base.chain.row.usdc
  const contracts = [{ chainId: baseId, address: vaultAddress }]
  const policy = makePolicy({
    db,
    transact: durable.transact,
    clock,
    random,
    walletsOf,
    platformLimits: {
      perTransactionMicros: 100_000_000_000n,
      perDayMicros: 1_000_000_000_000n,
      chains: chainRows.map(({ id }) => id),
      tokens: null,
      contracts,
    },
  })
  const store = keystore({
    keyEncryptionKeys: keyEncryptionKeys(kek),
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
        chainId: baseId,
        delegate: base.chain.row.delegate!,
        contracts: [vaultAddress],
        maxUnits: { [usdc]: 1_000_000_000_000n },
      },
    ],
  })
  const batches = evmBatches({
    ports,
    policy: policy.policy,
    signer,
    nonces: durable.nonces,
    startNonce,
    gasBudget: gasBudget({ db, budgetWei: 10n ** 18n, clock }),
  })
  const vault = makeVault({ chain: base.chain, chainId: baseId, address: vaultAddress, asset: usdc })
  const shareToken = { symbol: 'lvUSDC', name: 'Local USDC Vault', decimals: 18, address: vaultAddress }
  const holdings = makeHoldings({
    chains: readers,
    prices: prices({ url: urls.prices, net, clock }),
    share: {
      chainId: baseId,
      token: shareToken,
      asset: base.chain.row.tokens.find(({ symbol }) => symbol === 'USDC')!,
      assetsOf: vault.assetsOf,
    },
    walletsOf: (userId) => walletsOf(db, userId),
    pastTokens: (userId) => pastTokens(db, userId),
    clock,
    ...(tune.freshMs !== undefined && { freshMs: tune.freshMs }),
  })
  const evmAddressOf = async (userId: string) =>
    (await walletsOf(db, userId)).find(({ kind }) => kind === 'evm')!.address
  const earnFeature = earn({
    db,
    vault,
    chain: base.chain.row,
    shareToken,
    ledger: durable.ledger,
    batches,
    policy: policy.policy,
    evmAddressOf,
    changed: holdings.invalidate,
    clock,
    random,
    transact: durable.transact,
    events: durable.events,
    finalBlock: base.chain.finalBlock,
    log: silentLog,
  })
  const operations: Operation[] = [
    ...earnFeature.operations,
    ...wallets({ chainRows, holdings, walletsOf: (userId) => walletsOf(db, userId) }),
  ]
  const grantKind = createFaucetGrant({
    faucet: faucet({ url: urls.faucet, net }),
    changed: holdings.invalidate,
  })
  const engine = durable.createRuntime(operations, [grantKind])
  engine.start()
  const nonceRepair = createNonceRepair({
    db,
    transact: durable.transact,
    ports,
    plan: planNonceRepair,
    log: silentLog,
  })

  const call = async (
    name: string,
    input: object,
    user: User | null,
    options: { wait?: boolean; key?: string; timeoutMs?: number } = {},
  ): Promise<Answer> => {
    const operation = operations.find((each) => each.name === name)
    if (!operation) throw new Error(`no ${name}`)
    const { wait = true, timeoutMs = 20_000, key } = options
    const reply = await engine.invoke(
      operation,
      input as Record<string, unknown>,
      user?.caller ?? null,
      { wait, timeoutMs, ...(key && { key }) },
      { id: 'request', address: '127.0.0.1', signal: new AbortController().signal },
    )
    if (reply.kind !== 'answer') throw new Error('an answer was expected')
    return reply.body as Answer
  }

  return {
    durable: durable,
    engine,
    call,
    ports,
    base,
    vault,
    holdings,
    chainRows,
    earnFeature,
    nonceRepair,
    store,
    usdc,
    faucetGrant: grantKind,
    async [Symbol.asyncDispose]() {
      await durable[Symbol.asyncDispose]()
      await net[Symbol.asyncDispose]()
    },
  }
}
export type Instance = ReturnType<typeof createInstance>

/** Without the venue. */
const only: readonly WorldPart[] = ['1', '8453', '42161', '137', 'solana']

export async function createChainsApp(tune: Tune = {}) {
  const parts = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'portico-chains-'))
  parts.defer(() => rmSync(folder, { recursive: true, force: true }))
  const [world, home] = await Promise.all([startWorld({ dataDir: folder, port: 0, only }), testDatabase()])
  parts.use(world)
  parts.defer(() => home.drop())
  const open = (poolMax: number) => {
    const database = openDatabase({ url: home.url, poolMax, applicationName: 'chains test' })
    parts.defer(() => database.close())
    return database
  }
  const instance = (override: Tune = {}) => createInstance(open(24), open(4), world.urls, override)
  const database = open(4)
  const main = parts.use(instance(tune))

  const control = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const reply = await fetch(`${world.urls.control}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`)
    return (await reply.json()) as Record<string, unknown>
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
    const addressOf = (kind: string) => own.find((each) => each.kind === kind)!.address
    const caller: Caller = { userId: id, agentId: 'agt', scheme: 'keypair', scopes: new Set(scopes) }
    return { id, caller, evm: addressOf('evm'), svm: addressOf('svm') }
  }

  const fund = (chainId: string, address: string, token: string, amount: string) =>
    control('POST', '/faucet/fund', { chain_id: chainId, address, token, amount })

  /** A user with 10,000 USDC on Base and nothing else. */
  const fundedUser = async (amount = '10000'): Promise<User> => {
    const user = await addUser()
    await fund(baseId, user.evm, 'USDC', amount)
    return user
  }

  const rpc = async (
    method: string,
    params: unknown[] = [],
    chainId: '8453' | '1' = baseId,
  ): Promise<unknown> => {
    const reply = await fetch(world.urls.evm[chainId], {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const { result, error } = (await reply.json()) as { result: unknown; error?: { message: string } }
    if (error) throw new Error(`${method}: ${error.message}`)
    return result
  }

  return {
    world,
    urls: world.urls,
    database,
    instance,
    main,
    call: main.call,
    control,
    addUser,
    fundedUser,
    fund,
    rpc,
    grantFaucet: (user: User, admission: Admission): Promise<string> =>
      database.transaction((tx) =>
        main.durable.enqueue(tx, { userId: user.id, kind: main.faucetGrant, input: {}, admission }),
      ),
    ended: (user: User, taskId: string) =>
      eventually(async () => {
        const task = await main.durable.tasks.find(user.id, taskId)
        return task.completed_at ? task : undefined
      }, 'the end of the task'),
    /** Deposits and withdrawals that the vault itself counted. */
    async flows(user: User): Promise<number> {
      return Number((await control('GET', `/effects?contract=vault&owner=${user.evm}`)).count)
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}
export type ChainsApp = Awaited<ReturnType<typeof createChainsApp>>
