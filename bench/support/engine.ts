/** Instances of the durable engine in this process, with a kind of task that ends when the bench says so. */

import type { Invoke } from '#durable/accept/operation-call.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { group, implement, type Operation, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import type { openDatabase } from '#store/database.ts'
import { openTestCore } from '../../test/harness/core.ts'
import { testSpend } from '../../test/harness/spend.ts'

export const newCaller = (): Caller => {
  const userId = uuidv7(new Date(), systemRandom)
  return { userId, agentId: userId, scheme: 'keypair', scopes: new Set() }
}

const asset = 'bench'
const token = { symbol: 'BENCH', decimals: 0, address: asset }
const contract = group('bench', 'Operations of a bench.', {
  pay: task('POST /bench/pay', {
    summary: 'Holds units and ends on request',
    access: 'trade',
    waitSeconds: 60,
    body: T.Object({ n: T.Integer() }),
    output: TaskResponse,
  }),
})

export type EngineInstance = {
  call: Invoke
  pool: ReturnType<typeof openDatabase>['pool']
  taskEngine: Awaited<ReturnType<typeof openTestCore>>['taskEngine']
  priceTriggers: Awaited<ReturnType<typeof openTestCore>>['priceTriggers']
  transact: Awaited<ReturnType<typeof openTestCore>>['transactions']['run']
  operation: Operation
  accept(caller: Caller, n: number, key?: string): Promise<string>
  wait(caller: Caller, n: number, key?: string): Promise<unknown>
} & AsyncDisposable

type InstanceOptions = {
  internal?: readonly TaskKind[]
  /** Accepts tasks, and neither claims nor runs any. */
  acceptsOnly?: boolean
}

/** `release` resolves when the task of that number may end. */
export async function createInstance(
  databaseUrl: string,
  poolMax: number,
  release: (n: number) => Promise<void>,
  { internal = [], acceptsOnly = false }: InstanceOptions = {},
): Promise<EngineInstance> {
  const core = await openTestCore({
    databaseUrl,
    config: { DATABASE_POOL: poolMax, RUNNER_SLOTS: 1_000, LEASE_MS: 5_000 },
    overrides: { claimPollMs: 500 },
  })
  const { taskEngine, db } = core
  /** The balance of each user, as a chain would show it. */
  const totals = new Map<string, bigint>()
  const totalOf = (userId: string) => totals.get(userId) ?? 1_000_000n
  const operations = implement(contract, {
    pay: {
      admit: async (_input, { userId }) => {
        const debit = { owner: userId, asset, subAccount: 'wallet' }
        const read = async () => {
          const { version } = await taskEngine.ledger.balance(db, debit)
          return { totalUnits: totalOf(userId), version }
        }
        const seen = { ...(await read()), reread: read }
        return {
          data: {},
          first: 'end',
          spend: testSpend({ account: debit, amountUnits: 1n, token }, seen),
        }
      },
      steps: {
        end: async ({ userId, input }) => {
          await release(Number(input.n))
          totals.set(userId, totalOf(userId) - 1n)
          return { end: 'completed', outcome: 'executed', result: {}, spent: 1n }
        },
      },
    },
  })
  const { invoke, start } = taskEngine.createRuntime(operations, internal)
  if (!acceptsOnly) start()
  const operation = operations[0] as Operation
  const request = () => ({ id: 'bench', address: '127.0.0.1', signal: new AbortController().signal })
  return {
    call: invoke,
    pool: db,
    taskEngine,
    priceTriggers: core.priceTriggers,
    transact: core.transactions.run,
    operation,
    async accept(caller, n, key) {
      const options = { wait: false, timeoutMs: 0, ...(key !== undefined && { key }) }
      const reply = await invoke({ operation, input: { n }, caller, options, request: request() })
      if (reply.kind !== 'answer') throw new Error('a task does not answer with a stream')
      return (reply.body as { task_id: string }).task_id
    },
    wait: (caller, n, key) =>
      invoke({
        operation,
        input: { n },
        caller,
        options: { wait: true, timeoutMs: 30_000, ...(key !== undefined && { key }) },
        request: request(),
      }),
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  }
}
