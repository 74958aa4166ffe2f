/** The product with an operation that sends on Solana, on a world of its own. */
import type { Overrides } from '#compose/compose.ts'
import { query } from '#store/query.ts'
import { addUser, type CallOptions, endOfTask, openInstance, type TestUser } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { ownWorld } from '../harness/own-world.ts'
import { type SendOptions, sendOperation, solanaId } from './svm-send.ts'

export type Sent = {
  task_id: string
  status: string
  state: string
  outcome: string | null
  error: { code: string; message: string } | null
  result: { tx_hash: string; sponsor_lamports: string }
  transactions: { status: string; tx_hash: string; block: number | null }[]
  balance_changes: { symbol: string; amount: string }[]
}
type SendInput = {
  symbol: string
  units: string
  to?: string
  opens?: string
  closes?: string
  full_exit?: boolean
}

export async function createSvmApp({
  overrides = {},
  env = {},
  send,
}: {
  overrides?: Overrides
  env?: Record<string, string>
  send?: SendOptions
} = {}) {
  await using parts = new AsyncDisposableStack()
  const [world, home] = await Promise.all([ownWorld(['solana']), ownDatabase()])
  parts.use(world)
  const { url: databaseUrl, database } = parts.use(home)
  const { solana, faucet, control: controlUrl } = world.urls
  const settings = {
    POLICY_TX_USD_MAX: '100000',
    POLICY_DAY_USD_MAX: '1000000',
    SOLANA_SPONSOR_USER_DAY: '1',
    ...env,
  }
  /** Several of them share the database and the world. */
  const instance = async (more: Overrides = {}, options: SendOptions | undefined = send) => {
    const opened = await openInstance({
      databaseUrl,
      urls: { solana, faucet },
      env: settings,
      overrides: { addOperations: sendOperation(options), ...more },
    })
    opened.runtime.start()
    return opened
  }
  const main = parts.use(await instance(overrides))
  const port = main.chains.svmPorts.get(solanaId)!
  const { chain } = port

  const control = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const reply = await fetch(`${controlUrl}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`)
    return (await reply.json()) as Record<string, unknown>
  }
  const unitsOf = async (owner: string, symbol: string): Promise<bigint> => {
    const { lamports, tokens } = await chain.holdings(owner)
    if (symbol === 'SOL') return lamports
    const { address } = chain.row.tokens.find((each) => each.symbol === symbol)!
    return tokens.find(({ mint }) => mint === address)?.amountUnits ?? 0n
  }

  const owned = parts.move()
  return {
    main,
    instance,
    port,
    chain,
    database,
    control,
    unitsOf,
    addUser: () => addUser(main),
    async fundedUser(symbol = 'USDC', amount = '100'): Promise<TestUser> {
      const user = await addUser(main)
      await control('POST', '/faucet/fund', {
        chain_id: solanaId,
        address: user.svm,
        token: symbol === 'SOL' ? 'native' : symbol,
        amount,
      })
      return user
    },
    send: (user: TestUser, input: SendInput, options?: CallOptions, at = main) =>
      at.call<Sent>('svm_send', input, user, { timeoutMs: 30_000, ...options }),
    ended: (user: TestUser, taskId: string, msMax?: number) => endOfTask(main, user, taskId, msMax),
    fault: (fault: object) => control('PUT', '/faults', { target: 'solana', ...fault }),
    heal: () => control('DELETE', '/faults', {}),
    advance: (seconds: number) => control('POST', '/time', { advance_seconds: seconds }),
    attemptsOf: (userId: string) =>
      query<{ external_id: string; raw: string; status: string; effect_status: string; nonce: bigint }>(
        database.pool,
        `select c.external_id, c.raw, c.status, e.status as effect_status, c.nonce from tx_attempt c
         join effect e on e.id = c.effect_id join task t on t.id = e.task_id where t.user_id = $1 order by c.nonce`,
        [userId],
      ),
    sponsorBalance: async () => [...(await port.sponsor.balances()).values()].reduce((a, b) => a + b, 0n),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
export type SvmApp = Awaited<ReturnType<typeof createSvmApp>>
