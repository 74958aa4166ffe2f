/** kill -9 at any point of a transfer to somebody else: the money leaves once. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { bearer, type Gateway, http, NotReady } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { type World, worldOf } from '../journeys/world.ts'
import { isShort } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp, newCustomer, type TaskBody } from './crash-app.ts'

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

async function failpointsOfOneTransfer(chainId: ChainId): Promise<string[]> {
  const file = join(tmpdir(), `portico-transfer-failpoints-${chainId}-${process.pid}`)
  writeFileSync(file, '')
  const recorded = await app.gateway({ FAILPOINT_LOG: file })
  recorded.child.kill('SIGUSR2')
  await pay(chainId, recorded.url, `recorded-${chainId}`)
  await recorded.kill()
  const counts = new Map<string, number>()
  for (const name of readFileSync(file, 'utf8').split('\n'))
    if (taskPointPattern.test(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) =>
    Array.from({ length: Math.min(count, passesOf(name)) }, (_, n) => `${name}@${n + 1}`),
  )
}

/** One gateway takes the request and dies at its point; the other one must complete the task. */
async function dieAt(chainId: ChainId, point: string, victim: Gateway): Promise<boolean> {
  const key = `at-${chainId}-${point.replaceAll(' ', '-')}`
  victim.child.kill('SIGUSR2')
  const first = await send(chainId, victim.url, key).catch(() => undefined)
  const died = victim.child.signalCode === 'SIGKILL' || first === undefined
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
/** One of each relevant kind; all of them in `npm run test:crash`. */
const pointsOf = (all: string[]): string[] =>
  isShort ? needed.flatMap((each) => all.filter((point) => each.test(point)).slice(0, 1)) : all

for (const chainId of chainIds)
  test(`a payment on ${chainId} killed at any point is made exactly once`, async (t) => {
    const all = await failpointsOfOneTransfer(chainId)
    for (const each of needed)
      assert.ok(
        all.some((point) => each.test(point)),
        all.join(' '),
      )
    const points = pointsOf(all)
    let deaths = 0
    // The next gateway starts while the other one completes the task.
    let next: Promise<Gateway> | undefined
    for (const [index, point] of points.entries()) {
      const victim = await (next ?? app.gateway({ FAILPOINT: point }))
      const nextPoint = points[index + 1]
      next = nextPoint === undefined ? undefined : app.gateway({ FAILPOINT: nextPoint })
      next?.catch((error: unknown) => assert.ok(error instanceof NotReady))
      if (await dieAt(chainId, point, victim)) deaths += 1
      await assertPaidOnce(point)
    }
    t.diagnostic(`${points.length} points, ${deaths} deaths, ${made[chainId]} payments requested and made`)
    assert.ok(deaths >= points.length / 2, `only ${deaths} of ${points.length} points were reached`)
    assert.equal(await ledgerDrift(app.admin), 0)
  })
