/** The product in this process, without doors: what `compose` builds, and how a test calls it. */
import { openAgentService } from '#app.ts'
import { type Composed, compose, type Overrides } from '#compose/compose.ts'
import type { UpstreamUrls } from '#compose/upstream-urls.ts'
import { type Caller, scopes } from '#kernel/contract/caller.ts'
import { agentId, uuidv7 } from '#kernel/id.ts'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import { query } from '#store/query.ts'
import { type CoreSettings, coreDeps, testOverrides } from './core.ts'
import { eventually } from './gateway.ts'

export type TestUser = { id: string; caller: Caller; evm: string; svm: string }
export type CallOptions = { wait?: boolean; key?: string; timeoutMs?: number }
type InstanceSettings = CoreSettings & {
  /** Only these upstreams are served. */
  urls?: Omit<Partial<UpstreamUrls>, 'evm'> & { evm?: Partial<UpstreamUrls['evm']> }
  overrides?: Overrides
  /** Its address, where people sign in there. */
  baseUrl?: () => string
  printLine?: (line: string) => void
  /** Answers in the agent service of this process. */
  answerer?: Answerer | undefined
}

export const noUpstreams: UpstreamUrls = {
  evm: { '1': undefined, '8453': undefined, '42161': undefined, '421614': undefined, '137': undefined },
  solana: undefined,
  hyperliquid: undefined,
  polymarket: undefined,
  relay: undefined,
  honeypot: undefined,
  rugcheck: undefined,
  lifi: undefined,
  prices: undefined,
  coinbase: undefined,
  model: undefined,
  images: undefined,
  stripe: undefined,
  faucet: undefined,
}
export async function openInstance({
  urls = {},
  overrides,
  baseUrl,
  printLine,
  answerer,
  ...settings
}: InstanceSettings) {
  const served = { ...noUpstreams, ...urls, evm: { ...noUpstreams.evm, ...urls.evm } }
  const core = { ...coreDeps(settings), ...(baseUrl && { baseUrl }), ...(printLine && { printLine }) }
  await using parts = new AsyncDisposableStack()
  const { agentAddress } = parts.use(
    openAgentService({
      ...core,
      loadAnswererOf: async () => (answerer ? () => answerer : composed.loadAnswererOf()),
    }),
  )
  const composed: Composed = parts.use(
    await compose({ ...core, agentAddress, urls: served }, { ...testOverrides, ...overrides }),
  )
  const owned = parts.move()
  return { ...composed, call: callOf(composed), [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
export type Instance = Awaited<ReturnType<typeof openInstance>>

/** Calls an operation by its name, as a door does with a checked input. */
const callOf =
  ({ runtime, features }: Composed) =>
  async <Answer>(
    name: string,
    input: object,
    user: Pick<TestUser, 'caller'> | null,
    { wait = true, timeoutMs = 30_000, key }: CallOptions = {},
  ): Promise<Answer> => {
    const operation = features.operations.find((each) => each.name === name)
    if (!operation) throw new Error(`no ${name}`)
    const reply = await runtime.invoke({
      operation,
      input: input as Record<string, unknown>,
      caller: user?.caller ?? null,
      options: { wait, timeoutMs, ...(key && { key }) },
      request: { id: 'request', address: '127.0.0.1', signal: new AbortController().signal },
    })
    if (reply.kind !== 'answer') throw new Error('an answer was expected')
    return reply.body as Answer
  }

/** A user with wallets, as after enrolment. */
export async function addUser({ clock, random, db, transactions, custody }: Composed): Promise<TestUser> {
  const now = clock.now()
  const id = uuidv7(now, random)
  await query(db, 'insert into app_user (id, agent_id, auth_scheme, created_at) values ($1, $2, $3, $4)', [
    id,
    agentId(now, random),
    'keypair',
    now,
  ])
  const prepared = await custody.keystore.prepare(id)
  const wallets = await transactions.run((tx) => custody.keystore.provision(tx, prepared))
  const addressOf = (kind: string) => wallets.find((each) => each.kind === kind)!.address
  const caller: Caller = { userId: id, agentId: 'agt', scheme: 'keypair', scopes: new Set(scopes) }
  return { id, caller, evm: addressOf('evm'), svm: addressOf('svm') }
}

export const endOfTask = (
  { taskEngine }: Composed,
  user: Pick<TestUser, 'id'>,
  taskId: string,
  msMax?: number,
) =>
  eventually(
    async () => {
      const task = await taskEngine.tasks.find(user.id, taskId)
      return task.completed_at ? task : undefined
    },
    'the end of the task',
    msMax,
  )
