/** A gateway and a world whose prices move, and what its users see of their orders. */
import assert from 'node:assert/strict'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { oncePerProcess } from '../harness/once-per-process.ts'
import { poolOf } from './pools.ts'
import { createFundedPerson, executed, swapOf } from './swap-users.ts'
import type { Person } from './users.ts'
import { base, worldOf } from './world.ts'

export type Hook = {
  id: string
  chain_id: string
  type: string
  status: string
  trigger_price_usd: string
  reference_price_usd: string | null
  amount: string | null
  task_id: string | null
  oco_group: string | null
  attempts: number
  failure_reason: string | null
}
export type Order = {
  limit_order_id: string
  status: string
  amount: string
  amount_out: string | null
  avg_price_usd: string | null
  task_id: string | null
}
type Outstanding = { outstanding_orders: (Hook & { order_kind: string })[]; total: number }
export type Refusal = { code: string; detail: { type: string; loc: string[] }[] & string }

export const startPrice = 1.2
export const firesWithinMs = 60_000
export const aero = { chain_id: base, token_address: 'AERO' }

export async function createOrderUsers(env: Record<string, string> = {}) {
  const gateway = await freshGateway(
    { ORDER_QUOTES_PER_MINUTE: '6000', ...env },
    { ownWorld: 'it moves prices and pools' },
  )
  const world = await worldOf(gateway.world)
  const pool = poolOf(world, 'AERO')
  const tasksOfKind = async (person: Person, kind: string) =>
    (
      await person.call<{ items: { task_id: string; status: string; outcome: string }[] }>(
        `GET /v1/tasks?kind=${kind}`,
      )
    ).body.items
  const newPerson = () => createFundedPerson(gateway.url)
  return {
    gateway,
    world,
    pool,
    newPerson,
    /** A user who has bought some of the token. */
    async holder(dollars = '100', owner?: Person): Promise<Person> {
      const person = owner ?? (await newPerson())
      const purchase = { chain_id_in: base, token_in: 'USDC', token_out: 'AERO', amount_usd: dollars }
      // The gateway may remember the price of an earlier test for some seconds.
      await eventually(
        async () => ((await swapOf(person, { ...purchase, dryrun: true })).status === 200 ? true : undefined),
        'the price is the one that is displayed',
        firesWithinMs,
      )
      await executed(person, purchase)
      return person
    },
    held: (person: Person) => world.balance(base, person.evm, pool.token),
    async leave(person: Person, body: object): Promise<Hook[]> {
      const reply = await person.call<{ hooks: Hook[] }>('POST /v1/hooks', { body: { ...aero, ...body } })
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      return reply.body.hooks
    },
    outstanding: async (person: Person) =>
      (await person.call<Outstanding>('GET /wallet/outstanding-orders')).body.outstanding_orders,
    async events(person: Person, prefix: string) {
      const { body } = await person.call<{ events: { type: string; data: Hook }[] }>(
        'GET /v1/notifications?limit=100&after=0',
      )
      return body.events.filter(({ type }) => type.startsWith(prefix))
    },
    tasksOfKind,
    /** The newest task of a kind, once there are as many as given and it has ended. */
    firedTask: (person: Person, kind: string, count = 1) =>
      eventually(
        async () => {
          const tasks = await tasksOfKind(person, kind)
          const [task] = tasks
          return task && tasks.length >= count && task.status !== 'pending' && task.status !== 'running'
            ? person.task(task.task_id)
            : undefined
        },
        `the ${kind} has ended`,
        firesWithinMs,
      ),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  }
}
export type OrderUsers = Awaited<ReturnType<typeof createOrderUsers>>
export const orderUsers = oncePerProcess(() => createOrderUsers())
