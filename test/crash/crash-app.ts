/** One world and one database, with as many gateways as a test kills. */
import { once } from 'node:events'
import pg from 'pg'
import type { WorldUrls } from '#world/world.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import {
  type Agent,
  assertEveryUserConserved,
  bearer,
  dataFolder,
  eventually,
  type Gateway,
  http,
  launch,
  newAgent,
  upstreamsOf,
} from '../harness/gateway.ts'
import { ownWorld } from '../harness/own-world.ts'
import { processWorld } from '../harness/process-world.ts'
import { isShort } from '../proof/support/seed.ts'

export type CrashApp = Awaited<ReturnType<typeof createCrashApp>>

type CrashSettings = {
  /** Dropped with the app. */
  database?: Pick<TestDatabase, 'url' | 'drop'>
  /** The reason why the tests of the file cannot share the world of this process. */
  ownWorld?: string
}

/** Storms set failures, prices and the clock of their world; the short size has none of them. */
async function worldOfApp(reason: string | undefined): Promise<{ urls: WorldUrls } & AsyncDisposable> {
  if (reason !== undefined || !isShort) return ownWorld()
  return { urls: await processWorld(), async [Symbol.asyncDispose]() {} }
}

export async function createCrashApp(settings: CrashSettings = {}) {
  const folder = dataFolder()
  const database = settings.database ?? (await testDatabase())
  const world = await worldOfApp(settings.ownWorld)
  const { control } = world.urls
  const upstreams = { ...upstreamsOf(world.urls), DATABASE_URL: database.url }
  const off = {
    RATE_AUTH: '0',
    RATE_READ: '0',
    RATE_MONEY: '0',
    RATE_STREAM: '0',
    RATE_EXIT: '0',
    RATE_IMAGE: '0',
    RATE_REFUSED: '0',
    HYPERLIQUID_WEIGHT_PER_MINUTE: '0',
  }
  let gateways = 0
  const admin = new pg.Pool({ connectionString: database.url, max: 2 })
  admin.on('error', () => {})
  // A pool that ends forgets its connections before they are closed, and the database may be dropped first.
  admin.on('connect', (client) => client.on('error', () => {}))
  const running = new Set<Gateway>()
  const urls = new Set<string>()
  let audit: Promise<void> | undefined
  /** The last running one audits every user before it stops; disposal throws what it found. */
  const audited = (gateway: Gateway): Gateway => {
    running.add(gateway)
    urls.add(gateway.url)
    void once(gateway.child, 'exit').then(() => running.delete(gateway))
    const stop = async () => {
      if (running.delete(gateway) && running.size === 0) {
        audit = assertEveryUserConserved({ url: gateway.url, control, databaseUrl: database.url }, urls)
        await audit.catch(() => undefined)
      }
      return gateway.stop()
    }
    return {
      ...gateway,
      stop,
      async [Symbol.asyncDispose]() {
        await stop()
      },
    }
  }

  return {
    admin,
    control,
    venueUrl: world.urls.hyperliquid,
    /** A gateway has it where its environment says so. */
    modelUrl: world.urls.model,
    /** Its data folder is shared by name only: the database and the world are elsewhere. */
    gateway: (env: Record<string, string> = {}): Promise<Gateway> =>
      launch({
        readyMsMax: 60_000,
        env: {
          ...upstreams,
          ...off,
          DATA_DIR: `${folder.path}/gateway-${gateways++ % 8}-${process.pid}-${gateways}`,
          LEASE_MS: '1000',
          // Killed gateways write no compile cache; earlier ones have filled it.
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? `${folder.path}/compiled`,
          ...env,
        },
      }).then(audited),
    /** Deposits and withdrawals, read from the chain; no expected values are hard-coded. */
    async vaultEffects(owner: string): Promise<{ deposits: number; shares: bigint }> {
      const { body } = await http<{
        effects: { type?: string; event?: string; shares_units?: string; shares?: string }[]
      }>(`${control}/effects?contract=vault&owner=${owner}`)
      const name = (effect: { type?: string; event?: string }) =>
        String(effect.type ?? effect.event).toLowerCase()
      const units = (effect: { shares_units?: string; shares?: string }) =>
        BigInt(effect.shares_units ?? effect.shares ?? '0')
      const deposits = body.effects.filter((effect) => name(effect) === 'deposit')
      const withdrawals = body.effects.filter((effect) => name(effect) === 'withdraw')
      const sum = (list: typeof deposits) => list.reduce((total, effect) => total + units(effect), 0n)
      return { deposits: deposits.length, shares: sum(deposits) - sum(withdrawals) }
    },
    /** The transactions of a sponsor that Base has mined. */
    async sponsorNonce(signer: string): Promise<number> {
      const { body } = await http<{ result: string }>(world.urls.evm['8453'], {
        method: 'POST',
        body: { jsonrpc: '2.0', id: 1, method: 'eth_getTransactionCount', params: [signer, 'latest'] },
      })
      return Number(body.result)
    },
    async [Symbol.asyncDispose]() {
      await admin.end()
      await world[Symbol.asyncDispose]()
      await database.drop()
      folder[Symbol.dispose]()
      if (audit === undefined && urls.size > 0) throw new Error('no gateway audited its users')
      await audit
    },
  }
}

export type Customer = Agent & { address: string }

/** A user whose faucet grant has arrived on Base. */
export async function newCustomer(url: string): Promise<Customer> {
  const agent = await newAgent(url)
  const headers = bearer(agent)
  const { body } = await http<{ wallets: { address: string; chain_type: string }[] }>(`${url}/v1/wallets`, {
    headers,
  })
  const address = body.wallets.find((wallet) => wallet.chain_type === 'evm')!.address
  await eventually(
    async () => {
      const balances = await http<{ holdings: { chain_id: string; symbol: string; amount: string }[] }>(
        `${url}/v1/holdings?event=wallet-refresh&chain_type=evm`,
        { headers },
      )
      const usdc = balances.body.holdings?.find(
        ({ chain_id, symbol }) => chain_id === '8453' && symbol === 'USDC',
      )
      return usdc && usdc.amount !== '0' ? true : undefined
    },
    'the faucet grant',
    30_000,
  )
  return { ...agent, address }
}

export type TaskBody = {
  task_id: string
  status: string
  outcome: string | null
  state: string
  error: { code: string } | null
}

export const deposit = (url: string, customer: Customer, key: string, wait: boolean, amount_usdc = '1') =>
  http<TaskBody>(`${url}/v1/earn/deposit?wait=${wait}&timeout=20`, {
    method: 'POST',
    headers: { ...bearer(customer), 'idempotency-key': key },
    body: { amount_usdc },
    timeoutMs: 25_000,
  })
