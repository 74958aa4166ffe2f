/** kill -9 between a payment and its credits: whatever the point, one payment and one pack. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { bearer, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { worldOf } from '../journeys/world.ts'
import { type CrashApp, type Customer, createCrashApp, newCustomer, type TaskBody } from './crash-app.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'

const taskPointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|update nonce_sequence|begin|commit|insert credit_payment|select effect|select tx_attempt)|net:(base|solana))/
const passesOf = (name: string) => (/task_step|net:/.test(name) ? 2 : 1)
const packUsd = '5'
/** Its price by chain, in units of the native coin. */
const chains = { '8453': 1_428_571_428_571_429n, '7565164': 27_777_778n } as const
type ChainId = keyof typeof chains
const chainIds = ['8453', '7565164'] as const

let app: CrashApp
let survivor: Gateway
let customer: Customer
const made: Record<ChainId, number> = { '8453': 0, '7565164': 0 }

type Reply = TaskBody & { result: { paid: string } | null }
const recharge = (chainId: ChainId, url: string, key: string) =>
  http<Reply>(`${url}/credits/onchain-recharge?wait=true&timeout=20`, {
    method: 'POST',
    headers: { ...bearer(customer), 'idempotency-key': key },
    body: { chain_id: chainId, pack_id: packUsd },
    timeoutMs: 25_000,
  })
const pay = async (chainId: ChainId, url: string, at: string, key = at): Promise<void> => {
  const { status, body } = await recharge(chainId, url, key)
  assert.deepEqual(
    [status, body.status, body.outcome],
    [200, 'completed', 'executed'],
    `${at}: ${JSON.stringify(body)}`,
  )
  made[chainId] += 1
}

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  customer = await newCustomer(survivor.url)
  const world = await worldOf(app.control)
  await world.fund('8453', customer.address, 'native', '1')
  const { wallets } = (
    await http<{ wallets: { address: string; chain_type: string }[] }>(`${survivor.url}/v1/wallets`, {
      headers: bearer(customer),
    })
  ).body
  const wallet = wallets.find(({ chain_type }) => chain_type === 'solana')!
  await world.fund('7565164', wallet.address, 'native', '10')
  for (const chainId of chainIds) await pay(chainId, survivor.url, `first-${chainId}`)
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

const pointsOf = (chainId: ChainId): Promise<string[]> =>
  recordPoints({
    pattern: taskPointPattern,
    passesOf,
    needed,
    shortPoint: 'db:task_step:before',
    launch: app.gateway,
    work: ({ url }, attempt) => pay(chainId, url, `${attempt}-${chainId}`),
  })

/** One gateway takes the request and dies at its point; the other one must complete the task. */
async function dieAt(chainId: ChainId, point: string, victim: Gateway): Promise<boolean> {
  const key = `${chainId}-${keyAt(point)}`
  victim.child.kill('SIGUSR2')
  const first = await recharge(chainId, victim.url, key).catch(() => undefined)
  const died = hasDied(victim, first)
  await victim.kill()
  await pay(chainId, survivor.url, point, key)
  return died
}

async function assertPaidOnce(at: string): Promise<void> {
  const { body } = await http<{ buckets: { kind: string; credits: number }[] }>(
    `${survivor.url}/v1/credits`,
    {
      headers: bearer(customer),
    },
  )
  assert.equal(
    body.buckets.find(({ kind }) => kind === 'purchased')?.credits,
    300 * (made['8453'] + made['7565164']),
    at,
  )
  const { rows } = await app.admin.query<{ chain_id: ChainId; state: string; paid: string; count: string }>(
    `select chain_id, state, sum(amount) as paid, count(*) as count from credit_payment group by chain_id, state`,
  )
  assert.deepEqual(
    new Map(
      rows.map(({ chain_id, state, paid, count }) => [`${chain_id} ${state}`, [BigInt(paid), Number(count)]]),
    ),
    new Map(chainIds.map((id) => [`${id} credited`, [chains[id] * BigInt(made[id]), made[id]]])),
    at,
  )
}

const needed = [/^db:commit:after/, /^db:task_step:before/, /^db:insert credit_payment:/, /^net:/]

for (const chainId of chainIds)
  test(`a payment on ${chainId} killed at any point is made and credited exactly once`, async (t) => {
    const points = await pointsOf(chainId)
    const reached = await killAtEach(points, app.gateway, async (point, victim) => {
      const died = await dieAt(chainId, point, victim)
      await assertPaidOnce(point)
      return died
    })
    t.diagnostic(`${reached}, ${made[chainId]} payments requested and made`)
    assert.equal(await ledgerDrift(app.admin), 0)
  })
