/** The product on the chains of a world of its own, without the venue. */
import type { Overrides } from '#compose/compose.ts'
import type { UpstreamUrls } from '#compose/upstream-urls.ts'
import { worldVault } from '#config-safety.ts'
import type { HoldingView } from '#features/wallets/contract.ts'
import type { Admission } from '#kernel/task/task.ts'
import type { WorldPart } from '#world/world.ts'
import { addUser, type CallOptions, endOfTask, openInstance, type TestUser } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { ownWorld } from '../harness/own-world.ts'

export const vaultAddress = worldVault
export const baseId = '8453'

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
    credits: number
    paid: string
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
export type User = TestUser

const env = { POLICY_TX_USD_MAX: '100000', POLICY_DAY_USD_MAX: '1000000', SPONSOR_USER_DAY: '1' }
const only: readonly WorldPart[] = ['1', '8453', '42161', '137', 'solana']

export async function createChainsApp(overrides: Overrides = {}, { swaps = false } = {}) {
  await using parts = new AsyncDisposableStack()
  const [world, home] = await Promise.all([ownWorld(swaps ? [...only, 'solver'] : only), ownDatabase()])
  parts.use(world)
  const { url: databaseUrl, database } = parts.use(home)
  const { evm, solana, prices, faucet, control: controlUrl } = world.urls
  /** Several of them share the database and the world. */
  const instance = async (
    more: Overrides = {},
    services: Pick<Partial<UpstreamUrls>, 'honeypot' | 'rugcheck'> = {},
  ) => {
    const opened = await openInstance({
      databaseUrl,
      urls: {
        evm,
        solana,
        prices,
        coinbase: prices,
        faucet,
        ...(swaps && { relay: world.urls.solver }),
        ...services,
      },
      env,
      overrides: more,
    })
    opened.runtime.start()
    const base = opened.chains.ports.get(baseId)!
    const { call } = opened
    return {
      ...opened,
      call: (name: string, input: object, user: User | null, options?: CallOptions) =>
        call<Answer>(name, input, user, { timeoutMs: 20_000, ...options }),
      base,
      usdc: base.chain.row.usdc,
      earn: opened.features.earn!,
      vault: opened.features.earn!.vault,
    }
  }
  const main = parts.use(await instance(overrides))

  const control = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const reply = await fetch(`${controlUrl}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`)
    return (await reply.json()) as Record<string, unknown>
  }

  const fund = (chainId: string, address: string, token: string, amount: string) =>
    control('POST', '/faucet/fund', { chain_id: chainId, address, token, amount })

  const owned = parts.move()
  return {
    world,
    urls: world.urls,
    database,
    instance,
    main,
    call: main.call,
    control,
    fund,
    addUser: () => addUser(main),
    /** A user with 10,000 USDC on Base and nothing else. */
    async fundedUser(amount = '10000'): Promise<User> {
      const user = await addUser(main)
      await fund(baseId, user.evm, 'USDC', amount)
      return user
    },
    async rpc(method: string, params: unknown[] = [], chainId: '8453' | '1' = baseId): Promise<unknown> {
      const reply = await fetch(evm[chainId], {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      const { result, error } = (await reply.json()) as { result: unknown; error?: { message: string } }
      if (error) throw new Error(`${method}: ${error.message}`)
      return result
    },
    grantFaucet: (user: User, admission: Admission): Promise<string> =>
      database.transaction((tx) =>
        main.taskEngine.enqueue(tx, {
          userId: user.id,
          kind: main.features.wallets.faucetGrant!,
          input: {},
          admission,
        }),
      ),
    ended: (user: User, taskId: string) => endOfTask(main, user, taskId),
    /** Deposits and withdrawals that the vault itself counted. */
    async flows(user: User): Promise<number> {
      return Number((await control('GET', `/effects?contract=vault&owner=${user.evm}`)).count)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
export type ChainsApp = Awaited<ReturnType<typeof createChainsApp>>
