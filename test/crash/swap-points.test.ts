/** kill -9 at the boundaries of every statement and every call of a swap: it has one deposit, and its end is that of the chains. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { assertMeasured, balancesOf, createFundedPerson, type SwapBody } from '../journeys/swap-users.ts'
import type { Person } from '../journeys/users.ts'
import { base, polygon, solana, type World, worldOf } from '../journeys/world.ts'
import { bySize, isNightly } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { hasDied, keyAt, killAtEach, recordPoints } from './failpoints.ts'
import { assertConserved, assertDepositsOnce, type Books, readBooks } from './swap-conservation.ts'

/** Statements and calls that belong to the task; others belong to the running process. */
const taskPointPattern =
  /^(db:(task_accept|task_accept_complete|task_step|user_event_append|policy_lock|update nonce_sequence|select task|begin|commit|insert policy|update policy|select effect|select tx_attempt|insert claimed_arrival|sponsor_settle)|net:(base|polygon|solana|relay):)/
/** Later passes too, where a task passes a point more than once. */
const passesOf = (name: string) => (isNightly ? 50 : /task_step|net:/.test(name) ? 2 : 1)

type Case = {
  name: string
  body: object
  /** Settings of the solver while the swap runs. */
  realism: object
  end: [status: string, outcome: string]
  needed: RegExp[]
  shortPoint: string
}
const fromBase = { chain_id_in: base, token_in: 'USDC', amount: '20000000' }
const quiet = { preset: 'quiet' }
const cases: Case[] = [
  {
    name: 'on one chain',
    body: { ...fromBase, token_out: 'DAI' },
    realism: quiet,
    end: ['completed', 'executed'],
    needed: [/^net:base:after/],
    shortPoint: 'db:task_step:before',
  },
  {
    name: 'between EVM chains',
    body: { ...fromBase, chain_id_out: polygon, token_out: 'USDC' },
    realism: quiet,
    end: ['completed', 'executed'],
    needed: [/^db:insert claimed_arrival:after/],
    shortPoint: 'db:insert claimed_arrival:after',
  },
  {
    name: 'from Solana',
    body: {
      chain_id_in: solana,
      token_in: 'USDC',
      amount: '20000000',
      chain_id_out: base,
      token_out: 'USDC',
    },
    realism: quiet,
    end: ['completed', 'executed'],
    needed: [/^net:solana:after/],
    shortPoint: 'db:task_step:before',
  },
  {
    name: 'that is refunded after its success was announced',
    body: { ...fromBase, chain_id_out: polygon, token_out: 'USDC' },
    realism: { ...quiet, retracted: 1, retractAfterMs: 1_000, sponsoredRefunds: true },
    end: ['failed', 'not_executed'],
    needed: [/^net:relay:after@2/],
    shortPoint: 'db:task_step:after',
  },
]

const env = {
  LIFI_URL: 'off',
  SPONSOR_USER_DAY: '5',
  SOLANA_SPONSOR_USER_DAY: '5',
  POLICY_DAY_USD_MAX: '10000000',
}

let app: CrashApp
let survivor: Gateway
let world: World
let person: Person
let books: Books
let held: Awaited<ReturnType<typeof balancesOf>>
const done: SwapBody[] = []

before(async () => {
  app = await createCrashApp({ ownWorld: 'compares the sums of all accounts' })
  survivor = await app.gateway(env)
  world = await worldOf(app.control)
  person = await createFundedPerson(survivor.url)
  // The solver gets its inventory of a chain with the first quote there.
  for (const { body } of cases) {
    const { status, body: quoted } = await person.call('POST /v1/swap', { body: { ...body, dryrun: true } })
    assert.equal(status, 200, JSON.stringify(quoted))
  }
  books = await readBooks(world, [person])
  held = await balancesOf(world, person)
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

const send = (at: string, { body }: Case, key: string) =>
  person.call<SwapBody>('POST /v1/swap?wait=true&timeout=60', { body, key, at })

const assertEnded = ({ status, body }: Awaited<ReturnType<typeof send>>, each: Case, at: string) => {
  assert.deepEqual(
    [status, body.status, body.outcome],
    [200, ...each.end],
    `${each.name}, ${at}: ${JSON.stringify(body)}`,
  )
  done.push(body)
}

const launch = (failpoint: Record<string, string>) => app.gateway({ ...env, ...failpoint })
const keyOf = ({ name }: Case, at: string) => keyAt(`${at} ${name}`)

const pointsOf = (each: Case): Promise<string[]> =>
  recordPoints({
    pattern: taskPointPattern,
    passesOf,
    needed: each.needed,
    shortPoint: each.shortPoint,
    launch,
    work: async ({ url }, attempt) => assertEnded(await send(url, each, keyOf(each, attempt)), each, attempt),
  })

/** One gateway takes the request and dies at its point; the other one must end the swap. */
async function dieAt(each: Case, point: string, victim: Gateway): Promise<boolean> {
  const key = keyOf(each, point)
  victim.child.kill('SIGUSR2')
  const first = await send(victim.url, each, key).catch(() => undefined)
  const died = hasDied(victim, first)
  await victim.kill()
  assertEnded(await send(survivor.url, each, key), each, point)
  return died
}

/** A short run kills one swap, between EVM chains. */
for (const each of bySize({ short: cases.slice(1, 2), full: cases, nightly: cases }))
  test(`a swap ${each.name} that is killed at any point has one deposit and one end`, async (t) => {
    await world.solver('/realism', each.realism)
    const points = await pointsOf(each)
    t.diagnostic(await killAtEach(points, launch, (point, victim) => dieAt(each, point, victim)))
  })

test('each of them has one deposit, and every unit is accounted for', async (t) => {
  const { rows } = await app.admin.query<{ tasks: string }>(
    `select count(*) as tasks from task where kind = 'swap'`,
  )
  assert.equal(Number(rows[0]!.tasks), done.length, 'each key made one task')
  const deposits = await assertDepositsOnce(world, app.admin, books)
  await assertMeasured(world, person, held, done)
  const { sums } = await assertConserved(world, [person], books)
  assert.equal(await ledgerDrift(app.admin), 0)
  t.diagnostic(
    `${done.length} swaps, ${deposits.evm.length} deposits on EVM chains, ${deposits.solana.length} on Solana, ${sums} sums conserved`,
  )
})
