/** kill -9 at any point of a transfer to somebody else: the money leaves once. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { bearer, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { type World, worldOf } from '../journeys/world.ts'
import { type CrashApp, type Customer, createCrashApp, newCustomer, type TaskBody } from './crash-app.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'

const taskPointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|update nonce_sequence|begin|commit|select effect|select tx_attempt)|net:(base|solana))/
const passesOf = (name: string) => (/task_step|net:/.test(name) ? 2 : 1)
const amount = 1_000_000n
const chains = {
  '8453': { token: 'ETH', recipient: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
  '7565164': { token: 'SOL', recipient: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T' },
} as const
type ChainId = keyof typeof chains
const chainIds = ['8453', '7565164'] as const

let app: CrashApp
let survivor: Gateway
let customer: Customer
const made: Record<ChainId, number> = { '8453': 0, '7565164': 0 }

let world: World
let initial: bigint[]
const send = (chainId: ChainId, url: string, key: string) =>
  http<TaskBody>(`${url}/v1/wallets/transfer?wait=true&timeout=20`, {
    method: 'POST',
    headers: { ...bearer(customer), 'idempotency-key': key },
    body: { chain_id: chainId, amount: String(amount), ...chains[chainId] },
    timeoutMs: 25_000,
  })
const pay = async (chainId: ChainId, url: string, at: string, key = at): Promise<void> => {
  const { status, body } = await send(chainId, url, key)
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
  world = await worldOf(app.control)
  await world.fund('8453', customer.address, 'native', '1')
  const { wallets } = (
    await http<{ wallets: { address: string; chain_type: string }[] }>(`${survivor.url}/v1/wallets`, {
      headers: bearer(customer),
    })
  ).body
  const wallet = wallets.find(({ chain_type }) => chain_type === 'solana')!
  await world.fund('7565164', wallet.address, 'native', '10')
  for (const chainId of chainIds)
    await app.admin.query(
      `insert into transfer_recipient select gen_random_uuid(), user_id, $1, $2, 'x', 'allowed', '', now(), now()
        from wallet where lower(address) = lower($3)`,
      [chainId, chains[chainId].recipient, customer.address],
    )
  initial = [await world.nativeOf(chains['8453'].recipient), await world.solOf(chains['7565164'].recipient)]
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
  const first = await send(chainId, victim.url, key).catch(() => undefined)
  const died = hasDied(victim, first)
  await victim.kill()
  await pay(chainId, survivor.url, point, key)
  return died
}

async function assertPaidOnce(at: string): Promise<void> {
  const received = [
    await world.nativeOf(chains['8453'].recipient),
    await world.solOf(chains['7565164'].recipient),
  ]
  const expected = chainIds.map((id, index) => initial[index]! + amount * BigInt(made[id]))
  assert.deepEqual(received, expected, at)
}

const needed = [/^db:commit:after/, /^db:task_step:before/, /^net:/]

for (const chainId of chainIds)
  test(`a payment on ${chainId} killed at any point is made exactly once`, async (t) => {
    const points = await pointsOf(chainId)
    const reached = await killAtEach(points, app.gateway, async (point, victim) => {
      const died = await dieAt(chainId, point, victim)
      await assertPaidOnce(point)
      return died
    })
    t.diagnostic(`${reached}, ${made[chainId]} payments requested and made`)
    assert.equal(await ledgerDrift(app.admin), 0)
  })
