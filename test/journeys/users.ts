/** Users of a gateway under test, with its URL and their own key and nothing else. */
import { assertDocumentedAnswer } from '../harness/documented-answers.ts'
import { type Agent, type Answer, bearer, eventually, http, newAgent } from '../harness/gateway.ts'

type Json = Record<string, unknown>
export type TaskBody = {
  /** Set where the answer is an error. */
  code?: string
  task_id: string
  kind: string
  status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled'
  state: string
  outcome: string | null
  message: string
  result: { position_id: string; amount_usdc_decimal: string; shares_delta: string; tx_hash: string }
  error: { code: string; message: string } | null
  transactions: { tx_hash: string; status: string; nonce: number }[]
  balance_changes: { symbol: string; amount: string }[]
  idempotency_key: string
  poll_url: string
  cancellable: boolean
}
export type Positions = { positions: Record<string, string>[]; history: Json[] }
type Options = { key?: string; body?: unknown; headers?: Record<string, string>; at?: string }

export type Person = Agent & {
  evm: string
  solana: string
  /** `GET /v1/tasks`, at the own gateway or `at` another one. */
  call<B = Json>(route: string, options?: Options): Promise<Answer<B>>
  deposit(amount: string, options?: Options & { query?: string }): Promise<Answer<TaskBody>>
  withdraw(body: Json, options?: Options): Promise<Answer<TaskBody>>
  task(id: string): Promise<TaskBody>
  /** The task once it has ended. */
  ended(id: string, msMax?: number): Promise<TaskBody>
  taskCount(): Promise<number>
}

export async function personOf(url: string, agent: Agent): Promise<Person> {
  const call = async <B = Json>(route: string, { key, body, headers, at = url }: Options = {}) => {
    const [method = 'GET', path = ''] = route.split(' ')
    const withKey = key === undefined ? {} : { 'idempotency-key': key }
    const answer = await http<B>(at + path, {
      method,
      ...(body !== undefined && { body }),
      headers: { ...bearer(agent), ...withKey, ...headers },
    })
    assertDocumentedAnswer(method, path, answer)
    return answer
  }
  const { wallets } = (await call<{ wallets: { chain_type: string; address: string }[] }>('GET /v1/wallets'))
    .body
  const addressOf = (family: string) => wallets.find(({ chain_type }) => chain_type === family)!.address
  const task = async (id: string) => (await call<TaskBody>(`GET /v1/tasks/${id}`)).body
  return {
    ...agent,
    evm: addressOf('evm'),
    solana: addressOf('solana'),
    call,
    task,
    deposit: (amount_usdc, { query = '?wait=true', ...options } = {}) =>
      call(`POST /v1/earn/deposit${query}`, { body: { amount_usdc }, ...options }),
    withdraw: (body, options = {}) => call('POST /v1/earn/withdraw?wait=true', { body, ...options }),
    ended: (id, msMax) =>
      eventually(
        async () => {
          const now = await task(id)
          return now.status === 'pending' || now.status === 'running' ? undefined : now
        },
        `task ${id} has ended`,
        msMax,
      ),
    taskCount: async () => (await call<{ total: number }>('GET /v1/tasks')).body.total,
  }
}

/** A new user whose faucet grant has arrived. */
export const createFundedPerson = async (url: string): Promise<Person> =>
  whenFunded(await personOf(url, await newAgent(url)))

/** The same user, once the faucet grant has arrived. */
export async function whenFunded<P extends Person>(person: P): Promise<P> {
  const isFunded = async () => {
    const { items } = (await person.call<{ items: TaskBody[] }>('GET /v1/tasks?kind=faucet_grant')).body
    return items[0]?.status === 'completed' ? true : undefined
  }
  await eventually(isFunded, 'the faucet grant has arrived')
  return person
}
