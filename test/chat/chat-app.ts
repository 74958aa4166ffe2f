/** Two instances of the product on one database, with doors and an answerer whose answers are written in the questions. */
import { doorDepsOf, openDoors } from '#app.ts'
import type { Overrides } from '#compose/compose.ts'
import { externalAccount } from '#kernel/task/task.ts'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import { testDatabase } from '../harness/cluster.ts'
import { type Agent, bearer, http, newAgent } from '../harness/gateway.ts'
import { loopback } from '../harness/in-process-door.ts'
import { type Instance, openInstance } from '../harness/instance.ts'
import type { SentEvent } from '../harness/stream.ts'
import { readChat } from './read-chat.ts'
import { scriptedAnswerer } from './scripted-answerer.ts'

export type ChatUser = Agent & {
  ask(query: string, options?: AskOptions): Promise<SentEvent[]>
  get<B>(path: string): Promise<B>
}
export type AskOptions = {
  url?: string
  key?: string
  lastId?: string
  body?: Record<string, unknown>
  /** Closes the connection after this event. */
  until?: (event: SentEvent, all: SentEvent[]) => boolean
}

export async function openChatApp({ count = 2, overrides = {}, env = {}, answerer, urls }: Options = {}) {
  await using parts = new AsyncDisposableStack()
  const home = parts.use(await testDatabase())
  const nowhere = 'http://127.0.0.1:1'
  const instances: (Instance & { url: string })[] = []
  const open = async () => {
    let address = ''
    const instance = await openInstance({
      databaseUrl: home.url,
      urls: { ...urls, evm: { '8453': nowhere, '42161': nowhere, ...urls?.evm } },
      env: { DATABASE_POOL: '12', ...env },
      overrides,
      answerer: answerer === 'product' ? undefined : (answerer ?? scriptedAnswerer),
      baseUrl: () => address,
    })
    const doors = await openDoors({
      ...doorDepsOf(instance),
      baseUrl: () => address,
      load: { delayMsMax: 60_000 },
    })
    address = await doors.http.listen({ host: loopback, port: 0 })
    instance.runtime.start()
    let closing: Promise<void> | undefined
    const close = async () => {
      await doors[Symbol.asyncDispose]()
      await instance[Symbol.asyncDispose]()
    }
    return {
      ...instance,
      url: address,
      // A test may have stopped it already.
      [Symbol.asyncDispose]() {
        closing ??= close()
        return closing
      },
    }
  }
  for (let index = 0; index < count; index++) instances.push(parts.use(await open()))
  const { url } = instances[0]!
  const owned = parts.move()
  return {
    url,
    instances,
    /** One more, for a test that stops it. */
    async add() {
      return owned.use(await open())
    },
    databaseUrl: home.url,
    db: instances[0]!.db,
    /** Takes a turn from its instance, as if that had died. */
    takeOver: (chatId: string) =>
      instances[0]!.db.query(
        `with lost as (update task set version = version + 1 where id = $1)
         update task_queue set owner = null, run_at = now() where task_id = $1`,
        [chatId],
      ),
    /** Leaves a new user so many credits. */
    async leaveCredits({ agentId }: Agent, left: number): Promise<void> {
      const { db, taskEngine } = instances[0]!
      const { rows } = await db.query<{ id: string }>('select id from app_user where agent_id = $1', [
        agentId,
      ])
      const owner = rows[0]!.id
      const debit = { owner, asset: 'credits', subAccount: 'credits:signup' }
      const move = {
        move: 'transfer' as const,
        key: `test:${owner}`,
        debit,
        credit: externalAccount('credits'),
        amountUnits: BigInt(200 - left),
        reason: 'test',
      }
      await taskEngine.transact((tx) =>
        taskEngine.ledger.apply(tx, [move], { taskId: null, now: new Date() }),
      )
    },
    async user(): Promise<ChatUser> {
      const agent = await newAgent(url)
      return {
        ...agent,
        ask: (query, options = {}) => readChat({ url, query, headers: bearer(agent), ...options }),
        async get<B>(path: string) {
          const { status, body } = await http<B>(`${url}${path}`, { headers: bearer(agent) })
          if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
          return body
        },
      }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
type Options = {
  count?: number
  overrides?: Overrides
  env?: Record<string, string>
  /** Absent: answers are written in the questions. */
  answerer?: Answerer | 'product'
  /** Chains, and the model, that are there. */
  urls?: { evm?: Record<string, string>; model?: string }
}
export type ChatApp = Awaited<ReturnType<typeof openChatApp>>
